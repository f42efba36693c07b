package appserver

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"os/exec"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/keeper"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// process is an app-server as a process, which is a transport. Its end takes
// everything with it that it has started.
type process struct {
	jsonrpc.Transport
	pid    int
	mark   string // the environment variable that its children inherit
	once   sync.Once
	closed chan struct{}
	err    error // how it ended; valid once closed
}

// leaveGrace is how long the process may take to end by itself once its input
// has ended, and again before it is killed. Measured are 0.2 to 0.4 s for the
// first.
const leaveGrace = 400 * time.Millisecond

const markName = "CODEX_MCP_CHILD="

// spawn starts a process that dies with this one: under a keeper where there are
// some, and otherwise as far as the system can do it.
func spawn(ctx context.Context, keepers *keeper.Pool, path string, args, env []string, stderr io.Writer) (*process, error) {
	p := &process{mark: markName + rand.Text(), closed: make(chan struct{})}
	cmd := exec.Command(path, args...)
	cmd.Env = append(env, p.mark)
	var err error
	if keepers != nil {
		err = p.startKept(ctx, keepers, cmd, stderr)
	} else {
		err = p.startOwn(cmd, stderr)
	}
	if err != nil {
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

// Read reads a line. A process that says no more is of no use, and is ended; the error
// then says how it ended.
func (p *process) Read(ctx context.Context) ([]byte, error) {
	b, err := p.Transport.Read(ctx)
	var one *jsonrpc.Error // the fault of one message
	if err != nil && !errors.As(err, &one) && p.Close() != nil {
		return nil, p.err
	}
	return b, err
}

// Close ends the process and what it has left.
func (p *process) Close() error {
	p.once.Do(func() {
		p.err = p.Transport.Close()
		close(p.closed)
	})
	<-p.closed
	return p.err
}
