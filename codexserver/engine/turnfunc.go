package engine

import (
	"context"
	"errors"
	"sync"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/google/uuid"
)

// TurnFunc is an [Engine] made of one function, which is called once for each turn.
//
// The function's input is the client's message, which may be empty; [protocol.TextOf]
// returns its text. The last [protocol.AgentMessage] that the function emits is the turn's
// answer. TurnFunc emits the events that begin and end conversations and turns. An error
// of the function fails the turn, or aborts it if the context has ended.
type TurnFunc func(ctx context.Context, host Host, input []protocol.InputItem) error

// Start implements [Engine].
func (f TurnFunc) Start(_ context.Context, cfg protocol.Config, host Host) (Conversation, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return nil, err
	}
	c := &funcConversation{f: f, id: id.String(), host: host}
	host.Emit(protocol.SessionConfigured{SessionID: c.id, Model: cfg.Model})
	return c, nil
}

type funcConversation struct {
	f    TurnFunc
	id   string
	host Host
}

func (c *funcConversation) ID() string { return c.id }

func (c *funcConversation) Close() error { return nil }

func (c *funcConversation) Turn(ctx context.Context, in protocol.TurnInput) error {
	last := &lastMessage{Host: c.host}
	c.host.Emit(protocol.TaskStarted{})
	err := c.f(ctx, last, in.Items)
	var abort *AbortError
	switch {
	case err == nil:
		c.host.Emit(protocol.TaskComplete{LastAgentMessage: last.get()})
		return nil
	case errors.As(err, &abort):
	case ctx.Err() != nil:
		abort = &AbortError{Reason: protocol.AbortInterrupted, Cause: context.Cause(ctx)}
	default:
		failed := &TurnError{Message: err.Error()}
		c.host.Emit(protocol.Error{Message: failed.Message})
		c.host.Emit(protocol.TaskComplete{})
		return failed
	}
	c.host.Emit(protocol.TurnAborted{Reason: abort.Reason})
	return abort
}

// lastMessage remembers the last agent message that passes through it.
type lastMessage struct {
	Host
	mu  sync.Mutex
	msg *string
}

func (h *lastMessage) Emit(m protocol.EventMsg) {
	if am, ok := m.(protocol.AgentMessage); ok {
		h.mu.Lock()
		h.msg = &am.Message
		h.mu.Unlock()
	}
	h.Host.Emit(m)
}

func (h *lastMessage) get() *string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.msg
}
