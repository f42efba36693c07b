package approve

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/decide"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/go-json-experiment/json"
)

func TestRules(t *testing.T) {
	rules := approval.Rules{
		Allow: []approval.Rule{{Command: []string{"go", "test"}}, {Command: []string{"git"}, Outside: true}},
		Deny:  [][]string{{"git", "push"}, {}},
		Ask:   [][]string{{"git", "fetch"}, {"ssh"}, {}},
	}
	for _, tt := range []struct {
		argv string
		want elicit.Decision // "" means that no rule decides
	}{
		{"go test ./...", elicit.Approved}, {"go vet", ""}, {"git push", elicit.Denied}, {"git push --force", elicit.Denied},
		{"git status", elicit.Approved}, {"gitx", ""}, {"", ""},
		{"bash|-lc|git status && go test", elicit.Approved},
		{"/bin/bash|-lc|go test", elicit.Approved}, // as Codex wraps it
		{"./bash|-lc|go test", ""},
		{"bash|-lc|git status && git push", elicit.Denied},
		{"sh|-c|go vet; git push", elicit.Denied}, {"bash|-lc|go test && rm -rf /", ""}, {"bash|-lc|go test $(rm -rf /)", ""},
		{"bash|-lc|go test > out", ""}, {"bash|-lc|go test *", ""}, {"bash|script", ""}, {"git fetch", ""}, {"git fetch --all", ""},
		{"bash|-lc|git status && git fetch", ""},
		{"bash|-lc|git status && git push; git fetch", elicit.Denied},
		{"bash|-lc|" + strings.Repeat("echo; ", decide.MaxScript/6+1), elicit.Denied}, // it may have a git push
	} {
		argv := strings.Fields(tt.argv)
		if strings.Contains(tt.argv, "|") {
			argv = strings.Split(tt.argv, "|")
		}
		out, ruled := decideExec(&rules, &protocol.ExecApprovalRequest{Command: argv, Confinable: true})
		if ruled != (tt.want != "") || out.Decision != tt.want {
			t.Errorf("%q: %v %q, want %q", argv, ruled, out.Decision, tt.want)
		}
		if tt.want == elicit.Denied && !strings.Contains(out.ForModel(), "rule") {
			t.Errorf("%q: the model is told %q", argv, out.ForModel())
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	rules.Decide = func(context.Context, *approval.Request) (elicit.Outcome, bool) {
		return elicit.Outcome{Decision: elicit.Approved}, true
	}
	if out, ruled := byRules(ctx, &rules, &approval.Request{Event: protocol.PatchApprovalRequest{}, Question: &elicit.Question{}}); !ruled || out.Decision != elicit.Abort {
		t.Errorf("a rule that returns after the turn: %q, %t", out.Decision, ruled)
	}
}

// TestRulesInTheSandbox checks that a rule without Outside approves only runs in the sandbox.
func TestRulesInTheSandbox(t *testing.T) {
	rules := approval.Rules{Allow: []approval.Rule{
		{Command: []string{"go"}}, {Command: []string{"go", "vet"}, Outside: true}, {Command: []string{"make"}, Outside: true},
	}}
	for _, tt := range []struct {
		argv       []string
		confinable bool
		want       string
	}{
		{[]string{"go", "test"}, true, "inside"}, {[]string{"go", "test"}, false, "asked"}, {[]string{"go", "vet"}, true, "outside"},
		{[]string{"go", "vet"}, false, "outside"},
		{[]string{"bash", "-lc", "make && go vet"}, false, "outside"},
		{[]string{"bash", "-lc", "make && go test"}, true, "inside"},
		{[]string{"bash", "-lc", "make && go test"}, false, "asked"},
		{[]string{"bash", "-lc", "go test && make"}, false, "asked"},
		{[]string{"bash", "-lc", "go test && rm x"}, true, "asked"},
	} {
		out, ruled := decideExec(&rules, &protocol.ExecApprovalRequest{Command: tt.argv, Confinable: tt.confinable, LeavesSandbox: true})
		got := "asked"
		if ruled && out.Decision == elicit.Approved {
			got = map[bool]string{true: "inside", false: "outside"}[out.Confined]
		}
		if got != tt.want {
			t.Errorf("%q, confinable %t: %s, want %s", tt.argv, tt.confinable, got, tt.want)
		}
	}
}

// TestOutcomeIsLimited checks that an outcome of foreign code is limited to what the question offers.
func TestOutcomeIsLimited(t *testing.T) {
	inside := protocol.ExecApprovalRequest{Confinable: true}
	for _, tt := range []struct {
		event    protocol.EventMsg
		given    elicit.Decision
		confined bool
		once     bool
		want     elicit.Decision
	}{
		{inside, "yes", false, false, elicit.Denied},
		{inside, "", false, false, elicit.Denied},
		{inside, elicit.ApprovedForSession, false, true, elicit.Approved},
		{inside, elicit.ApprovedForSession, false, false, elicit.ApprovedForSession},
		{inside, elicit.Approved, true, false, elicit.Approved},
		{inside, elicit.ApprovedForSession, true, false, elicit.Approved},
		{protocol.ExecApprovalRequest{}, elicit.Approved, true, false, elicit.Denied},
		{protocol.ExecApprovalRequest{}, elicit.Abort, true, false, elicit.Abort},
		{protocol.PatchApprovalRequest{}, elicit.Approved, true, false, elicit.Denied},
	} {
		o := &Options{Rules: approval.Rules{Decide: func(context.Context, *approval.Request) (elicit.Outcome, bool) {
			return elicit.Outcome{Decision: tt.given, Confined: tt.confined}, true
		}}}
		if got := New(o, nil).Decide(t.Context(), &approval.Request{Event: tt.event, Question: &elicit.Question{Once: tt.once}}, false); got.Decision != tt.want || got.By != approval.ByRule {
			t.Errorf("%+v: %s by %s, want %s", tt, got.Decision, got.By, tt.want)
		}
	}
}

// TestRulesAsJudged asks about every command of the corpus.
func TestRulesAsJudged(t *testing.T) {
	rules := approval.Rules{
		Allow: []approval.Rule{
			{Command: []string{"go", "test"}}, {Command: []string{"git", "log"}}, {Command: []string{"make"}, Outside: true},
			{Command: []string{"run.sh"}}, {Command: []string{"./run.sh"}}, {Command: []string{"node_modules/.bin/tsc"}},
			{Command: []string{"tsc"}}, {Command: []string{"pytest"}}, {Command: []string{"linked"}}, {Command: []string{"missing"}},
		},
		Deny: [][]string{{"git", "push"}, {"rm"}},
	}
	corpus, err := os.ReadFile("../decide/testdata/judged.ndjson")
	if err != nil {
		t.Fatal(err)
	}
	words := map[elicit.Decision]string{"": "ask", elicit.Approved: "allow", elicit.Denied: "deny"}
	for line := range bytes.Lines(corpus) {
		var row struct {
			Command []string
			Rules   string
			Why     string
		}
		if err := json.Unmarshal(line, &row, json.MatchCaseInsensitiveNames(true)); err != nil {
			t.Fatal(err)
		}
		q := protocol.ExecApprovalRequest{Command: row.Command, Cwd: "/work", Confinable: true}
		out, _ := decideExec(&rules, &q)
		if got := words[out.Decision]; got != row.Rules {
			t.Errorf("%q: %s, want %s: %s", row.Command, got, row.Rules, row.Why)
		}
	}
}
