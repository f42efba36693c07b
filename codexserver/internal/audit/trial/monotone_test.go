package trial_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/audit"
	"github.com/codexmcp/codexmcp/codexserver/internal/audit/trial"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/go-json-experiment/json"
)

// words are the words of the grammar, of which each command and each rule is one or two.
var words = []string{"git", "push"}

func phrases() (all [][]string) {
	for _, a := range words {
		all = append(all, []string{a})
		for _, b := range words {
			all = append(all, []string{a, b})
		}
	}
	return all
}

// record writes a record in which every command of the grammar was asked about, plain and in a shell, and returns
// its files.
func record(t *testing.T) []string {
	var lines []audit.Line
	n := 0
	add := func(argv []string, policy string, escalated bool) {
		n++
		command, err := json.Marshal(argv)
		if err != nil {
			t.Fatal(err)
		}
		b := &protocol.Basis{Policy: protocol.ApprovalPolicy(policy), Sandbox: "workspace-write", Available: true, Escalated: escalated}
		lines = append(lines, audit.Line{
			Thread: "t", ID: fmt.Sprint(n), Decision: "approved", By: "client", Covers: &audit.Covers{Confinable: !escalated, Placed: true, Basis: b},
			Question: fmt.Appendf(nil, `{"type":"exec_approval_request","call_id":"%d","command":%s,"cwd":"/work"}`, n, command),
		})
	}
	for _, p := range phrases() {
		line := strings.Join(p, " ")
		for _, argv := range [][]string{p, {"bash", "-lc", line}, {"bash", "-lc", line + " && push git"}, {"sh", "-c", line + " > x"}} {
			add(argv, "untrusted", false)
			add(argv, "on-request", true)
		}
	}
	return recordOf(t, lines...)
}

// TestMonotone tries all sets of rules of a small grammar: with one more rule that denies, no command is decided more
// laxly, and with one more that asks, none that was asked about or refused runs.
func TestMonotone(t *testing.T) {
	paths := record(t)
	fates := func(r approval.Rules, policy protocol.ApprovalPolicy) map[string]trial.Fate {
		t.Helper()
		all, err := trial.Fates(paths)
		if err != nil {
			t.Fatal(err)
		}
		found, err := trial.Try(t.Context(), paths, &trial.Options{Rules: r, Policy: policy})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range found.Changes {
			all[c.Thread+" "+c.Call] = c.Now
		}
		return all
	}
	strict := map[trial.Fate]int{trial.Runs: 0, trial.Asked: 1, trial.Refused: 2}
	var allows [][]approval.Rule
	allows = append(allows, nil)
	for _, p := range phrases() {
		allows = append(allows, []approval.Rule{{Command: p}}, []approval.Rule{{Command: p, Outside: true}})
	}
	moved := 0
	for _, policy := range []protocol.ApprovalPolicy{"", protocol.ApprovalNever} {
		for _, allow := range allows {
			for _, base := range []approval.Rules{{Allow: allow}, {Allow: allow, Ask: [][]string{{"git"}}}, {Allow: allow, Deny: [][]string{{"push", "git"}}}} {
				before := fates(base, policy)
				for _, p := range phrases() {
					denied, asked := base, base
					denied.Deny = append(denied.Deny[:len(denied.Deny):len(denied.Deny)], p)
					asked.Ask = append(asked.Ask[:len(asked.Ask):len(asked.Ask)], p)
					for what, more := range map[string]approval.Rules{"deny": denied, "ask": asked} {
						for call, now := range fates(more, policy) {
							was := before[call]
							if now != was {
								moved++
							}
							if strict[now] < strict[was] {
								t.Errorf("%v, %q: with %s %v %s is %q, and was %q", base, policy, what, p, call, now, was)
							}
						}
					}
				}
			}
		}
	}
	if moved == 0 {
		t.Error("no rule has changed anything")
	}
}
