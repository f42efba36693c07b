package appserver_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/go-json-experiment/json/jsontext"
)

// recorder is a host that records events and answers by functions.
type recorder struct {
	exec    func(context.Context, protocol.ExecApprovalRequest) elicit.Outcome
	patch   func(context.Context, protocol.PatchApprovalRequest) elicit.Outcome
	approve func(context.Context, *elicit.Question) elicit.Outcome
	elicit  func(context.Context, json.RawMessage) (json.RawMessage, error)

	mu      sync.Mutex
	events  []protocol.EventMsg
	changed chan struct{}
}

func (h *recorder) Emit(m protocol.EventMsg) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, m)
	if h.changed != nil {
		close(h.changed)
		h.changed = nil
	}
}

func (h *recorder) EmitAs(_ string, m protocol.EventMsg) { h.Emit(m) }

func (h *recorder) ApproveExec(ctx context.Context, r protocol.ExecApprovalRequest) elicit.Outcome {
	h.Emit(r)
	if h.exec == nil {
		return elicit.Outcome{Decision: elicit.Denied}
	}
	return h.exec(ctx, r)
}

func (h *recorder) ApprovePatch(ctx context.Context, r protocol.PatchApprovalRequest) elicit.Outcome {
	h.Emit(r)
	if h.patch == nil {
		return elicit.Outcome{Decision: elicit.Denied}
	}
	return h.patch(ctx, r)
}

func (h *recorder) Approve(ctx context.Context, q *elicit.Question) elicit.Outcome {
	if h.approve == nil {
		return elicit.Outcome{Decision: elicit.Denied}
	}
	return h.approve(ctx, q)
}

func (h *recorder) Elicit(ctx context.Context, f *approval.Foreign) (json.RawMessage, error) {
	if h.elicit == nil {
		return nil, elicit.ErrUnsupported
	}
	params, err := f.Question().Params(elicit.Client{}, nil)
	if err != nil {
		return nil, err
	}
	result, err := h.elicit(ctx, params)
	if err != nil {
		return nil, err
	}
	return f.Read(result), nil
}

// wait waits for an event of a type.
func (h *recorder) wait(t *testing.T, eventType string) protocol.EventMsg {
	t.Helper()
	for {
		h.mu.Lock()
		for _, e := range h.events {
			if e.EventType() == eventType {
				h.mu.Unlock()
				return e
			}
		}
		if h.changed == nil {
			h.changed = make(chan struct{})
		}
		next := h.changed
		h.mu.Unlock()
		select {
		case <-next:
		case <-t.Context().Done():
			t.Fatalf("no event %s", eventType)
		}
	}
}

// all returns the events so far.
func (h *recorder) all() []protocol.EventMsg {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]protocol.EventMsg(nil), h.events...)
}

// types returns the types of the events so far.
func (h *recorder) types() []string {
	var list []string
	for _, e := range h.all() {
		list = append(list, e.EventType())
	}
	return list
}

// count returns how many events of a type there are.
func (h *recorder) count(eventType string) int {
	n := 0
	for _, e := range h.types() {
		if e == eventType {
			n++
		}
	}
	return n
}

// answer returns the last message of the last turn that completed.
func (h *recorder) answer() string {
	text := ""
	for _, e := range h.all() {
		if c, ok := e.(protocol.TaskComplete); ok && c.LastAgentMessage != nil {
			text = *c.LastAgentMessage
		}
	}
	return text
}

// decide answers every command or patch with one decision.
func decide(d elicit.Decision) *recorder {
	out := elicit.Outcome{Decision: d}
	return &recorder{
		exec:    func(context.Context, protocol.ExecApprovalRequest) elicit.Outcome { return out },
		patch:   func(context.Context, protocol.PatchApprovalRequest) elicit.Outcome { return out },
		approve: func(context.Context, *elicit.Question) elicit.Outcome { return out },
	}
}

func text(s string) protocol.TurnInput {
	return protocol.TurnInput{Items: protocol.TextInput(s)}
}

// lines returns the events in their wire form, one a line.
func (h *recorder) lines(t *testing.T) []byte {
	t.Helper()
	var b []byte
	for _, m := range h.all() {
		line, err := protocol.AppendEvent(nil, m)
		if err != nil {
			t.Fatal(err)
		}
		value := jsontext.Value(line) // its maps have no order
		if err := value.Canonicalize(); err != nil {
			t.Fatal(err)
		}
		b = append(append(b, value...), '\n')
	}
	return b
}
