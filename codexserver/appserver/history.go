package appserver

import (
	"context"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/appserver/appclient"
	"github.com/codexmcp/codexmcp/codexserver/appserver/apptypes"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/go-json-experiment/json"
)

// Resume implements [engine.Resumer]. Cfg overrides the settings with which the
// conversation was started, unless this app-server still has its thread loaded.
func (e *Engine) Resume(ctx context.Context, saved engine.Saved, cfg protocol.Config, host engine.Host) (engine.Conversation, error) {
	if cfg.Continues {
		return e.resumeCut(ctx, saved, cfg, host)
	}
	return e.reopen(ctx, saved, cfg, host)
}

// reopen resumes a thread.
func (e *Engine) reopen(ctx context.Context, saved engine.Saved, cfg protocol.Config, host engine.Host) (engine.Conversation, error) {
	id := saved.ID
	if err := checkID(id); err != nil {
		return nil, &engine.RefusedError{Err: err}
	}
	if !strings.HasSuffix(saved.File, id+".jsonl") {
		return nil, &engine.RefusedError{Err: fmt.Errorf("%q is not the file of conversation %s", saved.File, id)}
	}
	if _, err := os.Stat(saved.File); err != nil {
		return nil, fmt.Errorf("%s: %w", saved.File, engine.ErrNotFound)
	}
	e.programs.Given(cfg.Cwd)
	c, err := e.child(ctx)
	if err != nil {
		return nil, err
	}
	s, err := e.settings(ctx, cfg, c, id)
	if err != nil {
		return nil, err
	}
	if had, _, err := lastPolicies(saved.File); err == nil && had != nil {
		s.keep(had, cfg.Keep)
	}
	conv, err := e.begin(ctx, c, apptypes.CallThreadResume, s.params(id), s, host)
	if errors.Is(err, errNoRollout) {
		return nil, fmt.Errorf("conversation %s: %w", id, engine.ErrNotFound)
	}
	return conv, err
}

// Find implements [engine.Resumer].
func (e *Engine) Find(ctx context.Context, id string) (engine.Saved, error) {
	if err := checkID(id); err != nil {
		return engine.Saved{}, fmt.Errorf("%w: %w", err, engine.ErrNotFound)
	}
	c, err := e.child(ctx)
	if err != nil {
		return engine.Saved{}, err
	}
	s, err := c.read(ctx, id)
	if err != nil {
		return engine.Saved{}, err
	}
	if s.Path == "" {
		return engine.Saved{}, fmt.Errorf("conversation %s: %w", id, engine.ErrNotFound)
	}
	return engine.Saved{ID: strings.ToLower(id), File: s.Path}, nil
}

// read returns what Codex says of a thread, which is empty if there is no such thread.
func (c *child) read(ctx context.Context, id string) (apptypes.Thread, error) {
	var r struct {
		Thread apptypes.Thread `json:"thread"`
	}
	err := c.control(ctx, apptypes.CallThreadRead, apptypes.ThreadRef{ThreadID: id}, &r)
	if errors.Is(err, errNoRollout) {
		err = nil
	}
	return r.Thread, err
}

// past returns the events of a thread's earlier turns.
func past(turns []apptypes.Turn) []stdjson.RawMessage {
	var all []stdjson.RawMessage
	for _, t := range turns {
		for _, raw := range t.Items {
			for _, m := range pastItem(raw) {
				if b, err := protocol.AppendEvent(nil, m); err == nil {
					all = append(all, b)
				}
			}
		}
	}
	return all
}

func pastItem(raw stdjson.RawMessage) []protocol.EventMsg {
	if m, ok := userMessage(raw); ok {
		return []protocol.EventMsg{m}
	}
	it, err := appclient.ReadItem(raw)
	if err != nil {
		return nil
	}
	return said(&it)
}

// userMessage reads an item that is a message of the user.
func userMessage(raw stdjson.RawMessage) (m protocol.UserMessage, ok bool) {
	var user apptypes.UserMessage
	if json.Unmarshal(raw, &user) != nil || user.Type != apptypes.ThreadItemUserMessage {
		return m, false
	}
	m.Kind = protocol.UserPlain
	for _, c := range user.Content {
		switch c.Type {
		case apptypes.UserInputText:
			m.Message += c.Text
		case apptypes.UserInputImage:
			m.Images = append(m.Images, c.URL)
		}
	}
	return m, true
}
