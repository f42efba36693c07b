package native

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// letter is a message that came while a turn runs.
type letter struct {
	items   []protocol.InputItem
	message protocol.MessageItem
	event   protocol.UserMessage
}

// inbox holds the messages that a turn has taken and the model has not read.
type inbox struct {
	ready chan struct{} // closed when the turn takes messages, or has ended

	mu      sync.Mutex
	cwd     string // what files in messages are relative to
	closed  bool
	letters []letter
}

func newInbox() *inbox { return &inbox{ready: make(chan struct{})} }

// open begins to take messages: the turn's own is part of the history.
func (b *inbox) open(cwd string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cwd = cwd
	close(b.ready)
}

// take returns what has come since the last time, in its order.
func (b *inbox) take() []letter {
	b.mu.Lock()
	defer b.mu.Unlock()
	letters := b.letters
	b.letters = nil
	return letters
}

// empty reports whether nothing has come.
func (b *inbox) empty() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.letters) == 0
}

// done closes the inbox unless something has come.
func (b *inbox) done() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = len(b.letters) == 0
	return b.closed
}

// close takes nothing more and returns what is left.
func (b *inbox) close() []letter {
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

// put adds a message.
func (b *inbox) put(ctx context.Context, items []protocol.InputItem) error {
	select {
	case <-b.ready:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	b.mu.Lock()
	cwd, closed := b.cwd, b.closed
	b.mu.Unlock()
	if closed {
		return engine.ErrNoTurn
	}
	message, event, err := readInput(cwd, items)
	if err != nil {
		return &engine.RefusedError{Err: err}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return engine.ErrNoTurn
	}
	b.letters = append(b.letters, letter{items, message, event})
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
	return box.put(ctx, items)
}

// hear makes the messages that have come part of the history. It is called before
// a request to the model, when every call in the history has its answer.
func (t *turn) hear() {
	for _, l := range t.inbox.take() {
		t.keepLetter(l)
		t.said = append(slices.Clip(t.said), l.items...)
	}
}

// miss keeps the messages that the turn's end has overtaken for the next turn.
func (t *turn) miss(left []letter) {
	for _, l := range left {
		t.keepLetter(l)
	}
	if len(left) > 0 {
		t.emit(protocol.BackgroundEvent{Message: fmt.Sprintf(
			"the turn ended before the model read what came while it ran (%d); it is kept for the next turn", len(left))})
	}
}

func (t *turn) keepLetter(l letter) {
	t.record(l.message)
	t.keep(t.file.Event(l.event))
	t.emit(l.event)
}
