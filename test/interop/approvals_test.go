package interop

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// TestApprovals answers a question in every way on the native engine, and in one for each outcome on Codex. Some of the
// answers Codex's own MCP server took for denials or hung on.
func TestApprovals(t *testing.T) {
	t.Parallel()
	server := ours(t)
	answers := []struct {
		name   string
		answer string // a result, "error" or "never"; "" is a client that cannot be asked
		made   bool
		failed bool
		blocks int
		codex  bool
	}{
		{"accept", `{"action":"accept"}`, true, false, 1, true},
		{"accept with content", `{"action":"accept","content":{}}`, true, false, 1, false},
		{"accept with null content", `{"action":"accept","content":null}`, true, false, 1, false},
		{"accept and approved", `{"action":"accept","content":{"decision":"approved"}}`, true, false, 1, false},
		{"the old form", `{"decision":"approved"}`, true, false, 1, false},
		{"both forms", `{"action":"accept","decision":"approved"}`, true, false, 1, false},
		{"accept and denied", `{"action":"accept","content":{"decision":"denied"}}`, false, false, 1, false},
		{"decline", `{"action":"decline"}`, false, false, 1, true},
		{"decline and approved", `{"action":"decline","content":{"decision":"approved"}}`, false, false, 1, false},
		{"cancel", `{"action":"cancel"}`, false, true, 2, true},
		{"the old abort", `{"decision":"abort"}`, false, true, 2, false},
		{"case", `{"action":"Accept"}`, false, false, 1, false},
		{"twice", `{"action":"decline","action":"accept"}`, false, false, 1, false},
		{"unknown", `{"decision":"Approved!"}`, false, false, 1, false},
		{"nothing", `{}`, false, false, 1, false},
		{"null", `null`, false, false, 1, false},
		{"error", "error", false, false, 2, true},
		{"never", "never", false, false, 2, true},
		{"cannot be asked", "", false, false, 2, true},
	}
	for _, e := range engines(t) {
		if e.over == overHTTP {
			continue // the client of this test starts a program
		}
		for _, tt := range answers {
			if e.is != "native" && !tt.codex {
				continue
			}
			t.Run(e.name+"/"+tt.name, func(t *testing.T) {
				t.Parallel()
				model := providertest.New(providertest.Call(e.run("call_1", "touch", "made")), providertest.Say("done"))
				t.Cleanup(model.Close)
				cwd := t.TempDir()
				s := e.open(t, server, newHome(t, model, e.wire), cwd, "-c", "approvals.timeout=2s")
				asked, result := callOnce(t, s, tt.answer)
				if can := tt.answer != ""; can != (len(asked) == 1) || can && !strings.Contains(asked[0], "touch made") {
					t.Errorf("asked %q", asked)
				}
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

// callOnce connects, calls codex, and answers its questions. It returns what was asked.
func callOnce(t *testing.T, s setup, answer string) (asked []string, r result) {
	t.Helper()
	transport, err := jsonrpc.Command(s.command(t.Context()), 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	mux := &jsonrpc.Mux{}
	mux.HandleRaw("elicitation/create", func(ctx context.Context, params json.RawMessage) (any, error) {
		var q struct{ Message string }
		err := json.Unmarshal(params, &q)
		mu.Lock()
		asked = append(asked, q.Message)
		mu.Unlock()
		switch answer {
		case "error":
			return nil, jsonrpc.CodeMethodNotFound
		case "never":
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return json.RawMessage(answer), err
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
	mu.Lock()
	defer mu.Unlock()
	return asked, r
}
