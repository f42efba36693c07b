package codexserver

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/mcptypes"
)

// listTool and interruptTool are offered on request, see [Options].SessionTools.
const listTool = `{
	"name": "codex-list",
	"title": "Codex List",
	"description": "List past and present conversations, newest first. threadId is what codex-reply takes.",
	"inputSchema": {
		"type": "object",
		"properties": {
			"pageSize": {"type": "integer", "minimum": 0, "description": "How many at most; 25 by default."},
			"cursor": {"type": "string", "description": "nextCursor of the page before."}
		}
	},
	"annotations": {"readOnlyHint": true, "openWorldHint": false}
}`

const interruptTool = `{
	"name": "codex-interrupt",
	"title": "Codex Interrupt",
	"description": "Stop what a conversation is doing now. It can go on with codex-reply.",
	"inputSchema": {
		"type": "object",
		"required": ["threadId"],
		"properties": {"threadId": {"type": "string", "description": "Id of the conversation."}}
	},
	"annotations": {"readOnlyHint": false, "destructiveHint": false, "idempotentHint": true, "openWorldHint": false}
}`

// sessionTools are those that the engine can serve.
func sessionTools(e engine.Engine) []string {
	if _, ok := e.(engine.Library); ok {
		return []string{listTool, interruptTool}
	}
	return []string{interruptTool}
}

func (ss *session) callList(ctx context.Context, raw json.RawMessage) *mcptypes.CallToolResult {
	var p protocol.ListConversationsParams
	if err := decodeArguments(raw, &p); err != nil {
		return ss.toolError("", "codex-list: "+err.Error())
	}
	library, ok := ss.server.engine.(engine.Library)
	if !ok {
		return ss.toolError("", "codex-list: this engine keeps no list of conversations")
	}
	list, err := library.List(ctx, p)
	if err != nil {
		return ss.toolError("", "codex-list: "+err.Error())
	}
	type row struct {
		ThreadID  string  `json:"threadId"`
		Preview   string  `json:"preview"`
		Timestamp *string `json:"timestamp,omitempty"`
	}
	out := struct {
		Conversations []row   `json:"conversations"`
		NextCursor    *string `json:"nextCursor,omitempty"`
	}{[]row{}, list.NextCursor}
	for _, c := range list.Items {
		out.Conversations = append(out.Conversations, row{c.ConversationID, c.Preview, c.Timestamp})
	}
	text, err := json.Marshal(out)
	if err != nil {
		return ss.toolError("", "codex-list: "+err.Error())
	}
	return &mcptypes.CallToolResult{Content: mcptypes.Text(string(text)), StructuredContent: text}
}

func (ss *session) callInterrupt(ctx context.Context, raw json.RawMessage) *mcptypes.CallToolResult {
	var a replyArguments
	err := decodeArguments(raw, &a)
	if err != nil {
		return ss.toolError("", "codex-interrupt: "+err.Error())
	}
	id, err := a.thread()
	if err != nil {
		return ss.toolError("", "codex-interrupt: "+err.Error())
	}
	conv := ss.conversations.find(id)
	if conv == nil {
		return ss.toolError(id, fmt.Sprintf("codex-interrupt: no conversation %q in this session", id))
	}
	ran, err := conv.interrupt(ctx)
	switch {
	case err != nil:
		return ss.toolError(id, "codex-interrupt: "+err.Error())
	case !ran:
		return ss.toolResult(id, "Nothing was running.")
	}
	return ss.toolResult(id, "Interrupted.")
}
