package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// Talk says how a process that talks is treated.
type Talk struct {
	// Stderr receives its standard error. Nil discards it.
	Stderr io.Writer
	// Leave is how long it may take to end by itself after the end of its input, and Ask
	// how long after it was asked to end. It is not asked if Ask is 0.
	Leave, Ask time.Duration
}

// Conn is a process that talks, such as an MCP server. When it ends, everything that it started ends too.
type Conn struct {
	*Process
	// In is its standard input, and Out its standard output.
	In, Out *os.File

	talk Talk
}

// Connect starts a process whose streams are unset. Without a folder it runs in that of this process.
func (s *Starter) Connect(ctx context.Context, cmd *exec.Cmd, t Talk) (*Conn, error) {
	if cmd.Err != nil {
		return nil, cmd.Err
	}
	if cmd.Dir == "" { // a launcher's own is another
		dir, err := os.Getwd()
		if err != nil {
			return nil, fmt.Errorf("working folder: %w", err)
		}
		cmd.Dir = dir
	}
	cmd.Env = cmd.Environ()
	stdin, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer stdin.Close()
	out, stdout, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, in.Close())
	}
	defer stdout.Close()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, stdout, t.Stderr
	p, err := s.Start(ctx, cmd, "")
	if err != nil {
		return nil, errors.Join(err, in.Close(), out.Close())
	}
	go func() {
		<-p.exited
		_ = p.End() // what is left may hold the output open
	}()
	return &Conn{p, in, out, t}, nil
}

// Close ends the input, waits, and kills what is left. The error is how the process ended, if that was not well.
func (c *Conn) Close() error {
	_ = c.In.Close()
	if !within(c.exited, c.talk.Leave) && c.talk.Ask > 0 {
		c.Terminate()
		within(c.exited, c.talk.Ask)
	}
	err := c.End()
	within(c.over, drainGrace+Grace) // it has written its last words by then
	_ = c.Out.Close()
	if err == nil && c.status.ExitStatus() != 0 {
		err = &ExitError{c.status}
	}
	return err
}

// ExitError is an [exec.ExitError] for a process that is perhaps not a child of this one.
type ExitError struct{ syscall.WaitStatus }

func (e *ExitError) Error() string {
	if e.Signaled() {
		return "signal: " + e.Signal().String()
	}
	return fmt.Sprintf("exit status %d", e.ExitStatus())
}

func (e *ExitError) ExitCode() int { return e.ExitStatus() }
