package codexserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/mcptypes"
	"github.com/google/uuid"
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
	"annotations": ` + toolAnnotations + `
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
		s = canonicalID(s)
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

// canonicalID returns a UUID in the form that conversations bear. Clients write
// it in capitals, in braces, without hyphens or as urn:uuid:, as Codex let them.
// Any other text stays as it is.
func canonicalID(id string) string {
	if uuid.Validate(id) != nil {
		return id
	}
	return uuid.MustParse(id).String()
}

func (ss *session) callReply(ctx context.Context, c *call, raw json.RawMessage) *mcptypes.CallToolResult {
	var a replyArguments
	if err := decodeArguments(raw, &a); err != nil {
		return ss.toolError("", "codex-reply: "+err.Error())
	}
	id, err := a.thread()
	if err != nil {
		return ss.toolError("", "codex-reply: "+err.Error())
	}
	if a.Prompt == nil {
		return ss.toolError(id, "codex-reply: "+errNoPrompt.Error())
	}
	conv, err := ss.revive(ctx, c, id)
	if err != nil {
		return ss.toolError(id, "codex-reply: "+err.Error())
	}
	err = conv.run(ctx, conv.line.join(), c, protocol.TurnInput{Items: protocol.TextInput(*a.Prompt)})
	return c.result(id, err)
}

// revive finds a conversation of this session, or takes one of an earlier
// process up from its rollout.
func (ss *session) revive(ctx context.Context, c *call, id string) (*conversation, error) {
	ss.reviving.Lock()
	defer ss.reviving.Unlock()
	if conv := ss.conversations.find(id); conv != nil {
		return conv, nil
	}
	r, ok := ss.server.engine.(engine.Resumer)
	if !ok {
		return nil, fmt.Errorf("no conversation %q in this session", id)
	}
	path, err := r.FindRollout(ctx, id)
	if errors.Is(err, engine.ErrNotFound) {
		return nil, fmt.Errorf("no conversation %q, here or in a rollout", id)
	}
	if err != nil {
		return nil, err
	}
	return ss.resume(ctx, r, path, c, protocol.Config{})
}
