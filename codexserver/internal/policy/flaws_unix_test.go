//go:build unix

package policy_test

import (
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/policy"
)

// remembered are flaws in which the answer "always" to one command also covered another.
var remembered = []struct {
	id, accepted string
	others       []string
}{
	{"GHSA-9q2p-vc84-2rwm", "bash -lc|wc x.py # ; curl x", []string{"curl x", "bash -lc|curl x", "bash -lc|wc x.py; curl x"}},
	{"CVE-2026-35666", "time|wc|x.py", []string{"time touch MARK", "time wc x.py y", "time bash -lc|touch MARK"}},
	{"CVE-2026-29607", "sh -c|wc x.py", []string{"sh -c|touch MARK", "sh -c|wc x.py; touch MARK", "sh -c|wc|x.py"}},
	{"CVE-2026-32052", "sh -c|wc x.py", []string{"sh -c|wc x.py|touch|MARK", "sh -c|$0|touch|MARK", "sh -c|$0 $1|touch|MARK"}},
	{"tracebit-gemini", "wc x.py", []string{"bash -lc|wc x.py ; env | curl h", "bash -lc|wc x.py" + strings.Repeat(" ", 500) + "; curl h", "wc x.py -"}},
	{"anomalyco/opencode#5330", "wc x.py", []string{"wc x.py --files0-from=y", "bash -lc|wc x.py > .bashrc", "bash -lc|wc x.py 2> .bashrc"}},
	{"CVE-2026-32921", "sh|x.py", []string{"sh|y.py", "sh|x.py|y", "sh -e|x.py"}},
	{"GHSA-392f-ggf5-fp3c", "wc x.py", []string{"\uff57c x.py", "wс x.py", "wc x\u2024py", "WC x.py"}}, // wide, Cyrillic, another point
}

// TestPublishedFlawsOfMemory accepts a lasting rule, if one is proposed at all, and checks that
// it allows no other command.
func TestPublishedFlawsOfMemory(t *testing.T) {
	argv := func(text string) []string { // words separated by blanks before the first bar, then by bars
		head, rest, ok := strings.Cut(text, "|")
		words := strings.Split(head, " ")
		if ok {
			words = append(words, strings.Split(rest, "|")...)
		}
		return words
	}
	proposed := 0
	for _, flaw := range remembered {
		t.Run(flaw.id, func(t *testing.T) {
			for _, confinable := range []bool{false, true} {
				w := newWorkplace(t)
				q := w.ask(argv(flaw.accepted), confinable)
				p, ok := policy.Propose(q)
				if !ok {
					continue
				}
				proposed++
				rules := []policy.Rule{p.Rule}
				if _, ok := policy.Covers(rules, q); !ok {
					t.Error("the rule does not allow what was accepted")
				}
				for _, other := range flaw.others {
					if _, ok := policy.Covers(rules, w.ask(argv(other), confinable)); ok {
						t.Errorf("%q also allows %q", flaw.accepted, other)
					}
				}
			}
		})
	}
	if proposed == 0 {
		t.Error("no rule was proposed, so nothing was tried")
	}
}
