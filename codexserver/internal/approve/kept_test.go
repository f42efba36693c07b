package approve

import (
	"context"
	"os"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/decide/rulefile"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// TestKeptRules checks that the rules that people accepted come last and only allow.
func TestKeptRules(t *testing.T) {
	q := protocol.ExecApprovalRequest{Command: []string{"go", "test"}, Cwd: t.TempDir(), Confinable: true}
	rule, err := rulefile.Offer(&q)
	if err != nil {
		t.Fatal("no rule is offered")
	}
	kept, broken := rulefile.New(t.TempDir(), nil), rulefile.New(t.TempDir(), nil)
	for _, s := range []*rulefile.Store{kept, broken} {
		if _, err := s.Add(rulefile.Kept{Rule: rule, By: "client"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Truncate(broken.Path(), 40); err != nil {
		t.Fatal(err)
	}
	says := func(d elicit.Decision) func(context.Context, *approval.Request) (elicit.Outcome, bool) {
		return func(context.Context, *approval.Request) (elicit.Outcome, bool) {
			return elicit.Outcome{Decision: d}, true
		}
	}
	for _, tt := range []struct {
		name     string
		options  Options
		deny     string
		human    bool // the engine wants a person
		outside  bool // an approval lets it out of the sandbox
		want     elicit.Decision
		by       approval.Decider
		confined bool
	}{
		{name: "a rule", options: Options{Kept: kept}, want: elicit.Approved, by: approval.ByRule, confined: true},
		{name: "a rule, and it would leave the sandbox", options: Options{Kept: kept}, outside: true, want: elicit.Denied, by: approval.ByNobody},
		{name: "none", want: elicit.Denied, by: approval.ByNobody},
		{name: "denied by the configuration", options: Options{Kept: kept, Rules: approval.Rules{Deny: [][]string{{"go"}}}}, want: elicit.Denied, by: approval.ByRule},
		{name: "denied by code", options: Options{Kept: kept, Rules: approval.Rules{Decide: says(elicit.Denied)}}, want: elicit.Denied, by: approval.ByRule},
		{name: "code that panics", options: Options{Kept: kept, Rules: approval.Rules{Decide: func(context.Context, *approval.Request) (elicit.Outcome, bool) { panic("x") }}}, want: elicit.Denied, by: approval.ByRule},
		{name: "allowed outside by the configuration", options: Options{Kept: kept, Rules: approval.Rules{Allow: []approval.Rule{{Command: []string{"go"}, Outside: true}}}}, want: elicit.Approved, by: approval.ByRule},
		{name: "asked by the configuration", options: Options{Kept: kept, Rules: approval.Rules{Ask: [][]string{{"go", "test"}}}}, want: elicit.Denied, by: approval.ByNobody},
		{name: "asked and allowed by the configuration", options: Options{Rules: approval.Rules{Ask: [][]string{{"go"}}, Allow: []approval.Rule{{Command: []string{"go"}, Outside: true}}}}, want: elicit.Denied, by: approval.ByNobody},
		{name: "asked and allowed by code", options: Options{Rules: approval.Rules{Ask: [][]string{{"go"}}, Decide: says(elicit.ApprovedForSession)}}, want: elicit.Denied, by: approval.ByNobody},
		{name: "asked and denied by code", options: Options{Rules: approval.Rules{Ask: [][]string{{"go"}}, Decide: says(elicit.Denied)}}, want: elicit.Denied, by: approval.ByRule},
		{name: "asked and denied by the configuration", options: Options{Kept: kept, Rules: approval.Rules{Ask: [][]string{{"go"}}, Deny: [][]string{{"go"}}}}, want: elicit.Denied, by: approval.ByRule},
		{name: "denied by the turn", options: Options{Kept: kept}, deny: "no", want: elicit.Denied, by: approval.ByRule},
		{name: "a person, and a rule", options: Options{Kept: kept}, human: true, want: elicit.Denied, by: approval.ByNobody},
		{name: "a person, and allowed by the configuration", options: Options{Rules: approval.Rules{Allow: []approval.Rule{{Command: []string{"go"}, Outside: true}}}}, human: true, want: elicit.Denied, by: approval.ByNobody},
		{name: "a person, and allowed by code", options: Options{Rules: approval.Rules{Decide: says(elicit.ApprovedForSession)}}, human: true, want: elicit.Denied, by: approval.ByNobody},
		{name: "a person, and denied by code", options: Options{Rules: approval.Rules{Decide: says(elicit.Denied)}}, human: true, want: elicit.Denied, by: approval.ByRule},
		{name: "a person, and denied by the configuration", options: Options{Rules: approval.Rules{Deny: [][]string{{"go"}}}}, human: true, want: elicit.Denied, by: approval.ByRule},
		{name: "a broken file", options: Options{Kept: broken}, want: elicit.Denied, by: approval.ByNobody},
	} {
		t.Run(tt.name, func(t *testing.T) {
			q := q
			q.Human, q.Confinable = tt.human, !tt.outside
			d := New(&tt.options, nil).Decide(t.Context(), &approval.Request{Event: q, Question: &elicit.Question{}, Deny: tt.deny}, false)
			if d.Decision != tt.want || d.By != tt.by || d.Confined != tt.confined {
				t.Errorf("%s by %s, confined %t, want %s by %s, %t", d.Decision, d.By, d.Confined, tt.want, tt.by, tt.confined)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if d := New(&Options{Kept: kept}, nil).Decide(ctx, &approval.Request{Event: q, Question: &elicit.Question{}}, false); d.Decision != elicit.Abort {
		t.Errorf("after the end of the turn: %s", d.Decision)
	}
}
