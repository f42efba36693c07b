package decide

import (
	"fmt"
	"slices"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// Action is what happens to a command or patch.
type Action int

const (
	// Refuse does not run it and does not ask. It is the zero value, so that nothing runs without a decision.
	Refuse Action = iota
	// Ask asks the user, who lets it run without a sandbox, or in it if a rule approves it only for that.
	Ask
	// RunReadOnly runs it in the read-only sandbox without network, even if the conversation has another sandbox.
	RunReadOnly
	RunSandboxed // in the conversation's sandbox
	Run          // without a sandbox
)

type Verdict struct {
	Action     Action
	Reason     string // for the model and the user; set in every refusal
	Confinable bool   // the command may run in a sandbox if the approval is only for that
}

// Input is the basis of a decision about a command.
type Input struct {
	Policy           protocol.ApprovalPolicy // of the conversation, as Sandbox
	Sandbox          protocol.SandboxMode
	SandboxAvailable bool // this system can confine the command
	Strict           bool // see [KnownSafe]
	Command          []string
	Reads            bool // it is code of this program that only reads, which is safe whatever Command is
	Near             bool // it reads only the working folder, whatever links lead to
	Escalated        bool // the model asks to run it without the sandbox
	SessionApproved  bool // the user has approved exactly this argv in this folder and sandbox for the conversation
}

// Exec decides what happens to a command.
//
//	                   read-only, workspace-write        danger-full-access
//	untrusted          read-only sandbox if it is known  the same
//	                   to be safe, otherwise ask;
//	                   ask when escalated
//	on-request         sandbox; ask when escalated       run
//	on-failure         sandbox; see [AfterDenial]        run
//	never              sandbox                           run
//
// Some rules come first. An escalation under on-failure and never is refused, and so is an unknown policy or
// mode. A command approved for the session runs in the sandbox, or with full access: such an approval lets nothing
// leave the sandbox. If this system cannot confine a command, the user is asked, or the command is refused under never.
// Code of this program needs no sandbox to read the working folder.
func Exec(in Input) Verdict {
	if in.Escalated && in.Policy != protocol.ApprovalOnRequest && in.Policy != protocol.ApprovalUntrusted {
		return refusal("not run: escalated permissions are not available under the approval policy %q", in.Policy)
	}
	const obstacle = "there is no sandbox on this system"
	confined := in.Sandbox == protocol.SandboxReadOnly || in.Sandbox == protocol.SandboxWorkspaceWrite
	switch {
	case !confined && in.Sandbox != protocol.SandboxDangerFullAccess:
		return refusal("not run: unknown sandbox mode %q", in.Sandbox)
	case !slices.Contains(protocol.ApprovalPolicies(), in.Policy):
		return refusal("not run: unknown approval policy %q", in.Policy)
	case in.SessionApproved && !confined:
		return Verdict{Action: Run}
	case in.Reads && in.Near && !in.SandboxAvailable:
		return Verdict{Action: Run}
	case in.SessionApproved && in.SandboxAvailable && !in.Escalated:
		return Verdict{Action: RunSandboxed}
	case in.Policy == protocol.ApprovalUntrusted && in.Escalated:
		return Verdict{Action: Ask}
	case in.Policy == protocol.ApprovalUntrusted && !in.Reads && !KnownSafe(in.Command, in.Strict):
		return Verdict{Action: Ask, Confinable: in.SandboxAvailable}
	case in.Policy == protocol.ApprovalUntrusted && in.SandboxAvailable:
		return Verdict{Action: RunReadOnly}
	case in.Policy == protocol.ApprovalUntrusted:
		return Verdict{Action: Ask, Reason: obstacle}
	case !confined:
		return Verdict{Action: Run}
	case in.Escalated:
		return Verdict{Action: Ask}
	case in.SandboxAvailable:
		return Verdict{Action: RunSandboxed}
	case in.Policy == protocol.ApprovalNever:
		return refusal("not run: %s, and the approval policy is never to ask", obstacle)
	}
	return Verdict{Action: Ask, Reason: obstacle}
}

func refusal(format string, args ...any) Verdict {
	return Verdict{Action: Refuse, Reason: fmt.Sprintf(format, args...)}
}

// AfterDenial returns what happens after the sandbox stopped it: [Ask] to run it again without one, or [Refuse].
func AfterDenial(policy protocol.ApprovalPolicy) Verdict {
	if policy == protocol.ApprovalOnFailure {
		return Verdict{Action: Ask, Reason: "command failed; retry without sandbox?"}
	}
	return refusal("the sandbox stopped it")
}

// AfterCheck returns what happens after the sandbox stopped the check of a turn, or another line of the server for such a
// purpose, as [AfterDenial]. No model can ask to run it outside, so a person is asked under each policy that may ask.
func AfterCheck(policy protocol.ApprovalPolicy, purpose string) Verdict {
	if policy == protocol.ApprovalNever {
		return AfterDenial(policy)
	}
	return Verdict{Action: Ask, Reason: "the sandbox stopped " + purpose + "; retry without sandbox?"}
}

// PatchInput is the basis of a decision about a patch.
type PatchInput struct {
	Policy  protocol.ApprovalPolicy // of the conversation, as Sandbox
	Sandbox protocol.SandboxMode
	Inside  bool // commands may write to every path of the patch in this sandbox mode; symbolic links are resolved
}

// Patch decides what happens to a patch. After [RunSandboxed] the sandbox stops it, and [AfterDenial] follows.
func Patch(in PatchInput) Verdict {
	allowed := in.Sandbox == protocol.SandboxDangerFullAccess || in.Sandbox == protocol.SandboxWorkspaceWrite &&
		in.Inside
	switch {
	case !slices.Contains(protocol.ApprovalPolicies(), in.Policy):
		return refusal("patch rejected: unknown approval policy %q", in.Policy)
	case in.Policy == protocol.ApprovalUntrusted:
		return Verdict{Action: Ask}
	case allowed:
		return Verdict{Action: Run}
	case in.Policy == protocol.ApprovalOnFailure:
		return Verdict{Action: RunSandboxed}
	case in.Policy == protocol.ApprovalOnRequest:
		return Verdict{Action: Ask}
	}
	return refusal("patch rejected: it writes where the sandbox does not allow it, and the approval policy is never " +
		"to ask")
}
