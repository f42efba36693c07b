package approve

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/decide"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/stack"
)

// rule asks the rules. A rule that panics denies.
func (b *Board) rule(ctx context.Context, r *approval.Request) (d approval.Decision, ruled bool) {
	if r.Deny != "" {
		return approval.Decision{Outcome: denied(r.Deny, "", slog.LevelInfo), By: approval.ByRule}, true
	}
	if unruled(r) {
		return d, false
	}
	asks := true // no rule allows it
	err := stack.Guard(b.log, "Rules.Decide", func() error {
		asks = b.Person(r.Event)
		d.Outcome, ruled = byRules(ctx, &b.options.Rules, r, asks)
		return nil
	})
	if err != nil {
		d.Outcome, ruled = denied("a rule of the user failed", "denied, because a rule failed", slog.LevelError), true
	}
	if !ruled && !asks && ctx.Err() == nil {
		d.Outcome, ruled = b.kept(r)
	}
	if host, is := r.Event.(protocol.HostRequest); is && !ruled && host.Unasked != "" {
		return approval.Decision{Outcome: denied(host.Unasked, "", slog.LevelInfo), By: approval.ByPolicy}, true
	}
	d.Outcome, d.By = limited(r, d.Outcome), approval.ByRule
	return d, ruled
}

// kept asks the rules that people accepted. They only allow.
func (b *Board) kept(r *approval.Request) (out elicit.Outcome, ruled bool) {
	number := 0
	err := stack.Guard(b.log, "Kept", func() (err error) {
		switch m := r.Event.(type) {
		case protocol.ExecApprovalRequest:
			out.Confined = true
			number, ruled, err = b.options.Kept.Allows(&m, r.Thread.Principal)
		case protocol.HostRequest:
			number, ruled, err = b.options.Kept.AllowsHost(m.Host, r.Thread.Principal)
		}
		return err
	})
	if err != nil {
		b.log.Warn("the rules that people accepted allow nothing", "error", err)
		return elicit.Outcome{}, false
	}
	out.Decision = elicit.Approved
	if out.Detail = "allowed by rules that a person accepted, in the sandbox"; number > 0 {
		out.Detail = fmt.Sprintf("allowed by rule %d, which a person accepted, in the sandbox", number)
	}
	return out, ruled
}

// byRules answers the request if a rule covers it. What a person is asked about each time no rule allows.
func byRules(ctx context.Context, r *approval.Rules, a *approval.Request, asks bool) (out elicit.Outcome, ruled bool) {
	switch m := a.Event.(type) {
	case protocol.ExecApprovalRequest:
		switch {
		case decide.Mentions(r.Deny, m.Command):
			const feedback = "a rule of the user denies this command, or what it may hide: write its programs and their words plainly"
			return denied(feedback, "denied by a rule", slog.LevelInfo), true
		case !asks:
			out, ruled = allows(r.Allow, &m)
		}
	case protocol.HostRequest:
		switch {
		case decide.CoversHost(r.Hosts.Deny, m.Host):
			return denied("a rule of the user denies this host", "denied by a rule", slog.LevelInfo), true
		case !asks && decide.CoversHost(r.Hosts.Allow, m.Host):
			return elicit.Outcome{Decision: elicit.Approved, Ruled: true, Detail: "allowed by a rule"}, true
		}
	}
	if ruled || r.Decide == nil {
		return out, ruled
	}
	out, ruled = r.Decide(ctx, a)
	if ruled && ctx.Err() != nil {
		return a.Question.ReadError(context.Canceled, nil), true
	}
	if out.Decision.Approves() && asks {
		return elicit.Outcome{}, false
	}
	return out, ruled
}

// Person reports whether a rule or the engine wants a person to be asked about a command each time, or about a host for each
// command. Then no rule allows it.
func (b *Board) Person(m protocol.EventMsg) bool {
	r := &b.options.Rules
	switch m := m.(type) {
	case protocol.ExecApprovalRequest:
		return m.Human || decide.Mentions(r.Ask, m.Command)
	case protocol.HostRequest:
		return decide.CoversHost(r.Hosts.Ask, m.Host)
	}
	return false
}

// allows answers a command if the rules allow all that it runs.
func allows(rules []approval.Rule, q *protocol.ExecApprovalRequest) (out elicit.Outcome, ruled bool) {
	commands, plain := decide.Commands(q.Command)
	if !plain || len(commands) == 0 {
		return out, false
	}
	out = elicit.Outcome{Decision: elicit.Approved, Ruled: true}
	var by []string
	for i, c := range commands {
		inside, outside := false, false
		var environ []string
		for _, rule := range rules {
			if decide.Begins(rule.Command, c) {
				if name := strings.Join(rule.Command, " "); !inside && !slices.Contains(by, name) {
					by = append(by, name)
				}
				inside, outside, environ = true, outside || rule.Outside, append(environ, rule.Environ...)
			}
		}
		if i > 0 { // all commands of a script have the same environment, so each needs a rule for it
			environ = slices.DeleteFunc(environ, func(name string) bool { return !slices.Contains(out.Environ, name) })
		}
		out.Environ = environ
		if !outside {
			out.Confined = true
		}
		if !inside || out.Confined && !q.Confinable {
			return elicit.Outcome{}, false
		}
	}
	out.Detail = fmt.Sprintf("allowed by the rule %q", by)
	if out.Confined {
		out.Detail += ", in the sandbox"
	}
	return out, true
}
