package native

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/native/internal/rollout"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/go-json-experiment/json"
)

// headLines is how many lines of a rollout a list reads.
const headLines = 64

// readHead reads a rollout up to the user's first message.
func readHead(path string) (head protocol.ConversationSummary, err error) {
	var said *string
	n := 0
	err = rollout.Head(path, func(l protocol.RolloutLine) bool {
		var meta protocol.SessionMeta
		switch {
		case l.Type != protocol.RolloutSessionMeta:
			said = cmp.Or(said, saidIn(l))
		case json.Unmarshal(l.Payload, &meta) == nil && head.ConversationID == "":
			head.ConversationID, head.Cwd, head.Origin = meta.ID, meta.Cwd, meta.Originator
			if meta.Timestamp != "" {
				head.Timestamp = &meta.Timestamp
			}
		}
		n++
		return n < headLines && (said == nil || head.ConversationID == "")
	})
	switch head.Path = path; {
	case err != nil:
	case head.ConversationID == "":
		err = errors.New("there is no session_meta line")
	case said == nil:
		err = errors.New("the user has said nothing yet")
	default:
		head.Preview = *said
	}
	return head, err
}

// Newest returns the newest conversations in the configuration's home, at most that many, of those in which the user has
// said something.
func Newest(ctx context.Context, home string, most int) (all []protocol.ConversationSummary, err error) {
	paths, err := rollout.Paths(ctx, home)
	for _, path := range paths {
		if len(all) == most || ctx.Err() != nil {
			break
		}
		if head, err := readHead(path); err == nil {
			all = append(all, head)
		}
	}
	return all, err
}

// saidIn returns what the user says in a line, nil for nothing. Context that an engine has added is none.
func saidIn(l protocol.RolloutLine) *string {
	var texts []string
	switch l.Type {
	case protocol.RolloutResponseItem:
		item, _ := protocol.ParseItem(l.Payload) // another one says nothing
		if m, ok := item.(protocol.MessageItem); ok && m.Role == "user" {
			for _, c := range m.Content {
				if c.Type == "input_text" {
					texts = append(texts, c.Text)
				}
			}
		}
	case protocol.RolloutEventMsg:
		event, _ := protocol.ParseEvent(l.Payload)
		if m, ok := event.(protocol.UserMessage); ok && (m.Kind == "" || m.Kind == protocol.UserPlain) {
			texts = append(texts, m.Message)
		}
	}
	for _, text := range texts {
		trimmed := strings.TrimSpace(text)
		if slices.ContainsFunc([]string{"user_instructions>", "environment_context>"}, func(tag string) bool {
			return strings.HasPrefix(trimmed, "<"+tag) && strings.HasSuffix(trimmed, "</"+tag)
		}) {
			continue
		}
		// Editors put their own context before the request, under this heading.
		if _, request, ok := strings.Cut(text, "## My request for Codex:"); ok {
			text = strings.TrimSpace(request)
		}
		return &text
	}
	return nil
}
