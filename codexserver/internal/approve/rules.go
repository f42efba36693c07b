package approve

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/decide/rulefile"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/stack"
)

// rule asks the rules. It returns their end of the question, or none. A rule that panics denies.
func (b *Board) rule(ctx context.Context, r *approval.Request) ends {
	if r.Deny != "" {
		return ends{{all: ruled, by: approval.ByRule, out: denied(r.Deny, "", slog.LevelInfo)}}
	}
	var out elicit.Outcome
	decides := false
	if r.Subject.Approver() != approval.PersonAlone {
		each := true // no rule approves it
		err := stack.Guard(b.log, "Rules.Decide", func() error {
			each = b.Each(r.Subject)
			out, decides = byRules(ctx, &b.options.Rules, r, each)
			return nil
		})
		if err != nil {
			out, decides = denied("a rule of the user failed", "denied, because a rule failed", slog.LevelError), true
		}
		if !decides && !each && ctx.Err() == nil {
			out, decides = b.kept(r)
		}
	}
	switch unasked := r.Subject.Unasked(); {
	case decides && ctx.Err() != nil:
		return ends{{all: over, out: r.Question.ReadError(context.Canceled, nil)}}
	case decides:
		return ends{{all: ruled, by: approval.ByRule, out: out}}
	case unasked != "":
		return ends{{all: ruled, by: approval.ByPolicy, out: denied(unasked, "", slog.LevelInfo)}}
	}
	return nil
}

// kept asks the rules that people accepted. They only allow.
func (b *Board) kept(r *approval.Request) (out elicit.Outcome, decides bool) {
	wanted, number := rulefile.Action(r.Subject.Lasting()), 0
	err := stack.Guard(b.log, "Kept", func() (err error) {
		number, decides, err = b.options.Kept.Allows(wanted, r.Thread.Principal)
		return err
	})
	if err != nil {
		b.log.Warn("the rules that people accepted allow nothing", "error", err)
		return elicit.Outcome{}, false
	}
	out.Decision, out.Confined = elicit.Approved, wanted.Hostname == ""
	if out.Detail = "allowed by rules that a person accepted, in the sandbox"; number > 0 {
		out.Detail = fmt.Sprintf("allowed by rule %d, which a person accepted, in the sandbox", number)
	}
	return out, decides
}

// byRules answers the request if a rule covers it. What a person is asked about each time no rule approves.
func byRules(
	ctx context.Context, rules *approval.Rules, r *approval.Request, each bool,
) (out elicit.Outcome, decides bool) {
	out, decides = r.Subject.Rule(rules, each)
	if decides || rules.Decide == nil {
		return out, decides
	}
	out, decides = rules.Decide(ctx, r)
	if out.Decision.Approves() && each {
		return elicit.Outcome{}, false
	}
	return out, decides
}

// Each reports whether a rule or the engine wants a person to be asked about a subject each time. Then no rule approves
// it.
func (b *Board) Each(s approval.Subject) bool { return s.Each(&b.options.Rules) }
