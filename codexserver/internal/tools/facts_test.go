package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/mcptypes"
	"github.com/google/go-cmp/cmp"
)

// runs is an engine that runs as many commands as the prompt says, and fails with
// commands to spare.
var runs = engine.TurnFunc(func(_ context.Context, host engine.Host, in []protocol.InputItem) error {
	n, fails := 0, ""
	fmt.Sscan(protocol.TextOf(in), &n, &fails) // missing numbers are zero
	for i := range n {
		id := fmt.Sprint("c", i)
		host.Emit(protocol.ExecCommandBegin{CallID: id, Command: []string{"go", "test", "./" + id}, Cwd: "/work"})
		host.Emit(protocol.ExecCommandEnd{CallID: id, ExitCode: 3})
	}
	if fails != "" {
		return errors.New("the model is not there")
	}
	host.Emit(protocol.AgentMessage{Message: "all is done"})
	return nil
})

// block is one of a result's content.
type block struct {
	Text     string
	Audience []mcptypes.Role
}

// TestFactsOfAFailedTurn looks for the text block that says what a turn did. It is in error
// results, because clients pass only the texts of errors to their models. Its first line is the
// hint.
func TestFactsOfAFailedTurn(t *testing.T) {
	for _, tt := range []struct {
		prompt string
		text   string
		failed bool
		most   int // bytes of the last block
		cut    bool
	}{
		{"2", "all is done", false, 0, false},
		{"0 fails", "the model is not there", true, 4200, false},
		{"2 fails", "the model is not there", true, 4200, false},
		{"200 fails", "the model is not there", true, 4200, true},
	} {
		t.Run(tt.prompt, func(t *testing.T) {
			check := func(t *testing.T, blocks []block, structured json.RawMessage) {
				t.Helper()
				if len(blocks) == 0 || blocks[0].Text != tt.text || blocks[0].Audience != nil {
					t.Fatalf("blocks %q", blocks)
				}
				if !tt.failed {
					if len(blocks) != 2 || !strings.HasPrefix(blocks[1].Text, "\n[thread ") {
						t.Errorf("blocks %q", blocks)
					}
					return
				}
				if len(blocks) != 2 || !cmp.Equal(blocks[1].Audience, []mcptypes.Role{mcptypes.RoleAssistant}) {
					t.Fatalf("blocks %q", blocks)
				}
				if n := len(blocks[1].Text); n > tt.most {
					t.Errorf("%d bytes, want %d at most", n, tt.most)
				}
				hint, facts, _ := strings.Cut(strings.TrimPrefix(blocks[1].Text, "\n"), "\n")
				if !strings.HasPrefix(hint, "[thread ") || !strings.HasSuffix(hint, "; codex-reply continues it]") {
					t.Errorf("the hint is %q", hint)
				}
				var got, want map[string]any
				if err := errors.Join(json.Unmarshal([]byte(facts), &got), json.Unmarshal(structured, &want)); err != nil {
					t.Fatal(err)
				}
				if want["content"] != tt.text || want["status"] != "failed" {
					t.Errorf("structured content %v", want)
				}
				want["content"] = ""
				if tt.cut {
					if got["truncated"] == nil || len(got["commands"].([]any)) == 0 {
						t.Errorf("the block is %v", got)
					}
					for _, m := range []map[string]any{got, want} {
						delete(m, "truncated")
						delete(m, "commands")
					}
				}
				if d := cmp.Diff(want, got); d != "" {
					t.Errorf("the block and structured content (-want +got)\n%s", d)
				}
			}
			for era, meta := range map[string]string{"legacy": "{}", "modern": servertest.Meta} {
				t.Run(era, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						c := servertest.Dial(t, codexserver.New(runs, nil), nil)
						var r struct {
							Content []struct {
								Text        string
								Annotations struct{ Audience []mcptypes.Role }
							}
							StructuredContent json.RawMessage
						}
						got := c.Ask(t, "tools/call", fmt.Sprintf(`{"name":"codex","arguments":{"prompt":%q},"_meta":%s}`, tt.prompt, meta))
						if err := json.Unmarshal([]byte(got), &r); err != nil {
							t.Fatal(err)
						}
						var blocks []block
						for _, b := range r.Content {
							blocks = append(blocks, block{b.Text, b.Annotations.Audience})
						}
						check(t, blocks, r.StructuredContent)
					})
				})
			}
		})
	}
}
