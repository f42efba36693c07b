package client

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestWords checks that a question has the words of one plain command, and of no other.
func TestWords(t *testing.T) {
	words := func(w ...string) []string { return w }
	for _, tt := range []struct{ command, want []string }{
		{words("bash", "-lc", "git status"), words("git", "status")},
		{words("/bin/sh", "-c", `git commit -m 'a b'`), words("git", "commit", "-m", "a b")},
		{words("git", "status"), words("git", "status")},
		{words("git", "status; rm -rf x"), words("git", "status; rm -rf x")}, // no shell reads it
		{words("env", "bash", "-c", "rm x"), words("env", "bash", "-c", "rm x")},
		{nil, nil},
		{words("bash", "-lc", "git status; rm x"), nil},
		{words("bash", "-lc", "git status && rm x"), nil},
		{words("bash", "-lc", "git status | sh"), nil},
		{words("bash", "-lc", "git status > x"), nil},
		{words("bash", "-lc", "git $(rm x)"), nil},
		{words("bash", "-lc", "GIT_DIR=x git status"), nil},
		{words("bash", "-lc", "bash -c 'rm x'"), nil},
		{words("bash", "-lc", "/tmp/sh x"), nil},
		{words("zsh", "-lc", "=git status"), nil},
		{words("bash", "-lc", ""), nil},
		{words("bash", "-ic", "git status"), nil},
		{words("bash", "git"), nil},
		{words("/tmp/bash", "-lc", "git status"), nil},
		{words("fish", "-c", "git status"), nil},
	} {
		command := must.Get(json.Marshal(tt.command))(t)
		q := must.Get(newQuestion(fmt.Appendf(nil, `{"message":"?","_meta":{"codex/approval":{"kind":"exec","command":%s}}}`, command)))(t)
		must.Equal(t, string(command), fmt.Sprintf("%q", tt.want), fmt.Sprintf("%q", q.Words))
		must.Equal(t, "the command", fmt.Sprintf("%q", tt.command), fmt.Sprintf("%q", q.Command))
	}
}
