package policy_test

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/policy"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// FuzzProposal accepts the proposal of one command and asks about another. A command that the
// rule allows would itself have been proposed that rule or a stricter one, and begins with its
// words, in plain words.
func FuzzProposal(f *testing.F) {
	for _, seed := range [][2]string{
		{"git push", "git push --force"},
		{"git push origin", "git push -u origin main"},
		{"go test", "go test -run X ./..."},
		{"go test", "bash\n-lc\ngo test ./... && go test -v"},
		{"npm run build", "npm run build"},
		{"make all", "make all"},
		{"cargo test", "cargo test -- --nocapture"},
		{"bash\n-lc\ngit push", "sh\n-c\ngit push; git push --tags"},
		{"python3 x.py", "python3 x.py"},
	} {
		f.Add(seed[0], seed[1], true)
		f.Add(seed[0], seed[1], false)
	}
	dir := repository(f)
	ask := func(line string, confinable bool) *protocol.ExecApprovalRequest {
		argv := strings.Split(line, "\n")
		if len(argv) == 1 {
			argv = strings.Fields(line)
		}
		q := &protocol.ExecApprovalRequest{Command: argv, Cwd: dir, Placed: true, Confinable: confinable}
		if _, _, ok := policy.Literal(argv); ok {
			q.Content = fmt.Sprintf("%x", sha256.Sum256([]byte(line)))
		}
		return q
	}
	f.Fuzz(func(t *testing.T, first, second string, confinable bool) {
		p, ok := policy.Propose(ask(first, confinable))
		if !ok {
			return
		}
		if own, ok := policy.Covers([]policy.Rule{p.Rule}, ask(first, confinable)); !ok || own != confinable {
			t.Fatalf("%q: its own rule does not allow it: %s", first, p.Words)
		}
		rules := []policy.Rule{p.Rule}
		if wide, ok := p.Everywhere(); ok {
			rules = append(rules, wide.Rule)
		}
		for _, inside := range []bool{true, false} {
			q := ask(second, inside)
			confined, ok := policy.Covers(rules, q)
			if !ok {
				continue
			}
			if !confined && !p.Rule.Outside || confined && !inside {
				t.Errorf("%q lets %q out of the sandbox", first, second)
			}
			q.Confinable = confined
			again, ok := policy.Propose(q)
			if !ok || !again.Rule.Equal(p.Rule) {
				t.Errorf("%q: %s allows %q, of which is proposed: %t %s", first, p.Words, second, ok, again.Words)
			}
			commands, plain := policy.Commands(q.Command)
			if !plain {
				t.Fatalf("%q allows %q", first, second)
			}
			for _, argv := range commands {
				if len(p.Rule.Prefix) == 0 && !slices.Equal(p.Rule.Exact, q.Command) ||
					len(p.Rule.Prefix) > 0 && !slices.Equal(argv[:min(len(argv), len(p.Rule.Prefix))], p.Rule.Prefix) && !policy.KnownSafeStrict(argv) {
					t.Errorf("%q allows %q", first, second)
				}
				for _, word := range argv {
					for _, bad := range []string{"--exec", "--receive-pack", "--config", "--force", "-exec", "--script-shell", "-toolexec"} {
						if len(p.Rule.Prefix) > 0 && (word == bad || strings.HasPrefix(word, bad+"=")) {
							t.Errorf("%q allows %q", first, second)
						}
					}
				}
			}
		}
	})
}
