package engine

import (
	"cmp"
	"context"
	"errors"
	"sync/atomic"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/google/uuid"
)

// TurnFunc is an [Engine] made of one function, which is called once for each turn.
//
// The function's input is the client's message, which may be empty; [protocol.TextOf]
// returns its text. The last [protocol.AgentMessage] that the function emits is the turn's
// answer. [ConfigOf] returns the configuration, such as the working folder and the sandbox
// mode. TurnFunc emits the events that begin and end conversations and turns. An error of
// the function fails the turn. An [*AbortError] aborts it, and so does any error after the
// context has ended.
type TurnFunc func(ctx context.Context, host Host, input []protocol.InputItem) error

// Start implements [Engine].
func (f TurnFunc) Start(_ context.Context, cfg protocol.Config, host Host) (Conversation, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return nil, err
	}
	c := &funcConversation{f: f, id: id.String(), host: host, cfg: cfg}
	host.Emit(protocol.SessionConfigured{SessionID: c.id, Model: cfg.Model})
	return c, nil
}

// Named returns f as an engine with a name, see [Traits].
func (f TurnFunc) Named(name string) Engine { return namedFunc{f, name} }

type namedFunc struct {
	TurnFunc
	name string
}

// Traits implements [Describer].
func (f namedFunc) Traits() Traits { return Traits{Name: f.name} }

type funcConversation struct {
	f    TurnFunc
	id   string
	host Host
	cfg  protocol.Config // only the turn uses it
}

type configKey struct{}

// ConfigOf returns the configuration of the turn that a [TurnFunc] runs with ctx: that of
// the conversation, with what this turn and earlier ones have changed. With another context
// it is the zero value. Callers must not change what it points to.
func ConfigOf(ctx context.Context) protocol.Config {
	cfg, _ := ctx.Value(configKey{}).(protocol.Config)
	return cfg
}

func (c *funcConversation) ID() string { return c.id }

func (c *funcConversation) Close() error { return nil }

func (c *funcConversation) Turn(ctx context.Context, in protocol.TurnInput) error {
	last := &lastMessage{Host: c.host}
	c.host.Emit(protocol.TaskStarted{})
	c.cfg.Effort = cmp.Or(in.Effort, c.cfg.Effort) // for later turns, too
	err := c.f(context.WithValue(ctx, configKey{}, c.cfg), last, in.Items)
	var abort *AbortError
	switch {
	case err == nil:
		c.host.Emit(protocol.TaskComplete{LastAgentMessage: last.msg.Load()})
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
	abort = abort.complete()
	c.host.Emit(protocol.TurnAborted{Reason: abort.Reason})
	return abort
}

// lastMessage remembers the last agent message that passes through it.
type lastMessage struct {
	Host
	msg atomic.Pointer[string]
}

func (h *lastMessage) Emit(m protocol.EventMsg) {
	if am, ok := m.(protocol.AgentMessage); ok {
		h.msg.Store(&am.Message)
	}
	h.Host.Emit(m)
}
