package tools

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/mcptypes"
)

// replyTool goes on with a conversation. Clients of several years say
// threadId, conversationId or sessionId for the same thing.
const replyTool = `{
	"name": "codex-reply",
	"title": "Codex Reply",
	"description": "Go on with a conversation that the codex tool began, by the threadId of its result.",
	"inputSchema": {
		"type": "object",
		"required": ["prompt"],
		"properties": {
			"prompt": {"type": "string", "description": "What to say next."},
			"threadId": {"type": "string", "description": "Id of the conversation."},
			"conversationId": {"type": "string", "description": "Older name of threadId."},
			"sessionId": {"type": "string", "description": "Oldest name of threadId."}
		}
	},
	"outputSchema": ` + outputSchema + `,
	"annotations": ` + annotations + `
}`

type replyArguments struct {
	Prompt         *string `json:"prompt"`
	ThreadID       string  `json:"threadId"`
	ConversationID string  `json:"conversationId"`
	SessionID      string  `json:"sessionId"`
}

// thread returns the one id that was given, in its canonical form.
func (a *replyArguments) thread() (string, error) {
	var id string
	for _, s := range []string{a.ThreadID, a.ConversationID, a.SessionID} {
		s = thread.CanonicalID(s)
		switch {
		case s == "" || s == id:
		case id == "":
			id = s
		default:
			return "", errors.New("arguments /threadId, /conversationId and /sessionId name different conversations")
		}
	}
	if id == "" {
		return "", errors.New("argument /threadId is missing")
	}
	return id, nil
}

func callReply(ctx context.Context, c *Call, raw json.RawMessage) *mcptypes.CallToolResult {
	var a replyArguments
	if err := decodeArguments(raw, &a); err != nil {
		return failure("", "codex-reply: "+err.Error())
	}
	id, err := a.thread()
	if err != nil {
		return failure("", "codex-reply: "+err.Error())
	}
	if a.Prompt == nil {
		return failure(id, "codex-reply: "+errNoPrompt.Error())
	}
	answer := newAnswer(c.Attendance)
	t, err := c.Threads.Revive(ctx, id, answer.attendance)
	if err != nil {
		return notBegun(ctx, "codex-reply", id, err)
	}
	return answer.run(ctx, t, *a.Prompt)
}
