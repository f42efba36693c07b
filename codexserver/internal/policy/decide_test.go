package policy_test

import (
	"fmt"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/policy"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

const (
	refuse    = policy.Refuse
	ask       = policy.Ask
	sandboxed = policy.RunSandboxed
	readOnly  = policy.RunReadOnly
	run       = policy.Run
)

func TestDecide(t *testing.T) {
	plain, safe := []string{"touch", "x"}, []string{"ls"}
	// Per policy: safe, plain, escalated, escalated and safe, approved for the
	// session; without a sandbox on this system: plain, safe.
	tests := []struct {
		policy           protocol.ApprovalPolicy
		confined, danger [7]policy.Action
	}{
		{"untrusted",
			[7]policy.Action{readOnly, ask, refuse, refuse, sandboxed, ask, ask},
			[7]policy.Action{readOnly, ask, refuse, refuse, run, ask, ask}},
		{"on-failure",
			[7]policy.Action{sandboxed, sandboxed, refuse, refuse, sandboxed, ask, ask},
			[7]policy.Action{run, run, refuse, refuse, run, run, run}},
		{"on-request",
			[7]policy.Action{sandboxed, sandboxed, ask, ask, sandboxed, ask, ask},
			[7]policy.Action{run, run, run, run, run, run, run}},
		{"never",
			[7]policy.Action{sandboxed, sandboxed, refuse, refuse, sandboxed, refuse, refuse},
			[7]policy.Action{run, run, refuse, refuse, run, run, run}},
		{"sometimes",
			[7]policy.Action{},
			[7]policy.Action{}},
	}
	for _, tt := range tests {
		for mode, want := range map[protocol.SandboxMode][7]policy.Action{
			"read-only": tt.confined, "workspace-write": tt.confined, "danger-full-access": tt.danger, "none": {},
		} {
			for i, in := range []policy.Input{
				{Command: safe, SandboxAvailable: true},
				{Command: plain, SandboxAvailable: true},
				{Command: plain, SandboxAvailable: true, Escalated: true},
				{Command: safe, SandboxAvailable: true, Escalated: true},
				{Command: plain, SandboxAvailable: true, SessionApproved: true},
				{Command: plain},
				{Command: safe},
			} {
				in.Policy, in.Sandbox = tt.policy, mode
				t.Run(fmt.Sprintf("%s %s %d", tt.policy, mode, i), func(t *testing.T) {
					got := policy.Decide(in)
					if got.Action != want[i] {
						t.Errorf("got %v (%s), want %v", got.Action, got.Reason, want[i])
					}
					if got.Action == policy.Refuse && got.Reason == "" {
						t.Error("refused without a reason")
					}
				})
			}
		}
	}
}

func TestDecideStrict(t *testing.T) {
	in := policy.Input{Policy: "untrusted", Sandbox: "read-only", SandboxAvailable: true, Command: []string{"git", "status"}}
	if got := policy.Decide(in); got.Action != readOnly {
		t.Errorf("as it is: %v", got)
	}
	in.Strict = true
	if got := policy.Decide(in); got.Action != ask {
		t.Errorf("strict: %v", got)
	}
	in.Command = []string{"ls"}
	if got := policy.Decide(in); got.Action != readOnly {
		t.Errorf("strict, ls: %v", got)
	}
	in.Command, in.Reads = []string{"edit"}, true
	if got := policy.Decide(in); got.Action != readOnly {
		t.Errorf("code of this program that reads: %v", got)
	}
}

func TestDecidePatch(t *testing.T) {
	// Columns: read-only, workspace-write inside, outside, danger-full-access.
	tests := map[protocol.ApprovalPolicy][4]policy.Action{
		"untrusted":  {ask, ask, ask, ask},
		"on-failure": {sandboxed, run, sandboxed, run},
		"on-request": {ask, run, ask, run},
		"never":      {refuse, run, refuse, run},
		"sometimes":  {},
	}
	for p, want := range tests {
		for i, in := range []policy.PatchInput{
			{Sandbox: "read-only"}, {Sandbox: "workspace-write", Inside: true}, {Sandbox: "workspace-write"}, {Sandbox: "danger-full-access"},
		} {
			in.Policy = p
			if got := policy.DecidePatch(in); got.Action != want[i] {
				t.Errorf("%+v: %v, want %v", in, got.Action, want[i])
			}
		}
	}
	if got := policy.DecidePatch(policy.PatchInput{Policy: "never", Sandbox: "read-only", Inside: true}); got.Action != refuse {
		t.Errorf("read-only has no inside, got %v", got)
	}
}

func TestAfterDenial(t *testing.T) {
	for _, p := range protocol.ApprovalPolicies() {
		want := refuse
		if p == protocol.ApprovalOnFailure {
			want = ask
		}
		if got := policy.AfterDenial(p); got.Action != want {
			t.Errorf("%s: %v, want %v", p, got.Action, want)
		}
	}
}
