package jsonrpc

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/codexmcp/codexmcp/internal/group"
)

// Command starts a child process, in a process group of its own, and returns a transport of
// lines over its input and output, which cmd must leave unset.
//
// Close closes the child's input and waits grace for it to exit, asks it to terminate and waits
// grace again, then kills it, and whatever is left of its group in any case. A grace of 0 or less
// is two seconds. The error is the child's exit status when it is not zero, and also what
// [Peer.Run] returns then, unless the connection was closed from this side. Windows cannot ask,
// and ends the child at once. There the group is a job object: no process leaves it, and it ends
// with this program.
func Command(cmd *exec.Cmd, grace time.Duration) (Transport, error) {
	if cmd.Stdin != nil || cmd.Stdout != nil {
		return nil, errors.New("jsonrpc: standard input or output of the command is already set")
	}
	if grace <= 0 {
		grace = 2 * time.Second
	}
	if cmd.WaitDelay == 0 {
		cmd.WaitDelay = grace
	}
	// Pipes of our own rather than cmd.StdinPipe: Wait closes those as soon as the child has
	// exited, also if what it wrote last was not read yet.
	childIn, in, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("jsonrpc: start %s: %w", cmd.Path, err)
	}
	out, childOut, err := os.Pipe()
	if err != nil {
		_, _ = childIn.Close(), in.Close()
		return nil, fmt.Errorf("jsonrpc: start %s: %w", cmd.Path, err)
	}
	cmd.Stdin, cmd.Stdout = childIn, childOut
	processes, err := group.Start(cmd, false)
	// The child has its own copies. Ours would keep the pipes open after its end, and Read would
	// never see it.
	_, _ = childIn.Close(), childOut.Close()
	if err != nil {
		_, _ = in.Close(), out.Close()
		return nil, fmt.Errorf("jsonrpc: start %s: %w", cmd.Path, err)
	}
	c := &child{cmd: cmd, group: processes, in: in, out: out, grace: grace, exited: make(chan struct{})}
	go c.wait()
	return Lines(out, in, c), nil
}

// child is the closer behind the transport of Command. The goroutine of wait lives as long as the
// process, and Close waits for it: no child is left as a zombie.
type child struct {
	cmd     *exec.Cmd
	group   *group.Group
	in, out *os.File
	grace   time.Duration
	exited  chan struct{}
	err     error // of Wait; valid once exited
}

// wait reaps the child.
func (c *child) wait() {
	c.err = c.cmd.Wait()
	// The leader has gone, but others of its group may remain. The number of the group is not
	// used again while one of them lives; if none does, the kill fails.
	c.group.Kill()
	close(c.exited)
}

// Close ends the child as [Command] describes. Each step waits for the one before: a child that
// saves its work at the end of its input must not be killed while it does.
func (c *child) Close() error {
	_ = c.in.Close() // the child sees the end of its input
	if !c.exitsWithin(c.grace) {
		c.group.Terminate()
		if !c.exitsWithin(c.grace) {
			c.group.Kill()
			<-c.exited
		}
	}
	// Last: until the child has exited, it may still write answers, which are read.
	_ = c.out.Close()
	if c.err != nil {
		return fmt.Errorf("jsonrpc: %s: %w", c.cmd.Path, c.err)
	}
	return nil
}

// exitsWithin reports whether the child has exited, after d at the latest.
func (c *child) exitsWithin(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-c.exited:
		return true
	case <-timer.C:
		return false
	}
}
