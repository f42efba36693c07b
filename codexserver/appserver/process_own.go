package appserver

import (
	"io"
	"os/exec"
	"runtime"

	"github.com/codexmcp/codexmcp/jsonrpc"
)

// ownProcess is an app-server that this process started itself, without a keeper.
type ownProcess struct {
	jsonrpc.Transport
	mark string
}

func (p *process) startOwn(cmd *exec.Cmd, stderr io.Writer) error {
	cmd.Stderr, cmd.SysProcAttr = stderr, dieWithParent()
	started := make(chan error, 1)
	go func() {
		// The kernel kills the process when the thread that started it ends, so the
		// thread waits for the end of the process.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		t, err := jsonrpc.Command(cmd, leaveGrace)
		if err == nil {
			p.Transport, p.pid = &ownProcess{t, p.mark}, cmd.Process.Pid
		}
		started <- err
		if err == nil {
			<-p.closed
		}
	}()
	return <-started
}

func (o *ownProcess) SetReadLimit(n int) { setReadLimit(o.Transport, n) }

// Close ends the process, its group, and the processes that it left behind.
func (o *ownProcess) Close() error {
	err := o.Transport.Close()
	sweep(o.mark)
	return err
}
