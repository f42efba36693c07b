package tools_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// TestLimitOfTheAnswer checks that limits.result limits the text of a result as well as its
// structured content, whatever the way of the result, and that codex-show has all of it.
func TestLimitOfTheAnswer(t *testing.T) {
	const limit = 5000
	long := "begin " + strings.Repeat("\"long\"\n", 2*limit) + "end"
	e := &servertest.Engine{Turn: func(_ context.Context, h engine.Host, in []protocol.InputItem) error {
		switch prompt := protocol.TextOf(in); prompt {
		case "fail":
			h.Emit(protocol.Error{Message: long})
			return &engine.TurnError{Message: long}
		case "short":
			h.Emit(protocol.AgentMessage{Message: prompt})
		default:
			h.Emit(protocol.AgentMessage{Message: long})
		}
		return nil
	}}
	for _, tt := range []struct {
		name, prompt, background string
		tools                    []string // nil is all
		isError                  bool
		note                     string // "" if nothing is cut
	}{
		{"short", "short", "", nil, false, ""},
		{"a success", "say", "", nil, false, "[cut: codex-show has the whole answer, in the transcript]"},
		{"a failure", "fail", "", nil, true, "[cut: codex-show has the whole answer, in the transcript]"},
		{"in the background", "say", `,"background":true`, nil, false, "[cut: codex-show has the whole answer, in the transcript]"},
		{"a failure in the background", "fail", `,"background":true`, nil, false, "[cut: codex-show has the whole answer, in the transcript]"},
		{"without codex-show", "say", "", []string{"codex-wait"}, false, "[cut: the answer is longer than limits.result]"},
	} {
		for era, meta := range map[string]string{"2025-11-25": "", "2026-07-28": `,"_meta":` + servertest.Meta} {
			t.Run(tt.name+" "+era, func(t *testing.T) {
				c := servertest.Dial(t, codexserver.New(e, &codexserver.Options{Calls: codexserver.CallOptions{MaxResult: limit, Tools: tt.tools}}), nil)
				call := func(tool, arguments string) string {
					return c.Ask(t, "tools/call", fmt.Sprintf(`{"name":%q,"arguments":{%s}%s}`, tool, arguments, meta))
				}
				result := call("codex", fmt.Sprintf(`"prompt":%q%s`, tt.prompt, tt.background))
				id := servertest.ThreadOf(t, result)
				if tt.background != "" {
					result = call("codex-wait", fmt.Sprintf(`"threadIds":[%q]`, id))
				}
				var r struct {
					IsError           bool
					Content           []struct{ Text json.RawMessage }
					StructuredContent json.RawMessage
				}
				if err := json.Unmarshal([]byte(result), &r); err != nil {
					t.Fatal(err)
				}
				text := string(r.Content[0].Text)
				if tt.note != "" && tt.background == "" && !strings.HasSuffix(text, tt.note+`"`) || !strings.Contains(text, tt.note) {
					t.Errorf("the text ends with %q", text[max(0, len(text)-200):])
				}
				header := len(id) + len(` (completed): `)
				if len(text) > limit+header || len(r.StructuredContent) > limit+len(`{"threads":[]}`) || r.IsError != tt.isError {
					t.Errorf("%d bytes of text, %d of structured content, isError %t", len(text), len(r.StructuredContent), r.IsError)
				}
				if tt.tools != nil || tt.note == "" {
					return
				}
				var whole strings.Builder
				for offset := int64(0); ; {
					var p struct {
						StructuredContent struct {
							Content string
							Next    int64
						}
					}
					if err := json.Unmarshal([]byte(call("codex-show", fmt.Sprintf(`"threadId":%q,"what":"transcript","offset":%d`, id, offset))), &p); err != nil {
						t.Fatal(err)
					}
					whole.WriteString(p.StructuredContent.Content)
					if offset = p.StructuredContent.Next; offset == 0 {
						break
					}
				}
				if n := strings.Count(whole.String(), `"long"`); n < 2*limit {
					t.Errorf("the transcript has %d of %d lines", n, 2*limit)
				}
			})
		}
	}
}
