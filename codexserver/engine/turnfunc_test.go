package engine_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

type recorder struct {
	engine.DenyAll
	events []protocol.EventMsg
}

func (r *recorder) Emit(m protocol.EventMsg) { r.events = append(r.events, m) }

func (r *recorder) EmitAs(_ string, m protocol.EventMsg) { r.Emit(m) }

// TestTurnFuncEnds checks how each end of the function ends its turn.
func TestTurnFuncEnds(t *testing.T) {
	var missing *engine.AbortError
	cause := errors.New("the user left")
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	answer := "second"
	for _, tt := range []struct {
		name string
		ctx  context.Context
		err  error
		text string
		last []protocol.EventMsg
	}{
		{"no error", ended, nil, "", []protocol.EventMsg{protocol.TaskComplete{LastAgentMessage: &answer}}},
		{"an error", t.Context(), cause, "the user left", []protocol.EventMsg{protocol.Error{Message: "the user left"}, protocol.TaskComplete{}}},
		{"an error after the end", ended, context.Canceled, "turn interrupted: the user left", []protocol.EventMsg{protocol.TurnAborted{Reason: protocol.AbortInterrupted}}},
		{"no reason", t.Context(), &engine.AbortError{}, "turn interrupted", []protocol.EventMsg{protocol.TurnAborted{Reason: protocol.AbortInterrupted}}},
		{"only a cause", t.Context(), &engine.AbortError{Cause: cause}, "turn interrupted: the user left", []protocol.EventMsg{protocol.TurnAborted{Reason: protocol.AbortInterrupted}}},
		{"a reason", ended, &engine.AbortError{Reason: "replaced"}, "turn replaced", []protocol.EventMsg{protocol.TurnAborted{Reason: "replaced"}}},
		{"a nil pointer", t.Context(), missing, "turn interrupted", []protocol.EventMsg{protocol.TurnAborted{Reason: protocol.AbortInterrupted}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := engine.TurnFunc(func(_ context.Context, host engine.Host, _ []protocol.InputItem) error {
				host.Emit(protocol.AgentMessage{Message: "first"})
				host.Emit(protocol.AgentMessage{Message: answer})
				host.Emit(protocol.AgentReasoning{Text: "third"})
				return tt.err
			})
			h := &recorder{}
			c, err := f.Start(t.Context(), protocol.Config{}, h)
			must.OK(t, err)
			err = c.Turn(tt.ctx, protocol.TurnInput{})
			if (err == nil) != (tt.text == "") || err != nil && err.Error() != tt.text {
				t.Errorf("the turn returned %#v", err)
			}
			must.Equal(t, "the end", tt.last, h.events[5:])
		})
	}
	for _, err := range []error{&engine.AbortError{Cause: cause}, &engine.ConfigError{Err: cause}, &engine.RefusedError{Err: cause}} {
		if !errors.Is(err, cause) {
			t.Errorf("%T hides its cause", err)
		}
	}
}

// TestOrigin checks whose folder a call has.
func TestOrigin(t *testing.T) {
	here, there := t.Context(), engine.WithOrigin(t.Context(), engine.Origin{Folder: filepath.FromSlash("/client"), Environ: []string{"A=1"}})
	if from := engine.OriginOf(there); engine.OriginOf(here) != nil || from == nil || !slices.Equal(from.Environ, []string{"A=1"}) {
		t.Errorf("here %v, there %v", engine.OriginOf(here), from)
	}
	own := must.Get(filepath.Abs("x"))(t)
	for _, tt := range []struct {
		ctx        context.Context
		path, want string
	}{{here, "x", own}, {there, "x", filepath.FromSlash("/client/x")}, {there, own, own}} {
		if got, err := engine.Abs(tt.ctx, tt.path); got != tt.want || err != nil {
			t.Errorf("%s: %s, want %s (%v)", tt.path, got, tt.want, err)
		}
	}
}

type described struct{ engine.TurnFunc }

func (described) Traits() engine.Traits { return engine.Traits{Streams: true} }

func TestTraits(t *testing.T) {
	if engine.TraitsOf(described{}).Streams != true || engine.TraitsOf(engine.TurnFunc(nil)).Streams {
		t.Error("wrong traits")
	}
}

func TestDenyAll(t *testing.T) {
	h, ctx := engine.DenyAll{}, t.Context()
	for _, out := range []elicit.Outcome{
		h.Ask(ctx, approval.Command{}), h.Ask(ctx, approval.Patch{}), h.Ask(ctx, approval.Other{Ask: &elicit.Question{}}),
	} {
		if out.Decision != elicit.Denied || out.Reason == "" {
			t.Errorf("%+v", out)
		}
	}
	if answer, err := h.Elicit(ctx, &approval.Foreign{}); answer != nil || !errors.Is(err, elicit.ErrUnsupported) {
		t.Errorf("%s, %v", answer, err)
	}
}

// TestTurnFuncConfig checks that the function sees the conversation's configuration, and
// what a turn changes for itself and later ones.
func TestTurnFuncConfig(t *testing.T) {
	var got protocol.Config
	f := engine.TurnFunc(func(ctx context.Context, _ engine.Host, _ []protocol.InputItem) error {
		got = engine.ConfigOf(ctx)
		return nil
	})
	start := protocol.Config{
		Model: "m", Cwd: "/work", ApprovalPolicy: protocol.ApprovalUntrusted, Sandbox: protocol.SandboxReadOnly, FromCall: true,
		Overrides: protocol.Overrides{
			"sandbox_mode":                           "danger-full-access",
			"sandbox_workspace_write.network_access": true,
			"tools.web_search":                       true,
		},
	}
	c := must.Get(f.Start(t.Context(), start, &recorder{}))(t)
	later := start
	later.Effort = "low"
	for _, turn := range []struct {
		in   protocol.TurnInput
		want protocol.Config
	}{{protocol.TurnInput{}, start}, {protocol.TurnInput{Effort: "low"}, later}, {protocol.TurnInput{}, later}} {
		must.OK(t, c.Turn(t.Context(), turn.in))
		must.Equal(t, fmt.Sprintf("%+v", turn.in), turn.want, got)
	}
	must.Equal(t, "outside of a turn", protocol.Config{}, engine.ConfigOf(t.Context()))
}
