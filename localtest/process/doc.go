// Package process runs programs that do not outlive this one. A program is
// started in a process group of its own, is waited for until it is ready, and
// ends with the whole group: when it is told to, or when this process has ended,
// in whatever way. What it printed last is part of the error when it fails.
//
// That is promised for Linux and macOS; the package does not build for Windows. A
// child that leaves the group, as a daemon does, is not found again.
package process
