package appserver

import (
	"io"
	"os/exec"
	"runtime"

	"github.com/codexmcp/codexmcp/jsonrpc"
)

// ownProcess is an app-server that this process started itself, in a program that has
// no keepers.
type ownProcess struct {
	jsonrpc.Transport
	mark string
}

func (p *process) startOwn(cmd *exec.Cmd, stderr io.Writer) error {
	cmd.Stderr, cmd.SysProcAttr = stderr, dieWithParent()
	started := make(chan error, 1)
	go func() {
		// The kernel ends the process with the thread that started it.
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

// Close ends the process, its group, and what else can be found.
func (o *ownProcess) Close() error {
	err := o.Transport.Close()
	sweep(o.mark)
	return err
}
