package servertest

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Git runs git in a folder, with an author and without the configuration of the user and of the
// system, and returns what it prints.
func Git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "XDG_CONFIG_HOME="+os.DevNull,
		"GIT_AUTHOR_NAME=somebody", "GIT_AUTHOR_EMAIL=somebody@example.com", "GIT_COMMITTER_NAME=somebody", "GIT_COMMITTER_EMAIL=somebody@example.com")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}
