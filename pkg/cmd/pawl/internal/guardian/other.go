//go:build !linux

package guardian

import (
	"errors"
	"syscall"
	"time"
)

// A Command cannot be started here.
type Command struct{}

// Guard does nothing here.
func Guard([]string) {}

// Start refuses: nothing here ends a command whose guardian was killed.
func Start(_, _ []string) (*Command, error) {
	return nil, errors.New("pawl run needs Linux: elsewhere the end of a command cannot be guaranteed")
}

// Extend does nothing here.
func (c *Command) Extend(time.Time, time.Duration) {}

// Signal does nothing here.
func (c *Command) Signal(syscall.Signal) {}

// Kill does nothing here.
func (c *Command) Kill() {}

// Wait fails here.
func (c *Command) Wait() (Outcome, error) { return Outcome{}, ErrDied }
