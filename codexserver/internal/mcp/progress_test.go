package mcp_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// TestProgressOfAQuestion checks that progress says "waiting for approval" if somebody is asked, and
// only then; and that a call that becomes a task sends none at once with its answer, where clients
// drop it.
func TestProgressOfAQuestion(t *testing.T) {
	const waiting = "waiting for approval"
	denies := approval.Rules{Deny: [][]string{{"touch"}}}
	desk := &servertest.Desk{Answer: servertest.Say(servertest.Decline)}
	modern := func(capabilities string) string {
		return `,"_meta":{"progressToken":"t",` + version2026 + `,"io.modelcontextprotocol/clientCapabilities":{` + capabilities + `}}`
	}
	for _, tt := range []struct {
		name         string
		capabilities string // of the handshake
		meta         string
		options      codexserver.Options
		want         bool
		silent       bool // no progress at all
	}{
		{name: "asked", capabilities: `"elicitation":{}`, want: true},
		{name: "cannot be asked"},
		{name: "cannot be asked, but a desk", options: codexserver.Options{Desk: desk}, want: true},
		{name: "ruled", capabilities: `"elicitation":{}`, options: codexserver.Options{Rules: denies}},
		{name: "2026-07-28, asked", meta: modern(`"elicitation":{}`), want: true},
		{name: "2026-07-28, cannot be asked", meta: modern("")},
		{name: "2026-07-28, ruled", meta: modern(`"elicitation":{}`), options: codexserver.Options{Rules: denies}},
		{name: "a task", meta: modern(`"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}`), silent: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := tt.options
				o.Home, o.Changes.Off = t.TempDir(), true
				client := &audience{sent: map[string][]json.RawMessage{}}
				ours, theirs := jsonrpc.Pipe()
				peer := jsonrpc.NewPeer(ours, client, nil)
				running, served := make(chan error, 1), make(chan error, 1)
				go func() { running <- peer.Run(context.Background()) }()
				go func() { served <- codexserver.New(&servertest.Engine{}, &o).Serve(context.Background(), theirs) }()
				defer func() {
					peer.Close()
					<-running
					<-served
				}()
				meta := tt.meta
				if meta == "" {
					meta = `,"_meta":{"progressToken":"t"}`
					var hello json.RawMessage
					if err := peer.Call(t.Context(), "initialize", json.RawMessage(
						`{"protocolVersion":"2025-11-25","capabilities":{`+tt.capabilities+`},"clientInfo":{"name":"c","version":"1"}}`), &hello); err != nil {
						t.Fatal(err)
					}
				}
				var result json.RawMessage
				if err := peer.Call(t.Context(), "tools/call", json.RawMessage(`{"name":"codex","arguments":{"prompt":"touch say:done"}`+meta+`}`), &result); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				messages := client.progress(t)
				if got := slices.Contains(messages, waiting); got != tt.want || tt.silent && len(messages) > 0 {
					t.Errorf("progress %q before %s", messages, result)
				}
				if tt.silent && !strings.Contains(string(result), `"resultType":"task"`) {
					t.Errorf("no task: %s", result)
				}
			})
		})
	}
}
