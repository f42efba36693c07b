package interop

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/jsonrpc"
)

// typescript is the client of the official TypeScript SDK, in
// typescript/client.mjs, which is driven by JSON-RPC over its standard streams.
type typescript struct {
	name string // of the package
	mode string // auto or a version, of the package client alone
}

func (c typescript) release(t *testing.T) string {
	return npmRelease(t, "@modelcontextprotocol/"+c.name)
}

func (c typescript) cannot(cell string, _ way) string {
	switch {
	case c.name == taskClient && cell == "progress":
		return "A task has a status and no progress."
	case c.name == taskClient && cell == "error":
		return "When the handler fails the client for tasks answers `cancel` itself."
	}
	return ""
}

// taskClient is the package of the client for tasks, which uses the one of the SDK.
const taskClient = "ext-tasks"

func (c typescript) connect(ctx context.Context, s setup, w *witness) (session, error) {
	encoded, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, node(), "client.mjs", c.name, c.mode, string(encoded))
	cmd.Dir = "typescript"
	d := &driver{stderr: &bytes.Buffer{}, ended: make(chan error, 1)}
	cmd.Stderr = d.stderr
	transport, err := jsonrpc.Command(cmd, 5*time.Second)
	if err != nil {
		return nil, err
	}
	mux := &jsonrpc.Mux{}
	jsonrpc.Handle(mux, "ask", func(ctx context.Context, q question) (string, error) {
		return w.elicit(ctx, q.Message)
	})
	jsonrpc.HandleNotify(mux, "progress", func(_ context.Context, p progress) error { w.see(p); return nil })
	d.peer = jsonrpc.NewPeer(transport, mux, &jsonrpc.Options{Cancellation: jsonrpc.MCPCancel})
	go func() { d.ended <- d.peer.Run(context.Background()) }()
	if err := d.peer.Call(ctx, "connect", nil, nil); err != nil {
		return nil, errors.Join(err, d.close())
	}
	if c.name == taskClient {
		return taskDriver{d}, nil
	}
	return d, nil
}

// taskDriver is a session whose calls may become tasks.
type taskDriver struct{ *driver }

func (d taskDriver) begin(ctx context.Context, c call) (reference json.RawMessage, err error) {
	return reference, d.peer.Call(ctx, "begin", c, &reference)
}

func (d taskDriver) resume(ctx context.Context, reference json.RawMessage) (r result, err error) {
	return r, d.peer.Call(ctx, "resume", reference, &r)
}

type question struct {
	Message string `json:"message"`
}

// driver is a session of client.mjs.
type driver struct {
	peer   *jsonrpc.Peer
	stderr *bytes.Buffer
	ended  chan error
}

func (d *driver) list(ctx context.Context) ([]string, error) {
	var list toolList
	err := d.peer.Call(ctx, "list", nil, &list)
	return list.names(), err
}

func (d *driver) call(ctx context.Context, c call) (r result, err error) {
	return r, d.peer.Call(ctx, "call", c, &r)
}

// close lets the client close its connection, and with it the process ends.
func (d *driver) close() error {
	err := d.peer.Close()
	if err = errors.Join(err, <-d.ended); err != nil {
		return fmt.Errorf("%w\n%s", err, d.stderr.Bytes())
	}
	return nil
}
