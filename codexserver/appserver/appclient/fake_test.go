package appclient_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/appserver/appclient"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// fake is an app-server whose answers a test sets. Others are an empty object.
type fake struct {
	version string
	on      map[string]func(*fake, *jsonrpc.Request) (any, error)
	peer    *jsonrpc.Peer
}

// connect returns a client of the fake, which is not yet initialized.
func (f *fake) connect(t *testing.T, o *appclient.Options) *appclient.Client {
	t.Helper()
	ours, theirs := jsonrpc.Pipe()
	f.peer = jsonrpc.NewPeer(theirs, jsonrpc.HandlerFunc(f.serve), &jsonrpc.Options{OmitVersion: true})
	done := make(chan struct{})
	ctx, stop := context.WithCancel(context.Background())
	go func() { defer close(done); _ = f.peer.Run(ctx) }()
	c := appclient.New(ours, o)
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		stop()
		<-done
	})
	return c
}

func (f *fake) start(t *testing.T, o *appclient.Options) *appclient.Client {
	t.Helper()
	c := f.connect(t, o)
	must.OK(t, c.Initialize(t.Context()))
	return c
}

func (f *fake) serve(_ context.Context, r *jsonrpc.Request) (any, error) {
	if on := f.on[r.Method]; on != nil {
		return on(f, r)
	}
	if r.Method == "initialize" {
		version := f.version
		if version == "" {
			version = "0.169.0"
		}
		return json.RawMessage(fmt.Sprintf(`{"userAgent":"test/%s (Test)","codexHome":"/home"}`, version)), nil
	}
	return struct{}{}, nil
}

func (f *fake) notify(method, params string) {
	_ = f.peer.Notify(context.Background(), method, json.RawMessage(params))
}

func (f *fake) ask(ctx context.Context, method, params string) string {
	var raw json.RawMessage
	if err := f.peer.Call(ctx, method, json.RawMessage(params), &raw); err != nil {
		return err.Error()
	}
	return string(raw)
}
