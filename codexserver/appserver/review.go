package appserver

import (
	"cmp"
	"context"
	stdjson "encoding/json"
	"fmt"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/appserver/apptypes"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// A review is a turn of a read-only thread. If the conversation's thread is not read-only, a new
// one reviews in its place.

// review runs a review in a new thread.
func (c *conversation) review(ctx context.Context, in protocol.TurnInput) error {
	remove := func() {}
	defer func() { remove() }()
	start := func(ctx context.Context, r *turn) error {
		reviewer, ch, err := c.reviewer(ctx)
		if err != nil {
			return err
		}
		remove = func() { ch.remove(reviewer.id) }
		return reviewer.start(ctx, r, in)
	}
	return c.run(ctx, start, func(ctx context.Context, s *turn) { c.learn(ctx, s, in.Review) })
}

// reviewer starts a thread that is like the conversation's but read-only, in the app-server that it
// also returns.
func (c *conversation) reviewer(ctx context.Context) (*conversation, *child, error) {
	ch, err := c.engine.child(ctx)
	if err != nil {
		return nil, nil, err
	}
	if _, err := c.thread(ctx, ch, false); err != nil { // which learns what is found
		return nil, nil, err
	}
	s := *c.settings
	file, err := ch.configuration(ctx, s.now.Cwd)
	if err != nil {
		return nil, nil, err
	}
	s.keepToReading(file.keys)
	s.Cwd, s.Model = s.now.Cwd, cmp.Or(s.Model, c.model)
	s.own = at(s.now.Provider, providerKey).with(s.own)
	conv, err := c.engine.begin(ctx, ch, apptypes.CallThreadStart, s.params(""), &s, silent{c.host})
	if err != nil {
		return nil, nil, fmt.Errorf("the reviewer's own thread: %w", err)
	}
	return conv.(*conversation), ch, nil
}

// silent is a host that receives no events.
type silent struct{ engine.Host }

func (silent) Emit(protocol.EventMsg) {}

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

// remove deletes the thread of a reviewer after its turn has ended in the
// app-server. It does not wait. A thread that cannot be deleted stays in Codex's list.
func (c *child) remove(id string) {
	c.run.Go(func() {
		ctx, stop := context.WithTimeout(context.Background(), interruptLimit)
		defer stop()
		if err := c.settle(ctx, id); err != nil {
			return
		}
		if err := c.app.Call(ctx, apptypes.CallThreadDelete, apptypes.ThreadRef{ThreadID: id}, nil); err != nil {
			c.log.Debug("codex: the reviewer's thread is left", "thread", id, "error", err)
		}
		c.forget(id)
	})
}
