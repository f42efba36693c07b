package approval

import (
	"context"
	"log/slog"
	"slices"

	"github.com/codexmcp/codexmcp/codexserver/internal/policy"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// Rules answer questions before anybody is asked. They see what an engine asks
// about, not what its approval policy lets run without a question. An entry of
// Allow or Deny is the beginning of an argv: ["git", "push"] covers every git
// push.
//
// A shell script of plain commands is taken apart: one denied command denies
// it, and it is allowed when each of its commands is. Allow wants it in a bare
// word's shell with -c or -lc and nothing else, and covers no script that is more
// than that. Deny looks into whatever looks like a shell.
//
// Allow covers no command whose program lies where commands may write: see Once
// in [protocol.ExecApprovalRequest].
type Rules struct {
	// Allow lists commands that run without a question.
	Allow [][]string
	// Deny lists commands that do not run; it wins over Allow.
	Deny [][]string
	// Decide answers what the lists do not, patches included: the outcome
	// counts when it returns true, and the client is asked when it returns
	// false. An outcome needs no more than a Decision, and Feedback for the
	// model. It is called from several goroutines at a time and is to return
	// when ctx ends; a panic in it denies. Default: none.
	Decide func(ctx context.Context, r *Request) (out elicit.Outcome, ok bool)
}

// decide answers for the user, if a rule covers what is asked.
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
	if q.Once || !plain || len(commands) == 0 {
		return elicit.Outcome{}, false
	}
	for _, c := range commands {
		if !covered(r.Allow, c) {
			return elicit.Outcome{}, false
		}
	}
	out = elicit.Outcome{Decision: elicit.Approved, Detail: "allowed by a rule", Level: slog.LevelInfo}
	return out, true
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
