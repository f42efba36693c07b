package servertest

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// Engine is an engine with every optional interface of a server's engine. It records what it is
// asked for. An [engine.TurnFunc] is an engine without them.
type Engine struct {
	// Turn runs the turns. Nil is [Script].
	Turn engine.TurnFunc
	// Err is the error of Start. The profile "nosuch" fails anyway.
	Err error
	// Messages receives the messages for running turns. Nil means that turns take none.
	Messages chan string
	// ModelList is the result of Models. Nil is an empty list.
	ModelList *protocol.ModelList

	started record[Conversation]
	resumed record[protocol.Config]
	turns   record[protocol.TurnInput]
}

// Conversation is a conversation that an engine has started.
type Conversation struct {
	ID     string
	Config protocol.Config
}

// Started returns the conversations in order, without those that were resumed.
func (e *Engine) Started() []Conversation { return e.started.list() }

// Resumed returns the configurations of the conversations that were resumed.
func (e *Engine) Resumed() []protocol.Config { return e.resumed.list() }

// Turns returns the inputs of the turns.
func (e *Engine) Turns() []protocol.TurnInput { return e.turns.list() }

func (e *Engine) Start(ctx context.Context, cfg protocol.Config, host engine.Host) (engine.Conversation, error) {
	if e.Err != nil {
		return nil, e.Err
	}
	if cfg.Profile == "nosuch" {
		return nil, &engine.ConfigError{Err: errors.New("no profile nosuch")}
	}
	c, err := e.begin(ctx, cfg, placedHost{host, cfg.Cwd})
	if err == nil {
		e.started.add(Conversation{c.ID(), cfg})
	}
	return c, err
}

func (e *Engine) begin(ctx context.Context, cfg protocol.Config, host engine.Host) (engine.Conversation, error) {
	turn := e.Turn
	if turn == nil {
		turn = Script()
	}
	c, err := turn.Start(ctx, cfg, host)
	if err != nil {
		return nil, err
	}
	recorded := conversation{c, e}
	if e.Messages != nil {
		return steerable{recorded}, nil
	}
	return recorded, nil
}

func (*Engine) Traits() engine.Traits { return engine.Traits{} }

// placedHost says where the conversation works.
type placedHost struct {
	engine.Host
	cwd string
}

func (h placedHost) Emit(m protocol.EventMsg) {
	if s, ok := m.(protocol.SessionConfigured); ok {
		s.Cwd = h.cwd
		m = s
	}
	h.Host.Emit(m)
}

type conversation struct {
	engine.Conversation
	engine *Engine
}

func (c conversation) Turn(ctx context.Context, in protocol.TurnInput) error {
	c.engine.turns.add(in)
	return c.Conversation.Turn(ctx, in)
}

// steerable is a conversation whose turns take messages.
type steerable struct{ conversation }

func (c steerable) Steer(_ context.Context, items []protocol.InputItem) error {
	c.engine.Messages <- protocol.TextOf(items)
	return nil
}

const rollouts = "/rollouts/"

// Find implements [engine.Resumer]. It finds the conversations that were started, and one with the id "past".
func (e *Engine) Find(_ context.Context, id string) (engine.Saved, error) {
	if id != "past" && !slices.ContainsFunc(e.Started(), func(s Conversation) bool { return s.ID == id }) {
		return engine.Saved{}, engine.ErrNotFound
	}
	return engine.Saved{ID: id, File: rollouts + id}, nil
}

func (e *Engine) Resume(
	ctx context.Context, saved engine.Saved, cfg protocol.Config, host engine.Host,
) (engine.Conversation, error) {
	id := saved.ID
	if saved.File != rollouts+id {
		return nil, engine.ErrNotFound
	}
	before := cfg
	e.resumed.add(cfg)
	for _, s := range e.Started() {
		if s.ID == id {
			before = s.Config
		}
	}
	c, err := e.begin(ctx, before, resumedHost{placedHost{host, before.Cwd}, id})
	if err != nil {
		return nil, err
	}
	r := resumption{c, id}
	if s, ok := c.(steerable); ok {
		return struct {
			resumption
			engine.Steerer
		}{r, s}, nil
	}
	return r, nil
}

// resumption is a conversation with the id of an earlier one.
type resumption struct {
	engine.Conversation
	id string
}

func (r resumption) ID() string { return r.id }

type resumedHost struct {
	engine.Host
	id string
}

func (h resumedHost) Emit(m protocol.EventMsg) {
	if _, ok := m.(protocol.SessionConfigured); ok {
		m = protocol.SessionConfigured{SessionID: h.id, Model: "m", InitialMessages: []json.RawMessage{
			json.RawMessage(`{"type":"user_message","message":"before"}`),
		}}
	}
	h.Host.Emit(m)
}

// List implements [engine.Library]. It lists the conversations that were started, in upper
// case, or one with the id "past" if there are none. It has one page, so no cursor is valid.
func (e *Engine) List(
	_ context.Context, p protocol.ListConversationsParams,
) (*protocol.ListConversationsResult, error) {
	if p.Cursor != "" {
		return nil, engine.ErrCursor
	}
	r := &protocol.ListConversationsResult{}
	for _, s := range e.Started() {
		r.Items = append(r.Items, protocol.ConversationSummary{ConversationID: strings.ToUpper(s.ID), Preview: "p"})
	}
	if len(r.Items) == 0 {
		r.Items = []protocol.ConversationSummary{{ConversationID: "past", Path: rollouts + "past", Preview: "before"}}
	}
	return r, nil
}

func (e *Engine) Models(context.Context) (*protocol.ModelList, error) {
	if e.ModelList == nil {
		return &protocol.ModelList{}, nil
	}
	return e.ModelList, nil
}
