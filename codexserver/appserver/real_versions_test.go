//go:build realcodex

package appserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// shellCall calls the shell tool that the version offers, outside of the sandbox.
var shellCall = providertest.Turn{Func: func(r providertest.Request) providertest.Turn {
	var body struct {
		Tools []struct {
			Name string `json:"name"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(r.Body, &body); err != nil {
		return providertest.Say(err.Error())
	}
	const line = "touch made.txt && echo made"
	args := map[string]any{"sandbox_permissions": "require_escalated", "with_escalated_permissions": true, "justification": "to write"}
	has := func(name string) bool {
		return slices.ContainsFunc(body.Tools, func(t struct {
			Name string `json:"name"`
		}) bool {
			return t.Name == name
		})
	}
	switch {
	case has("exec_command"):
		args["cmd"] = line
		return providertest.Call(providertest.Tool("c1", "exec_command", args))
	case has("shell_command"):
		args["command"] = line
		return providertest.Call(providertest.Tool("c1", "shell_command", args))
	}
	args["command"] = []string{"bash", "-lc", line}
	return providertest.Call(providertest.Tool("c1", "shell", args))
}}

// TestSmokeReal checks what every version from the oldest on must do: a turn with an
// approval, a denial, a resume by another process, and all approval policies.
func TestSmokeReal(t *testing.T) {
	r := newReal(t, `sandbox_mode = "read-only"`, shellCall, report, shellCall, report, providertest.Say("resumed"))
	h := decide(elicit.Denied)
	conv := r.start(t, h, protocol.Config{ApprovalPolicy: protocol.ApprovalOnRequest})
	if err := conv.Turn(t.Context(), text("go")); err != nil || made(r) || h.count("exec_approval_request") != 1 {
		t.Fatalf("denied: %v, made %v, %v", err, made(r), h.types())
	}
	var steered error
	h = &recorder{exec: func(ctx context.Context, _ protocol.ExecApprovalRequest) elicit.Outcome {
		steered = steer(ctx, conv, "use tabs")
		return elicit.Outcome{Decision: elicit.Approved}
	}}
	conv = r.start(t, h, protocol.Config{ApprovalPolicy: protocol.ApprovalOnRequest})
	if err := conv.Turn(t.Context(), text("go")); err != nil || !made(r) || !strings.Contains(h.answer(), "made") {
		t.Fatalf("approved: %v, made %v, %q, %v", err, made(r), h.answer(), h.types())
	}
	if steered != nil || !strings.Contains(r.last(), "use tabs") {
		t.Errorf("steered: %v; the last request: %s", steered, r.last())
	}
	r.restart(t)
	again := r.resume(t, conv, h, protocol.Config{})
	if err := again.Turn(t.Context(), text("on")); err != nil || h.answer() != "resumed" {
		t.Errorf("resumed: %v, %q", err, h.answer())
	}
	for _, policy := range protocol.ApprovalPolicies() {
		r.start(t, h, protocol.Config{ApprovalPolicy: policy})
	}
	t.Logf("a turn denied, one approved, one resumed by another process, a message while a turn ran read, on Codex %s", r.engine.Check(t.Context()).Version)
}

// TestRefusedReal refuses a version that is too old, with an error that says what to do.
func TestRefusedReal(t *testing.T) {
	r := newReal(t, "")
	_, err := r.engine.Start(t.Context(), protocol.Config{Cwd: r.cwd}, &recorder{})
	var old *appserver.TooOldError
	if !errors.As(err, &old) {
		t.Errorf("error %v", err)
	}
	t.Log(err)
}
