package mcptool

import (
	"context"
	_ "embed"
	"encoding/json"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/mcptypes"
)

//go:embed list.json
var listTool string

// list is the tool codex-list.
type list struct{ library engine.Library }

func (l list) call(ctx context.Context, call *call, p *protocol.ListConversationsParams) *mcptypes.CallToolResult {
	page, err := l.library.List(ctx, *p)
	if err != nil {
		return failure("", "codex-list: "+err.Error())
	}
	type row struct {
		ThreadID  string  `json:"threadId"`
		Preview   string  `json:"preview"`
		Timestamp *string `json:"timestamp,omitempty"`
		Status    Status  `json:"status,omitempty"`
		Doing     string  `json:"doing,omitempty"`
	}
	out := struct {
		Conversations []row   `json:"conversations"`
		NextCursor    *string `json:"nextCursor,omitempty"`
	}{[]row{}, page.NextCursor}
	for _, c := range page.Items {
		one := row{ThreadID: c.ConversationID, Preview: elicit.OneLine(c.Preview, 0), Timestamp: c.Timestamp}
		if j := call.Jobs.of(thread.CanonicalID(c.ConversationID)); j != nil && !j.over() {
			s := j.State()
			one.Status, one.Doing = s.Status, s.Words()
		}
		out.Conversations = append(out.Conversations, one)
	}
	text, err := json.Marshal(out)
	if err != nil {
		return failure("", "codex-list: "+err.Error())
	}
	return &mcptypes.CallToolResult{Content: mcptypes.Text(string(text)), StructuredContent: text}
}
