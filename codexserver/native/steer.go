package native

import (
	"context"
	"errors"
	"sync"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// inboxMessage is a message that arrived while a turn runs.
type inboxMessage struct {
	message protocol.MessageItem
	event   protocol.UserMessage
}

// inbox holds the messages that have arrived and that the model has not read.
type inbox struct {
	ready chan struct{} // closed when the turn accepts messages, or has ended

	mu       sync.Mutex
	closed   bool
	messages []inboxMessage
}

// take returns the messages since the last take, oldest first.
func (b *inbox) take() []inboxMessage {
	b.mu.Lock()
	defer b.mu.Unlock()
	messages := b.messages
	b.messages = nil
	return messages
}

// empty reports whether there are no messages.
func (b *inbox) empty() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.messages) == 0
}

// done closes the inbox unless it has messages, and reports whether it did.
func (b *inbox) done() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = len(b.messages) == 0
	return b.closed
}

// close closes the inbox and returns its messages.
func (b *inbox) close() []inboxMessage {
	b.mu.Lock()
	b.closed = true
	select {
	case <-b.ready:
	default:
		close(b.ready)
	}
	b.mu.Unlock()
	return b.take()
}

// put adds a message. It waits until the turn accepts messages.
func (b *inbox) put(ctx context.Context, m inboxMessage) error {
	select {
	case <-b.ready:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return engine.ErrNoTurn
	}
	b.messages = append(b.messages, m)
	return nil
}

// Steer implements [engine.Steerer].
func (c *conversation) Steer(ctx context.Context, items []protocol.InputItem) error {
	if len(items) == 0 {
		return &engine.RefusedError{Err: errors.New("the message is empty")}
	}
	box := c.inbox.Load()
	if box == nil {
		return engine.ErrNoTurn
	}
	message, event, err := readInput(c.cfg.Cwd, permitted(c.cfg), items)
	if err != nil {
		return &engine.RefusedError{Err: err}
	}
	return box.put(ctx, inboxMessage{message, event})
}

// hear moves messages of the inbox to the history. It is called when every call there has its answer: before a
// request to the model and, for the next turn, at the end.
func (t *turn) hear(messages []inboxMessage) {
	for _, l := range messages {
		t.conv.record(l.message)
		t.conv.checkWrite(t.conv.saved.file.Event(l.event))
		t.conv.emit(l.event)
	}
}
