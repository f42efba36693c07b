package appserver

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

	"github.com/codexmcp/codexmcp/codexserver/internal/proc"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// keptProcess is an app-server under a keeper. It closes the transport.
type keptProcess struct {
	*proc.Process
	mark            string
	in, out, stderr *os.File
	busy            sync.WaitGroup // reading stderr, and waiting for the exit
}

func (p *process) startKept(ctx context.Context, keepers *proc.Pool, cmd *exec.Cmd, stderr io.Writer) error {
	if cmd.Err != nil {
		return cmd.Err
	}
	dir, err := os.Getwd() // the keeper's own is another
	if err != nil {
		return fmt.Errorf("working folder: %w", err)
	}
	cmd.Dir, cmd.SysProcAttr = dir, ownSession()
	k := &keptProcess{mark: p.mark}
	theirs, err := k.openPipes(cmd)
	if err == nil {
		k.Process, err = keepers.Start(ctx, proc.Order{Cmd: cmd})
	}
	closeAll(theirs)
	if err != nil {
		if errors.Is(err, proc.ErrLost) { // it may have started
			sweep(p.mark)
		}
		closeAll([]*os.File{k.in, k.out, k.stderr})
		return err
	}
	k.busy.Go(func() { _, _ = io.Copy(stderr, k.stderr) })
	k.busy.Go(func() {
		<-k.Exited()
		_ = k.end() // what is left may hold the output open
	})
	p.pid, p.Transport = k.PID, jsonrpc.Lines(k.out, k.in, k)
	return nil
}

// openPipes connects the streams of cmd and returns the command's ends of the pipes.
func (k *keptProcess) openPipes(cmd *exec.Cmd) (theirs []*os.File, err error) {
	var read, write [3]*os.File
	for i := range read {
		if read[i], write[i], err = os.Pipe(); err != nil {
			break
		}
	}
	k.in, k.out, k.stderr = write[0], read[1], read[2]
	cmd.Stdin, cmd.Stdout, cmd.Stderr = read[0], write[1], write[2]
	return []*os.File{read[0], write[1], write[2]}, err
}

func closeAll(files []*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}

// Close ends the input, waits for the process to end by itself, and kills what is left
// after that.
func (k *keptProcess) Close() error {
	_ = k.in.Close()
	timer := time.NewTimer(2 * leaveGrace)
	defer timer.Stop()
	select {
	case <-k.Exited():
	case <-timer.C:
	}
	err := k.end()
	_ = k.stderr.SetReadDeadline(time.Now().Add(leaveGrace)) // in case a process that cannot be killed holds it open
	if !errors.Is(err, proc.ErrAlive) {
		k.busy.Wait()
	}
	closeAll([]*os.File{k.out, k.stderr})
	if err != nil {
		return err
	}
	status, err := k.Status()
	if err == nil && status.ExitStatus() != 0 {
		err = &exitError{status}
	}
	return err
}

// end kills what is left and waits until it is gone.
func (k *keptProcess) end() error {
	err := k.End()
	if errors.Is(err, proc.ErrLost) { // its processes now have another parent
		sweep(k.mark)
	}
	return err
}

// exitError is an [exec.ExitError] for a process that is not a child of this one.
type exitError struct{ syscall.WaitStatus }

func (e *exitError) Error() string {
	if e.Signaled() {
		return "signal: " + e.Signal().String()
	}
	return fmt.Sprintf("exit status %d", e.ExitStatus())
}

// ExitCode is [os.ProcessState.ExitCode].
func (e *exitError) ExitCode() int { return e.ExitStatus() }
