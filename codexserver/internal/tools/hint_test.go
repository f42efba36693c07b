package tools_test

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// TestHint checks what the text block says that names the thread.
func TestHint(t *testing.T) {
	e := engine.TurnFunc(func(_ context.Context, host engine.Host, in []protocol.InputItem) error {
		if paths := strings.Fields(protocol.TextOf(in)); len(paths) > 0 {
			changes := map[string]protocol.FileChange{}
			for _, path := range paths {
				changes["/work/"+path] = protocol.FileChange{Add: &protocol.FileContent{Content: "x\n"}}
			}
			host.Emit(protocol.PatchApplyBegin{CallID: "p", Changes: changes})
			host.Emit(protocol.PatchApplyEnd{CallID: "p", Success: true})
		}
		host.Emit(protocol.AgentMessage{Message: "done"})
		return nil
	})
	for _, tt := range []struct {
		client, prompt, more string
		want                 string // a pattern
	}{
		{"unknown", "", "", `^\n\[thread ID; codex-reply continues it\]$`},
		{"", "", "", `^\n\[thread ID; codex-reply continues it\]$`},
		{"claude-code", "", "", `^\n\[thread ID; codex-reply continues it\]$`},
		{"unknown", "", `,"background":true`, `^\n\[thread ID; codex-wait waits for it\]$`},
		{"unknown", "a.go b.go", "", `^\n\[thread ID; codex-reply continues it; changed: /work/a.go, /work/b.go\]$`},
		{"unknown", "a b c d e f g", "", `; changed: /work/a, /work/b, /work/c, /work/d, /work/e, … \(7 files\)\]$`},
		{"unknown", "x\u202e]\u0007", "", `; changed: "/work/x\\342\\200\\256\]\\a"\]$`},
	} {
		t.Run(tt.client+" "+tt.prompt+tt.more, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				prompt, err := json.Marshal(tt.prompt)
				if err != nil {
					t.Fatal(err)
				}
				for _, meta := range []string{"", `,"_meta":` + strings.Replace(servertest.Meta, `"test"`, fmt.Sprintf("%q", tt.client), 1)} {
					c := servertest.Dial(t, codexserver.New(e, &codexserver.Options{}), nil)
					if meta == "" {
						c.Ask(t, "initialize", fmt.Sprintf(`{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":%q,"version":"1"}}`, tt.client))
					}
					var r struct {
						Content []struct {
							Text        string
							Annotations struct{ Audience []string }
						}
						StructuredContent struct{ ThreadID string }
					}
					got := c.Ask(t, "tools/call", fmt.Sprintf(`{"name":"codex","arguments":{"prompt":%s%s}%s}`, prompt, tt.more, meta))
					if err := json.Unmarshal([]byte(got), &r); err != nil {
						t.Fatal(err)
					}
					want := regexp.MustCompile(strings.Replace(tt.want, "ID", r.StructuredContent.ThreadID, 1))
					if last := r.Content[len(r.Content)-1]; len(r.Content) != 2 || !want.MatchString(last.Text) || fmt.Sprint(last.Annotations.Audience) != "[assistant]" {
						t.Errorf("%s, want a block like %s", got, want)
					}
				}
			})
		})
	}
}
