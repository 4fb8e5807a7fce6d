package process

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// A Talk is a process that is told what to do line by line on its standard input,
// and says what it did on its standard output. It is for one caller at a time.
type Talk struct {
	*Process
	in    io.WriteCloser
	out   *os.File
	lines *bufio.Reader
}

// StartTalk runs cmd as [Start] does, and takes its standard input and output.
func StartTalk(cmd *exec.Cmd) (*Talk, error) {
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, stdout, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdout = stdout
	p, err := Start(cmd)
	_ = stdout.Close() // the program has its own, or there is none
	if err != nil {
		return nil, errors.Join(err, out.Close())
	}
	return &Talk{Process: p, in: in, out: out, lines: bufio.NewReader(out)}, nil
}

// Tell writes a line to the program.
func (t *Talk) Tell(line string) error {
	_, err := io.WriteString(t.in, line+"\n")
	return err
}

// Hear returns the next line that the program says. It is an error if the program
// ends before, in its own words, or if ctx does.
func (t *Talk) Hear(ctx context.Context) (string, error) {
	_ = t.out.SetReadDeadline(time.Time{}) // that of an earlier call
	over := context.AfterFunc(ctx, func() { _ = t.out.SetReadDeadline(time.Now()) })
	defer over()
	line, err := t.lines.ReadString('\n')
	switch {
	case line != "" && (err == nil || errors.Is(err, io.EOF)):
		return strings.TrimSuffix(line, "\n"), nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		return "", fmt.Errorf("%s says nothing: %w: %s", t.name, context.Cause(ctx), &t.output)
	}
	<-t.exited
	return "", t.Ended()
}

// Rest ends the input of the program, and returns what it still says until it
// ends.
func (t *Talk) Rest(ctx context.Context) (lines []string) {
	_ = t.in.Close() // it may have ended
	for {
		line, err := t.Hear(ctx)
		if err != nil {
			return lines
		}
		lines = append(lines, line)
	}
}
