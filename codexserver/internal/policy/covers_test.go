package policy_test

import (
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/policy"
)

// TestAsks checks which commands a rule asks about. It compares words as deny does, and asks
// rather too often.
func TestAsks(t *testing.T) {
	rules := [][]string{{"ssh"}, {"git", "push"}, {"./deploy"}, {}}
	for _, tt := range []struct {
		argv string
		want bool
	}{
		{"ssh host", true},
		{"/usr/bin/ssh host", true},
		{"../bin/ssh", true},
		{"sshd", false},
		{"git push --force", true},
		{"/usr/bin/git push", true},
		{"git -C . push", false}, // words, not their meaning
		{"git status", false},
		{"./deploy", true},
		{"deploy", false},
		{"bash|-lc|make && git push", true},
		{"/bin/sh|-c|if true; then (ssh host); fi", true},
		{"bash|-lc|bash -c 'git push'", true},
		{"bash|-lc|x=$(ssh host)", true},
		{"bash|-lc|echo ssh", false},
		{"bash|-lc|" + strings.Repeat("echo; ", policy.MaxScript/6+1), true}, // it may have an ssh
		{"", false},
	} {
		argv := strings.Fields(tt.argv)
		if strings.Contains(tt.argv, "|") {
			argv = strings.Split(tt.argv, "|")
		}
		if got := policy.Asks(rules, argv); got != tt.want {
			t.Errorf("%.60q: %t", tt.argv, got)
		}
		if policy.Asks(nil, argv) {
			t.Errorf("%.60q: asked without rules", tt.argv)
		}
	}
}
