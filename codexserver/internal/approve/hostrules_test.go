package approve_test

import (
	"context"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/approve"
	"github.com/codexmcp/codexmcp/codexserver/internal/changes"
	"github.com/codexmcp/codexmcp/codexserver/internal/decide/rulefile"
	"github.com/codexmcp/codexmcp/codexserver/internal/record"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/internal/turn"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// hostRequest asks for registry.npmjs.org.
func hostRequest(unasked string, once bool) *approval.Request {
	e := protocol.HostRequest{CallID: "c", Command: []string{"npm", "install"}, Cwd: "/work", Host: "registry.npmjs.org", Unasked: unasked, Once: once}
	return &approval.Request{Thread: approval.Thread{ID: "t"}, Event: e, Question: approval.HostQuestion(e, "")}
}

// TestHostRules has rules and answers about a host.
func TestHostRules(t *testing.T) {
	yes := func(context.Context, *approval.Request) (elicit.Outcome, bool) {
		return elicit.Outcome{Decision: elicit.Approved}, true
	}
	hosts := func(allow, deny, ask string) approval.Rules {
		return approval.Rules{Hosts: approval.HostRules{Allow: strings.Fields(allow), Deny: strings.Fields(deny), Ask: strings.Fields(ask)}}
	}
	const unasked = "the policy is never to ask"
	for _, tt := range []struct {
		name    string
		rules   approval.Rules
		kept    string // hosts that a person has accepted
		unasked string
		answer  string // of a client; "" cannot be asked
		want    elicit.Decision
		by      approval.Decider
	}{
		{name: "nobody can be asked", want: elicit.Denied, by: approval.ByNobody},
		{name: "asked", answer: servertest.Accept, want: elicit.Approved, by: approval.ByClient},
		{name: "declined", answer: servertest.Decline, want: elicit.Denied, by: approval.ByClient},
		{name: "allowed", rules: hosts("registry.npmjs.org", "", ""), want: elicit.Approved, by: approval.ByRule},
		{name: "allowed below", rules: hosts("*.npmjs.org", "", ""), want: elicit.Approved, by: approval.ByRule},
		{name: "another allowed", rules: hosts("npmjs.org *.registry.npmjs.org *.js.org registry.npmjs.org.example.com", "", ""), want: elicit.Denied, by: approval.ByNobody},
		{name: "denied", rules: hosts("", "*.npmjs.org", ""), answer: servertest.Accept, want: elicit.Denied, by: approval.ByRule},
		{name: "allowed and denied", rules: hosts("registry.npmjs.org", "*.npmjs.org", "registry.npmjs.org"), answer: servertest.Accept, want: elicit.Denied, by: approval.ByRule},
		{name: "allowed and asked", rules: hosts("registry.npmjs.org", "", "*.npmjs.org"), answer: servertest.Decline, want: elicit.Denied, by: approval.ByClient},
		{name: "allowed by code", rules: approval.Rules{Decide: yes}, want: elicit.Approved, by: approval.ByRule},
		{name: "allowed by code and asked", rules: approval.Rules{Decide: yes, Hosts: approval.HostRules{Ask: []string{"*.npmjs.org"}}}, want: elicit.Denied, by: approval.ByNobody},
		{name: "a rule for a command", rules: approval.Rules{Allow: []approval.Rule{{Command: []string{"npm"}, Outside: true}}}, want: elicit.Denied, by: approval.ByNobody},
		{name: "kept", kept: "registry.npmjs.org", want: elicit.Approved, by: approval.ByRule},
		{name: "another kept", kept: "npmjs.org", want: elicit.Denied, by: approval.ByNobody},
		{name: "kept and denied", kept: "registry.npmjs.org", rules: hosts("", "*.npmjs.org", ""), want: elicit.Denied, by: approval.ByRule},
		{name: "kept and asked", kept: "registry.npmjs.org", rules: hosts("", "", "*.npmjs.org"), want: elicit.Denied, by: approval.ByNobody},
		{name: "never", unasked: unasked, answer: servertest.Accept, want: elicit.Denied, by: approval.ByPolicy},
		{name: "never, and allowed", unasked: unasked, rules: hosts("*.npmjs.org", "", ""), want: elicit.Approved, by: approval.ByRule},
		{name: "never, and kept", unasked: unasked, kept: "registry.npmjs.org", want: elicit.Approved, by: approval.ByRule},
		{name: "never, and asked", unasked: unasked, kept: "registry.npmjs.org", rules: hosts("*.npmjs.org", "", "*.npmjs.org"), answer: servertest.Accept, want: elicit.Denied, by: approval.ByPolicy},
	} {
		t.Run(tt.name, func(t *testing.T) {
			store := rulefile.New(t.TempDir(), nil)
			if tt.kept != "" {
				must.Get(store.Add(rulefile.Kept{Rule: rulefile.Rule{Host: tt.kept}, By: "client"}))(t)
			}
			b := approve.New(&approve.Options{Rules: tt.rules, Kept: store}, nil)
			r := hostRequest(tt.unasked, b.Person(protocol.HostRequest{Host: "registry.npmjs.org"}))
			var d approval.Decision
			if tt.answer == "" {
				d = b.Decide(t.Context(), r, false)
			} else {
				d = decide(t, b, tt.answer, r)
			}
			if d.Decision != tt.want || d.By != tt.by || d.Confined {
				t.Errorf("%+v", d)
			}
			if tt.unasked != "" && d.By == approval.ByPolicy && d.ForModel() != "declined: "+unasked {
				t.Errorf("the model is told %q", d.ForModel())
			}
		})
	}
}

// TestHostAlways accepts the rule that the question shows. It holds for this host, and one that a rule asks about offers none.
func TestHostAlways(t *testing.T) {
	for _, asked := range []bool{false, true} {
		var lines servertest.Journal
		o := &approve.Options{Questions: elicit.Options{Schema: elicit.FormDecision}, Kept: rulefile.New(t.TempDir(), nil), Record: record.To(&lines)}
		if asked {
			o.Rules.Hosts.Ask = []string{"*.npmjs.org"}
		}
		b := approve.New(o, nil)
		b.Attach(newClient(servertest.Say(always), &o.Questions))
		d := offer(t.Context(), b, hostRequest("", asked))
		kept := must.Get(o.Kept.List())(t)
		if asked {
			must.Equal(t, "decided without an offer", elicit.Denied, d.Decision)
			must.Equal(t, "kept", 0, len(kept))
			continue
		}
		must.Equal(t, "decided", elicit.ApprovedAlways, d.Decision)
		must.Equal(t, "kept", "the host registry.npmjs.org for all commands, in the sandbox", kept[0].Words())
		if !strings.Contains(lines.String(), `"callId":"c","kind":"host","command":["npm","install"],"cwd":"/work","host":"registry.npmjs.org","decision":"approved_always","by":"client","rule":1`) {
			t.Errorf("recorded %s", &lines)
		}
		d = approve.New(o, nil).Decide(t.Context(), hostRequest("", false), false)
		must.Equal(t, "asked again", "allowed by rule 1, which a person accepted, in the sandbox", d.Detail)
	}
}

// TestHostRefused checks what the turn keeps of a host that was refused, also because its command ended first, which
// stops no turn.
func TestHostRefused(t *testing.T) {
	b := approve.New(&approve.Options{}, nil)
	for _, ended := range []bool{false, true} {
		u := turn.New(changes.Options{})
		r := hostRequest("", false)
		ctx, cancel := context.WithCancel(t.Context())
		answer := servertest.Decline
		if ended {
			cancel()
		}
		leave := b.Attach(newClient(servertest.Say(answer), nil))
		d := b.Decide(ctx, r, false)
		leave()
		cancel()
		u.Decided(r, d)
		why := "the user declined the request"
		if ended {
			why = "nobody answered before the command ended"
		}
		must.Equal(t, "the decision", elicit.Denied, d.Decision)
		got := u.So().Refused
		if len(got) != 1 || got[0].Kind != "host" || got[0].What != "registry.npmjs.org" || !ended && got[0].By != "client" {
			t.Errorf("%+v, want %s", got, why)
		}
		must.Equal(t, "in a line", true, strings.HasPrefix(got[0].String(), "not reached: registry.npmjs.org ("))
	}
}
