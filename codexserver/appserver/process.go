package appserver

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"os/exec"
	"runtime"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/jsonrpc"
)

// process is an app-server as a child process, which is a transport. Its end
// takes everything with it that it has started.
type process struct {
	jsonrpc.Transport
	pid    int
	mark   string // the environment variable that its children inherit
	once   sync.Once
	closed chan struct{}
	err    error // how it ended; valid once closed
}

// leaveGrace is how long the process may take to end by itself once its input
// has ended, and again once it was asked to terminate. Measured are 0.2 to
// 0.4 s for the first.
const leaveGrace = 400 * time.Millisecond

const markName = "CODEX_MCP_CHILD="

// spawn starts a process that dies with this one.
func spawn(path string, args, env []string, stderr io.Writer) (*process, error) {
	cmd := exec.Command(path, args...)
	p := &process{mark: markName + rand.Text(), closed: make(chan struct{})}
	cmd.Env, cmd.Stderr = append(env, p.mark), stderr
	cmd.SysProcAttr = dieWithParent()
	started := make(chan error, 1)
	go func() {
		// The kernel ends the process with the thread that started it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		var err error
		p.Transport, err = jsonrpc.Command(cmd, leaveGrace)
		if err == nil {
			p.pid = cmd.Process.Pid
		}
		started <- err
		if err == nil {
			<-p.closed
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// SetReadLimit passes the peer's limit on.
func (p *process) SetReadLimit(n int) { setReadLimit(p.Transport, n) }

func setReadLimit(t jsonrpc.Transport, n int) {
	if l, ok := t.(interface{ SetReadLimit(int) }); ok {
		l.SetReadLimit(n)
	}
}

// Read reads a line. A process that says no more is of no use, and is ended;
// the error then tells how it ended.
func (p *process) Read(ctx context.Context) ([]byte, error) {
	b, err := p.Transport.Read(ctx)
	var one *jsonrpc.Error // the fault of one message
	if err != nil && !errors.As(err, &one) && p.Close() != nil {
		return nil, p.err
	}
	return b, err
}

// Close ends the process, its group, and what else it has left.
func (p *process) Close() error {
	p.once.Do(func() {
		p.err = p.Transport.Close()
		sweep(p.mark)
		close(p.closed)
	})
	<-p.closed
	return p.err
}
