package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/google/go-cmp/cmp"
)

// recorder is a host that keeps the events.
type recorder struct {
	engine.DenyAll
	events []protocol.EventMsg
}

func (r *recorder) Emit(m protocol.EventMsg) { r.events = append(r.events, m) }

func (r *recorder) EmitAs(_ string, m protocol.EventMsg) { r.Emit(m) }

func TestTurnFuncAbort(t *testing.T) {
	var missing *engine.AbortError
	cause := errors.New("the user left")
	for _, tt := range []struct {
		name   string
		err    error
		reason protocol.AbortReason
		text   string
	}{
		{"no reason", &engine.AbortError{}, protocol.AbortInterrupted, "turn interrupted"},
		{"only a cause", &engine.AbortError{Cause: cause}, protocol.AbortInterrupted, "turn interrupted: the user left"},
		{"a reason", &engine.AbortError{Reason: protocol.AbortReplaced}, protocol.AbortReplaced, "turn replaced"},
		{"a nil pointer", missing, protocol.AbortInterrupted, "turn interrupted"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := engine.TurnFunc(func(context.Context, engine.Host, []protocol.InputItem) error { return tt.err })
			h := &recorder{}
			c, err := f.Start(t.Context(), protocol.Config{}, h)
			if err != nil {
				t.Fatal(err)
			}
			err = c.Turn(t.Context(), protocol.TurnInput{})
			var abort *engine.AbortError
			if !errors.As(err, &abort) || abort.Reason != tt.reason || err.Error() != tt.text {
				t.Errorf("the turn returned %#v", err)
			}
			want := protocol.TurnAborted{Reason: tt.reason}
			if last := h.events[len(h.events)-1]; last != want {
				t.Errorf("the turn ended with %#v, want %#v", last, want)
			}
		})
	}
	if got := (&engine.AbortError{Cause: cause}).Error(); got != "turn interrupted: the user left" {
		t.Errorf("the error without a reason is %q", got)
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
		Overrides: map[string]json.RawMessage{
			"sandbox_mode":                           json.RawMessage(`"danger-full-access"`),
			"sandbox_workspace_write.network_access": json.RawMessage(`true`),
			"tools.web_search":                       json.RawMessage(`true`),
		},
		WritableRoots: []string{"/data"},
	}
	c, err := f.Start(t.Context(), start, &recorder{})
	if err != nil {
		t.Fatal(err)
	}
	later := start
	later.Model, later.Cwd, later.ApprovalPolicy, later.Effort = "n", "/other", protocol.ApprovalNever, "high"
	later.Sandbox, later.WritableRoots = protocol.SandboxWorkspaceWrite, []string{"/out"}
	later.Overrides = map[string]json.RawMessage{
		"sandbox_mode":            json.RawMessage(`"danger-full-access"`),
		"sandbox_workspace_write": json.RawMessage(`{"writable_roots":["/out"],"network_access":false,"exclude_tmpdir_env_var":true,"exclude_slash_tmp":false}`),
		"tools.web_search":        json.RawMessage(`true`),
	}
	last := later
	last.Effort = "low"
	for _, turn := range []struct {
		in   protocol.TurnInput
		want protocol.Config
	}{
		{protocol.TurnInput{}, start},
		{protocol.TurnInput{Context: &protocol.TurnContext{
			Cwd: "/other", Model: "n", ApprovalPolicy: protocol.ApprovalNever, Effort: "high",
			SandboxPolicy: protocol.SandboxPolicy{Mode: protocol.SandboxWorkspaceWrite, WritableRoots: []string{"/out"}, ExcludeTmpdirEnvVar: true},
		}}, later},
		{protocol.TurnInput{}, later},
		{protocol.TurnInput{Effort: "low"}, last},
	} {
		if err := c.Turn(t.Context(), turn.in); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(turn.want, got); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", turn.in, diff)
		}
	}
	if diff := cmp.Diff(protocol.Config{}, engine.ConfigOf(t.Context())); diff != "" {
		t.Errorf("outside of a turn (-want +got):\n%s", diff)
	}
}
