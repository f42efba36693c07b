package interop

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// TestApprovalsOnTheNewestCodex answers a question of today's Codex in every
// way, those among them that its own MCP server took for denials or hung on.
func TestApprovalsOnTheNewestCodex(t *testing.T) {
	server := append(ours(t), "-engine", "codex", "-codex", newest(t), "-c", "approvals.timeout=2s")
	for _, tt := range []struct {
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
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			model := providertest.New(
				providertest.Call(providertest.Tool("call_1", "exec_command", map[string]any{"cmd": "touch made"})),
				providertest.Say("done"))
			defer model.Close()
			cwd := t.TempDir()
			result := callOnce(t, server, newHome(t, model, "responses"), cwd, tt.answer)
			if _, err := os.Stat(filepath.Join(cwd, "made")); (err == nil) != tt.made {
				t.Errorf("made: %v", err)
			}
			if result.IsError != tt.failed || len(result.Content) != tt.blocks || result.Structured.ThreadID == "" {
				t.Errorf("%+v", result)
			}
		})
	}
}

// callOnce starts a server, calls codex, and answers its question.
func callOnce(t *testing.T, argv []string, home, cwd, answer string) (r result) {
	t.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = cwd
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "CODEX_HOME=" + home, "TERM=xterm"}
	transport, err := jsonrpc.Command(cmd, 5*time.Second)
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
		{"tools/call", fmt.Sprintf(`{"name":"codex","arguments":{"prompt":"go","cwd":%q,"approval-policy":"untrusted","sandbox":"workspace-write"}}`, cwd), &r},
	} {
		if err := peer.Call(ctx, call.method, json.RawMessage(call.params), call.result); err != nil {
			t.Fatalf("%s: %v", call.method, err)
		}
	}
	return r
}
