package interop

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// TestApprovals answers a question in every way, on both engines. Some of the answers Codex's own MCP server took for denials or hung on.
func TestApprovals(t *testing.T) {
	t.Parallel()
	server := ours(t)
	answers := []struct {
		name   string
		answer string // a result, "error" or "never"; "" is a client that cannot be asked
		made   bool
		failed bool
		blocks int
	}{
		{"accept", `{"action":"accept"}`, true, false, 1},
		{"accept with content", `{"action":"accept","content":{}}`, true, false, 1},
		{"accept with null content", `{"action":"accept","content":null}`, true, false, 1},
		{"accept and approved", `{"action":"accept","content":{"decision":"approved"}}`, true, false, 1},
		{"the old form", `{"decision":"approved"}`, true, false, 1},
		{"both forms", `{"action":"accept","decision":"approved"}`, true, false, 1},
		{"accept and denied", `{"action":"accept","content":{"decision":"denied"}}`, false, false, 1},
		{"decline", `{"action":"decline"}`, false, false, 1},
		{"decline and approved", `{"action":"decline","content":{"decision":"approved"}}`, false, false, 1},
		{"cancel", `{"action":"cancel"}`, false, true, 2},
		{"the old abort", `{"decision":"abort"}`, false, true, 2},
		{"case", `{"action":"Accept"}`, false, false, 1},
		{"twice", `{"action":"decline","action":"accept"}`, false, false, 1},
		{"unknown", `{"decision":"Approved!"}`, false, false, 1},
		{"nothing", `{}`, false, false, 1},
		{"null", `null`, false, false, 1},
		{"error", "error", false, false, 2},
		{"never", "never", false, false, 2},
		{"cannot be asked", "", false, false, 2},
	}
	for _, e := range engines(t) {
		if e.over == overHTTP {
			continue // the client of this test starts a program
		}
		for _, tt := range answers {
			t.Run(e.name+"/"+tt.name, func(t *testing.T) {
				t.Parallel()
				model := providertest.New(providertest.Call(e.run("call_1", "touch", "made")), providertest.Say("done"))
				t.Cleanup(model.Close)
				cwd := t.TempDir()
				result := callOnce(t, e.open(t, server, newHome(t, model, e.wire), cwd, "-c", "approvals.timeout=2s"), tt.answer)
				if _, err := os.Stat(filepath.Join(cwd, "made")); (err == nil) != tt.made {
					t.Errorf("made: %v", err)
				}
				blocks := tt.blocks
				if !tt.failed {
					blocks++ // it names the thread
				}
				if result.IsError != tt.failed || len(result.Content) != blocks || result.Structured.ThreadID == "" {
					t.Errorf("%+v", result)
				}
			})
		}
	}
}

// callOnce connects, calls codex, and answers its question.
func callOnce(t *testing.T, s setup, answer string) (r result) {
	t.Helper()
	transport, err := jsonrpc.Command(s.command(t.Context()), 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	mux := &jsonrpc.Mux{}
	mux.HandleRaw("elicitation/create", func(ctx context.Context, params json.RawMessage) (any, error) {
		if !strings.Contains(string(params), "touch made") {
			t.Errorf("asked %s", params)
		}
		switch answer {
		case "error":
			return nil, jsonrpc.CodeMethodNotFound
		case "never":
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return json.RawMessage(answer), nil
	})
	peer := jsonrpc.NewPeer(transport, mux, &jsonrpc.Options{Cancellation: jsonrpc.MCPCancel})
	ended := make(chan error, 1)
	go func() { ended <- peer.Run(context.Background()) }()
	defer func() {
		if err := peer.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		if err := <-ended; err != nil {
			t.Errorf("run: %v", err)
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	capabilities := `{"elicitation":{}}`
	if answer == "" {
		capabilities = `{}`
	}
	for _, call := range []struct {
		method, params string
		result         any
	}{
		{"initialize", fmt.Sprintf(`{"protocolVersion":"2025-06-18","capabilities":%s,"clientInfo":{"name":"interop","version":"1"}}`, capabilities), nil},
		{"tools/call", fmt.Sprintf(`{"name":"codex","arguments":{"prompt":"go","cwd":%q,"approval-policy":"untrusted","sandbox":"workspace-write"}}`, s.Cwd), &r},
	} {
		if err := peer.Call(ctx, call.method, json.RawMessage(call.params), call.result); err != nil {
			t.Fatalf("%s: %v", call.method, err)
		}
	}
	return r
}
