package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/mcptypes"
)

// TestBlocksDoNotRunTogether joins the blocks of results without a separator, as some
// clients do. The first block is the answer, unchanged.
func TestBlocksDoNotRunTogether(t *testing.T) {
	e := engine.TurnFunc(func(ctx context.Context, host engine.Host, in []protocol.InputItem) error {
		if protocol.TextOf(in) == "fail" {
			return errors.New("no model")
		}
		host.ApproveExec(ctx, protocol.ExecApprovalRequest{CallID: "c", Command: []string{"git", "init"}, Cwd: "/work"})
		host.Emit(protocol.AgentMessage{Message: "the answer"})
		return nil
	})
	synctest.Test(t, func(t *testing.T) {
		c := servertest.Connect(t, codexserver.New(e, nil), nil)
		thread := ""
		for _, tt := range []struct{ tool, arguments, first string }{
			{"codex", `{"prompt":"ask"}`, "the answer"}, // and why the question was not answered
			{"codex", `{"prompt":"fail"}`, "no model"},  // and what the turn did
			{"codex-show", `{"threadId":"THREAD","what":"transcript"}`, "=== turn 1, "},
		} {
			arguments := strings.Replace(tt.arguments, "THREAD", thread, 1)
			r, err := mcptypes.ToolsCall.Call(t.Context(), c, &mcptypes.CallToolRequestParams{Name: tt.tool, Arguments: json.RawMessage(arguments)})
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Content) < 2 {
				t.Errorf("%s %s: one block", tt.tool, arguments)
			}
			for i, block := range r.Content {
				text := block.(*mcptypes.TextContent).Text
				switch {
				case i == 0 && !strings.HasPrefix(text, tt.first):
					t.Errorf("%s %s: the first block is %q", tt.tool, arguments, text)
				case i > 0 && (!strings.HasPrefix(text, "\n") || strings.HasPrefix(text, "\n\n")):
					t.Errorf("%s %s: block %d is %q", tt.tool, arguments, i, text)
				}
			}
			var structured struct{ ThreadID, Content string }
			if err := json.Unmarshal(r.StructuredContent, &structured); err != nil || strings.Contains(structured.Content, "\n\n\n") {
				t.Errorf("%s %s: structured %s, %v", tt.tool, arguments, r.StructuredContent, err)
			}
			if thread == "" {
				thread = structured.ThreadID
			}
		}
	})
}
