package approval

import (
	"context"
	"log/slog"
	"slices"

	"github.com/codexmcp/codexmcp/codexserver/internal/policy"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// Rules answer questions before a person is asked. They see only what an engine asks about,
// and not what its approval policy runs without a question. The words of a rule are the
// beginning of an argv: ["git", "push"] covers every git push.
//
// In a shell script of plain commands, the rules judge each command. One denied command
// denies the script; it is allowed if all its commands are. Allow covers only a script of
// plain commands that is run by a shell without a path, with -c or -lc and no other
// argument. Deny looks into everything that looks like a shell.
//
// Allow does not cover a command whose program lies where commands may write: see
// Replaceable in [protocol.ExecApprovalRequest].
type Rules struct {
	// Allow lists commands that run without a question.
	Allow []Rule
	// Deny lists commands that do not run; it wins over Allow.
	Deny [][]string
	// Decide answers questions that the lists do not decide, about patches too. If it
	// returns false, the client is asked. An outcome needs only a Decision, and may have
	// Feedback for the model. Decide is called from several goroutines at a time and must
	// return when ctx ends. A panic in it denies. Default: none.
	Decide func(ctx context.Context, r *Request) (out elicit.Outcome, ok bool)
}

// Rule allows commands.
type Rule struct {
	// Command is the beginning of an argv. An empty rule covers nothing.
	Command []string
	// Outside also allows the commands outside the sandbox. Without it the rule answers only
	// questions after which the command runs in the sandbox: see Confinable in
	// [protocol.ExecApprovalRequest].
	Outside bool
}

// decide answers the request if a rule covers it.
func (r *Rules) decide(ctx context.Context, a *Request) (out elicit.Outcome, ruled bool) {
	if exec, ok := a.Event.(protocol.ExecApprovalRequest); ok {
		if out, ruled = r.decideExec(&exec); ruled {
			return out, true
		}
	}
	if r.Decide == nil {
		return elicit.Outcome{}, false
	}
	out, ruled = r.Decide(ctx, a)
	if ruled && ctx.Err() != nil {
		return a.Question.ReadError(context.Canceled, nil), true
	}
	return out, ruled
}

func (r *Rules) decideExec(q *protocol.ExecApprovalRequest) (out elicit.Outcome, ruled bool) {
	argv := q.Judged
	if argv == nil {
		argv = q.Command
	}
	for _, words := range [][]string{q.Command, argv} {
		mentioned, all := policy.Mentioned(words)
		if slices.ContainsFunc(mentioned, func(c []string) bool { return covered(r.Deny, c) }) {
			return elicit.Outcome{
				Decision: elicit.Denied, Reason: elicit.ReasonDeclined, Feedback: "a rule of the user denies this command",
				Detail: "denied by a rule", Level: slog.LevelInfo,
			}, true
		}
		if !all && len(r.Deny) > 0 {
			return elicit.Outcome{
				Decision: elicit.Denied, Reason: elicit.ReasonDeclined, Feedback: "the script is too long for the rules of the user to be applied",
				Detail: "denied, because the script is too long for the rules", Level: slog.LevelInfo,
			}, true
		}
	}
	commands, plain := policy.Commands(argv)
	if q.Replaceable || !plain || len(commands) == 0 {
		return elicit.Outcome{}, false
	}
	out = elicit.Outcome{Decision: elicit.Approved, Detail: "allowed by a rule", Level: slog.LevelInfo}
	for _, c := range commands {
		inside, outside := r.allowed(c)
		if !outside {
			out.Confined, out.Detail = true, "allowed by a rule, in the sandbox"
		}
		if !inside || out.Confined && !q.Confinable {
			return elicit.Outcome{}, false
		}
	}
	return out, true
}

// allowed reports whether a rule allows a command in the sandbox, and whether one allows it
// outside.
func (r *Rules) allowed(argv []string) (inside, outside bool) {
	for _, rule := range r.Allow {
		if covered([][]string{rule.Command}, argv) {
			inside, outside = true, outside || rule.Outside
		}
	}
	return inside, outside
}

func covered(rules [][]string, argv []string) bool {
	return slices.ContainsFunc(rules, func(rule []string) bool {
		return len(rule) > 0 && len(rule) <= len(argv) && slices.Equal(rule, argv[:len(rule)])
	})
}

// ruleFailed is the outcome of a rule that panicked.
var ruleFailed = elicit.Outcome{
	Decision: elicit.Denied, Reason: elicit.ReasonDeclined, Feedback: "a rule of the user failed",
	Detail: "denied, because a rule failed", Level: slog.LevelError,
}
