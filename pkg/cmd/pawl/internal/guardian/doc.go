// Package guardian runs a command that must not outlive a deadline. A process of
// its own is the parent of the command: it ends the command, and all that the
// command started, when the deadline is no longer extended, also when the
// extending process is stopped or killed.
//
// It promises nothing if both processes are stopped at the same time, and it
// refuses to run on other systems than Linux.
package guardian
