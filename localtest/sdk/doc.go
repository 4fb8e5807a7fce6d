// Package sdk tests pkg/lock with processes, networks and clocks that are real:
// processes that are paused, or killed while they hold a lock or wait for one,
// and connections that swallow what they are sent. It also tests what a program
// that imports the SDK is linked with.
package sdk
