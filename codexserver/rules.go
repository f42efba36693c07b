package codexserver

import (
	"log/slog"
	"slices"

	"github.com/codexmcp/codexmcp/codexserver/internal/policy"
	"github.com/codexmcp/codexmcp/elicit"
)

// Rules answer questions about commands before anybody is asked. A rule is the
// beginning of an argv: ["git", "push"] covers every git push. They see what an
// engine asks about, not what its approval policy lets run without a question.
//
// A shell script of plain commands is taken apart: one denied command denies
// it, and it is allowed when each of its commands is. A script that is more
// than that is never allowed by a rule.
type Rules struct {
	// Allow lists commands that run without a question.
	Allow [][]string
	// Deny lists commands that do not run; it wins over Allow.
	Deny [][]string
}

// decide answers for the user, if a rule covers the command.
func (r *Rules) decide(argv []string) (out elicit.Outcome, ruled bool) {
	commands, plain := policy.Commands(argv)
	for _, c := range append(commands, argv) {
		if covered(r.Deny, c) {
			return elicit.Outcome{
				Decision: elicit.Denied, Reason: "declined", Feedback: "a rule of the user denies this command",
				Detail: "denied by a rule", Level: slog.LevelInfo,
			}, true
		}
	}
	if !plain || len(commands) == 0 {
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
