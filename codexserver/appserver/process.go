package appserver

import (
	"context"
	"errors"
	"io"
	"os/exec"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// process is the process of an app-server, as a transport. When it ends, everything that
// it started ends too.
type process struct {
	jsonrpc.Transport
	path  string
	pid   int
	close func() error // ends it once, and returns how it ended
}

// leaveGrace is how long the process may take to end by itself after its input has ended,
// before it is killed. Codex was measured to need 0.2 to 0.4 s.
const leaveGrace = 800 * time.Millisecond

// spawn starts an app-server that ends with this process.
func spawn(ctx context.Context, programs *box.Programs, processes *run.Pool, path string, args, env []string, stderr io.Writer) (*process, error) {
	cmd := exec.Command(path, args...)
	cmd.Env = env
	p := &process{path: path}
	err := programs.Start(cmd, func() error {
		c, err := processes.Connect(ctx, cmd, run.Talk{Stderr: stderr, Leave: leaveGrace})
		if err != nil {
			return err
		}
		p.pid, p.Transport = c.PID, jsonrpc.Lines(c.Out, c.In, c)
		p.close = sync.OnceValue(p.Transport.Close)
		return nil
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
	if err != nil && !errors.As(err, &one) {
		if end := p.Close(); end != nil {
			return nil, end
		}
	}
	return b, err
}

// Close ends the process and everything that it started.
func (p *process) Close() error { return p.close() }
