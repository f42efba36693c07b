package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
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

// Conn is a process that talks over its standard input and output, such as an MCP server.
// When it ends, everything that it started ends too.
type Conn struct {
	*Process
	// In is its standard input, and Out its standard output.
	In, Out *os.File

	talk   Talk
	stderr *os.File
	busy   sync.WaitGroup // reading stderr, and waiting for the exit
}

// Connect starts a process whose streams are unset. Without a folder it runs in that of this
// process.
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
	cmd.Env, cmd.SysProcAttr = cmd.Environ(), sessionAttr()
	c := &Conn{talk: t}
	theirs, err := c.openPipes(cmd)
	if err == nil {
		c.Process, err = s.Start(ctx, Order{Cmd: cmd})
	}
	closeAll(theirs)
	if err != nil {
		closeAll([]*os.File{c.In, c.Out, c.stderr})
		return nil, err
	}
	if c.stderr != nil {
		c.busy.Go(func() { _, _ = io.Copy(c.talk.Stderr, c.stderr) })
	}
	c.busy.Go(func() {
		<-c.Exited()
		_ = c.End() // what is left may hold the output open
	})
	return c, nil
}

// openPipes connects the streams of cmd and returns the process's ends of the pipes.
func (c *Conn) openPipes(cmd *exec.Cmd) (theirs []*os.File, err error) {
	pipe := func() (r, w *os.File) {
		if err == nil {
			r, w, err = os.Pipe()
		}
		return r, w
	}
	stdin, in := pipe()
	out, stdout := pipe()
	c.In, c.Out, cmd.Stdin, cmd.Stdout = in, out, stdin, stdout
	theirs = []*os.File{stdin, stdout}
	if c.talk.Stderr != nil {
		r, w := pipe()
		c.stderr, cmd.Stderr, theirs = r, w, append(theirs, w)
	}
	return theirs, err
}

// Close ends the input, waits for the process to end by itself or when it is asked, and
// kills what is left after that. The error is how the process ended, if that was not well.
func (c *Conn) Close() error {
	_ = c.In.Close()
	if !within(c.Exited(), c.talk.Leave) && c.talk.Ask > 0 {
		c.Terminate()
		within(c.Exited(), c.talk.Ask)
	}
	err := c.End()
	if c.stderr != nil {
		_ = c.stderr.SetReadDeadline(time.Now().Add(drainGrace)) // in case a process that cannot be killed holds it open
	}
	if !errors.Is(err, ErrAlive) {
		c.busy.Wait()
	}
	closeAll([]*os.File{c.Out, c.stderr})
	if err != nil {
		return err
	}
	status, err := c.Status()
	if err == nil && status.ExitStatus() != 0 {
		err = &ExitError{status}
	}
	return err
}

// ExitError is an [exec.ExitError] for a process that is perhaps not a child of this one.
type ExitError struct{ syscall.WaitStatus }

// Error implements error.
func (e *ExitError) Error() string {
	if e.Signaled() {
		return "signal: " + e.Signal().String()
	}
	return fmt.Sprintf("exit status %d", e.ExitStatus())
}

// ExitCode is [os.ProcessState.ExitCode].
func (e *ExitError) ExitCode() int { return e.ExitStatus() }
