package approve_test

import (
	"context"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/approve"
	"github.com/codexmcp/codexmcp/codexserver/internal/decide/rulefile"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestHostRules has rules about a host, which one more may be accepted for if no rule asks. A person would allow it. Answers are
// tested by package native.
func TestHostRules(t *testing.T) {
	const npm, below = "registry.npmjs.org", "*.npmjs.org"
	for name, tt := range map[string]struct {
		allow, deny, ask, kept string // hosts
		other                  approval.Rules
		unasked, want          string
	}{
		"no rule":                  {want: "approved by client"},
		"allowed":                  {allow: below, want: "approved by rule"},
		"allowed and denied":       {allow: npm, deny: below, ask: npm, want: "denied by rule"},
		"allowed and asked":        {allow: npm, ask: below, want: "approved by client"},
		"denied by code":           {other: approval.Rules{Decide: codeSays(elicit.Denied)}, want: "denied by rule"},
		"allowed by code":          {other: approval.Rules{Decide: codeSays(elicit.Approved)}, want: "approved by rule"},
		"allowed by code, asked":   {other: approval.Rules{Decide: codeSays(elicit.Approved)}, ask: npm, want: "approved by client"},
		"a rule for its command":   {other: approval.Rules{Allow: []approval.Rule{{Command: []string{"npm"}, Outside: true}}}, want: "approved by client"},
		"kept":                     {kept: npm, want: "approved by rule"},
		"another kept":             {kept: "npmjs.org", want: "approved by client"},
		"kept and denied":          {kept: npm, deny: npm, want: "denied by rule"},
		"kept and asked":           {kept: npm, ask: npm, want: "approved by client"},
		"never, and kept":          {kept: npm, unasked: "never", want: "approved by rule"},
		"never, allowed and asked": {allow: npm, kept: npm, ask: npm, unasked: "never", want: "denied by policy"},
	} {
		tt.other.Hosts = approval.HostRules{Allow: strings.Fields(tt.allow), Deny: strings.Fields(tt.deny), Ask: strings.Fields(tt.ask)}
		o := &approve.Options{Rules: tt.other, Kept: rulefile.New(t.TempDir(), nil)}
		if tt.kept != "" {
			must.Get(o.Kept.Add(rulefile.Kept{Rule: rulefile.Rule{Host: tt.kept}, By: "client"}))(t)
		}
		b := approve.New(o, nil)
		e := approval.Network{Command: []string{"npm", "install"}, Cwd: "/work", Hostname: npm, NoPerson: tt.unasked}
		r := &approval.Request{Subject: e, Question: e.Question("", "")}
		must.Equal(t, name+": a rule is offered", tt.ask == "", b.Offer(r) != nil)
		d := decide(t, b, servertest.Accept, r)
		must.Equal(t, name, tt.want, string(d.Decision)+" by "+string(d.By))
		must.Equal(t, name+": in a sandbox", false, d.Confined) // the command runs already
	}
}

// codeSays is a rule in code.
func codeSays(d elicit.Decision) func(context.Context, *approval.Request) (elicit.Outcome, bool) {
	return func(context.Context, *approval.Request) (elicit.Outcome, bool) {
		return elicit.Outcome{Decision: d}, true
	}
}
