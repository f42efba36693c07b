package policy

import (
	"fmt"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// Action is what happens to a command or patch.
type Action int

const (
	// Refuse runs nothing and asks nobody. It is the zero value, so that what
	// was never decided does not run.
	Refuse Action = iota
	// Ask asks the user; what is approved runs without a sandbox.
	Ask
	// RunSandboxed runs it in the sandbox.
	RunSandboxed
	// Run runs it without a sandbox.
	Run
)

// String is the action's name.
func (a Action) String() string {
	switch a {
	case Ask:
		return "ask"
	case RunSandboxed:
		return "run sandboxed"
	case Run:
		return "run"
	}
	return "refuse"
}

// Verdict is a decision.
type Verdict struct {
	Action Action
	// Reason is for the model and the user; a refusal always has one.
	Reason string
}

// Input is what a decision about a command depends on.
type Input struct {
	// Policy is the conversation's approval policy.
	Policy protocol.ApprovalPolicy
	// Sandbox is its sandbox mode.
	Sandbox protocol.SandboxMode
	// SandboxAvailable is true when this system can enforce that mode.
	SandboxAvailable bool
	// Strict judges by [KnownSafeStrict] instead of [KnownSafe].
	Strict bool
	// Command is the argv.
	Command []string
	// Escalated is true when the model asks to run it without the sandbox.
	Escalated bool
	// SessionApproved is true when the user has approved this very argv for the
	// whole conversation.
	SessionApproved bool
}

// Decide says what happens to a command.
//
//	                   read-only, workspace-write        danger-full-access
//	untrusted          ask                               ask
//	on-request         sandbox; ask when escalated       run
//	on-failure         sandbox; see [AfterDenial]        run
//	never              sandbox                           run
//
// Before that, an escalation under any policy but on-request is refused, and
// what is known to be safe or approved for the session runs. Without a sandbox
// on this system, what the table would run in one is asked for, and refused
// under never. An unknown policy or mode refuses.
func Decide(in Input) Verdict {
	if in.Escalated && in.Policy != protocol.ApprovalOnRequest {
		return Verdict{Refuse, fmt.Sprintf(
			"not run: escalated permissions cannot be asked for under the approval policy %q", in.Policy)}
	}
	isSafe := KnownSafe
	if in.Strict {
		isSafe = KnownSafeStrict
	}
	confined := in.Sandbox == protocol.SandboxReadOnly || in.Sandbox == protocol.SandboxWorkspaceWrite
	switch {
	case !confined && in.Sandbox != protocol.SandboxDangerFullAccess:
		return Verdict{Refuse, fmt.Sprintf("not run: unknown sandbox mode %q", in.Sandbox)}
	case !known(in.Policy):
		return Verdict{Refuse, fmt.Sprintf("not run: unknown approval policy %q", in.Policy)}
	case in.SessionApproved || isSafe(in.Command):
		return Verdict{Action: Run}
	case in.Policy == protocol.ApprovalUntrusted:
		return Verdict{Action: Ask}
	case !confined:
		return Verdict{Action: Run}
	case in.Escalated:
		return Verdict{Action: Ask}
	case in.SandboxAvailable:
		return Verdict{Action: RunSandboxed}
	case in.Policy == protocol.ApprovalNever:
		return Verdict{Refuse, "not run: there is no sandbox on this system, the command is not known to be safe, and the approval policy is never to ask"}
	}
	return Verdict{Ask, "there is no sandbox on this system"}
}

// AfterDenial says what happens to a command or patch that the sandbox stopped:
// [Ask] to run it again outside, or [Refuse] to leave it at that.
func AfterDenial(policy protocol.ApprovalPolicy) Verdict {
	if policy == protocol.ApprovalOnFailure {
		return Verdict{Ask, "command failed; retry without sandbox?"}
	}
	return Verdict{Refuse, "the sandbox stopped it"}
}

// PatchInput is what a decision about a patch depends on.
type PatchInput struct {
	// Policy is the conversation's approval policy.
	Policy protocol.ApprovalPolicy
	// Sandbox is its sandbox mode.
	Sandbox protocol.SandboxMode
	// Inside is true when every path of the patch, links resolved, lies where
	// the sandbox mode lets commands write.
	Inside bool
}

// DecidePatch says what happens to a patch. [RunSandboxed] is an attempt that
// the sandbox is bound to stop; [AfterDenial] says what follows.
func DecidePatch(in PatchInput) Verdict {
	allowed := in.Sandbox == protocol.SandboxDangerFullAccess || in.Sandbox == protocol.SandboxWorkspaceWrite && in.Inside
	switch {
	case !known(in.Policy):
		return Verdict{Refuse, fmt.Sprintf("patch rejected: unknown approval policy %q", in.Policy)}
	case in.Policy == protocol.ApprovalUntrusted:
		return Verdict{Action: Ask}
	case allowed:
		return Verdict{Action: Run}
	case in.Policy == protocol.ApprovalOnFailure:
		return Verdict{Action: RunSandboxed}
	case in.Policy == protocol.ApprovalOnRequest:
		return Verdict{Action: Ask}
	}
	return Verdict{Refuse, "patch rejected: it writes where the sandbox does not allow it, and the approval policy is never to ask"}
}

func known(policy protocol.ApprovalPolicy) bool {
	switch policy {
	case protocol.ApprovalUntrusted, protocol.ApprovalOnFailure, protocol.ApprovalOnRequest, protocol.ApprovalNever:
		return true
	}
	return false
}
