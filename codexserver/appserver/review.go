package appserver

import (
	"cmp"
	"context"
	stdjson "encoding/json"
	"fmt"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/appserver/apptypes"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// A review is a turn of a read-only thread. If the conversation's thread is not read-only, a new
// one reviews in its place.

// review runs a review in a new thread.
func (c *conversation) review(ctx context.Context, in protocol.TurnInput) error {
	return c.run(ctx, func(ctx context.Context, r *turn) error {
		reviewer, err := c.reviewer(ctx)
		if err != nil {
			return err
		}
		return reviewer.start(ctx, r, in)
	}, func(ctx context.Context, s *turn) { c.learn(ctx, s, in.Review) })
}

// reviewer starts a thread that is like the conversation's but read-only, and that Codex does not keep.
func (c *conversation) reviewer(ctx context.Context) (*conversation, error) {
	ch, err := c.engine.child(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := c.thread(ctx, ch, false); err != nil { // which learns what is found
		return nil, err
	}
	s := *c.settings
	file, err := ch.configuration(ctx, s.now.Cwd)
	if err != nil {
		return nil, err
	}
	s.keepToReading(file.keys)
	s.Ephemeral = true
	s.Cwd, s.Model = s.now.Cwd, cmp.Or(s.Model, c.model)
	s.own = at(s.now.Provider, providerKey).with(s.own)
	conv, err := c.engine.begin(ctx, ch, "", &s, c.host)
	if err != nil {
		return nil, fmt.Errorf("the reviewer's own thread: %w", err)
	}
	return conv.(*conversation), nil
}

// learn adds what the reviewer found to the conversation's thread.
func (c *conversation) learn(ctx context.Context, s *turn, r *protocol.Review) {
	s.mu.Lock()
	found := s.answer()
	s.mu.Unlock()
	if found == nil {
		return
	}
	words := strings.TrimSpace("Another reviewer has looked at the changes here: " + string(r.Target) + " " + r.Revision)
	raw, err := protocol.AppendItem(nil, protocol.MessageItem{
		Role: "user", Content: []protocol.ContentItem{{Type: "input_text", Text: words + ". What it found:\n\n" + *found}},
	})
	if err == nil {
		p := apptypes.InjectParams{ThreadID: c.id, Items: []stdjson.RawMessage{raw}}
		err = s.thread.child.control(ctx, apptypes.CallThreadInjectItems, p, nil)
	}
	if err != nil {
		c.host.Emit(protocol.BackgroundEvent{Message: fmt.Sprintf("what the review found could not be added to the conversation: %v", err)})
	}
}
