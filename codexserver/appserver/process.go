package appserver

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"os/exec"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/proc"
	"github.com/codexmcp/codexmcp/codexserver/internal/sandbox"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// process is the process of an app-server, as a transport. When it ends, everything that
// it started ends too.
type process struct {
	jsonrpc.Transport
	pid    int
	mark   string // an environment variable that its children inherit
	once   sync.Once
	closed chan struct{}
	err    error // how it ended; set when closed is closed
}

// leaveGrace is how long the process may take to end by itself after its input has ended,
// and again after a signal, before it is killed. Codex was measured to need 0.2 to 0.4 s
// after the end of its input.
const leaveGrace = 400 * time.Millisecond

const markName = "CODEX_MCP_CHILD="

// spawn starts an app-server that ends with this process. A keeper ensures that; without
// keepers the system does, as far as it can.
func spawn(ctx context.Context, programs *sandbox.Programs, keepers *proc.Pool, path string, args, env []string, stderr io.Writer) (*process, error) {
	p := &process{mark: markName + rand.Text(), closed: make(chan struct{})}
	cmd := exec.Command(path, args...)
	cmd.Env = append(env, p.mark)
	err := programs.Start(cmd, func() error {
		if keepers != nil {
			return p.startKept(ctx, keepers, cmd, stderr)
		}
		return p.startOwn(cmd, stderr)
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

// SetReadLimit passes the peer's limit to the transport.
func (p *process) SetReadLimit(n int) { setReadLimit(p.Transport, n) }

func setReadLimit(t jsonrpc.Transport, n int) {
	if l, ok := t.(interface{ SetReadLimit(int) }); ok {
		l.SetReadLimit(n)
	}
}

// Read reads a line. At the end of the output it ends the process, which can no longer
// answer, and returns how it ended.
func (p *process) Read(ctx context.Context) ([]byte, error) {
	b, err := p.Transport.Read(ctx)
	var one *jsonrpc.Error // the fault of one message
	if err != nil && !errors.As(err, &one) && p.Close() != nil {
		return nil, p.err
	}
	return b, err
}

// Close ends the process and everything that it started.
func (p *process) Close() error {
	p.once.Do(func() {
		p.err = p.Transport.Close()
		close(p.closed)
	})
	<-p.closed
	return p.err
}
