package native

import (
	"errors"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/native/internal/rollout"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/go-json-experiment/json"
)

// headLines is how many lines of a rollout a list reads.
const headLines = 64

// head is the beginning of a rollout.
type head struct {
	protocol.ConversationSummary
	said bool // the preview is set
}

// readHead reads a rollout up to the user's first message.
func readHead(path string) (protocol.ConversationSummary, error) {
	h, n := &head{}, 0
	err := rollout.Head(path, func(l protocol.RolloutLine) bool {
		h.add(l)
		n++
		return n < headLines && !(h.said && h.ConversationID != "")
	})
	switch {
	case err == nil && h.ConversationID == "":
		err = errors.New("there is no session_meta line")
	case err == nil && !h.said:
		err = errors.New("the user has said nothing yet")
	}
	h.Path = path
	return h.ConversationSummary, err
}

func (h *head) add(l protocol.RolloutLine) {
	switch l.Type {
	case protocol.RolloutSessionMeta:
		var meta protocol.SessionMeta
		if json.Unmarshal(l.Payload, &meta) == nil && h.ConversationID == "" {
			h.ConversationID, h.Cwd, h.Origin = meta.ID, meta.Cwd, meta.Originator
			if meta.Timestamp != "" {
				h.Timestamp = &meta.Timestamp
			}
		}
	case protocol.RolloutResponseItem:
		item, _ := protocol.ParseItem(l.Payload) // another one says nothing
		if m, ok := item.(protocol.MessageItem); ok && m.Role == "user" {
			for _, c := range m.Content {
				if c.Type == "input_text" && h.say(c.Text) {
					return
				}
			}
		}
	case protocol.RolloutEventMsg:
		event, _ := protocol.ParseEvent(l.Payload)
		if m, ok := event.(protocol.UserMessage); ok && (m.Kind == "" || m.Kind == protocol.UserPlain) {
			h.say(m.Message)
		}
	}
}

// say sets the preview if text is the user's first message. It returns false for context
// that an engine has added.
func (h *head) say(text string) bool {
	trimmed := strings.TrimSpace(text)
	for _, tag := range []string{"user_instructions>", "environment_context>"} {
		if strings.HasPrefix(trimmed, "<"+tag) && strings.HasSuffix(trimmed, "</"+tag) {
			return false
		}
	}
	if h.said {
		return true
	}
	// Editors put their own context before the request, under this heading.
	if _, request, ok := strings.Cut(text, "## My request for Codex:"); ok {
		text = strings.TrimSpace(request)
	}
	h.Preview, h.said = text, true
	return true
}
