package git

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestHead compares Head with git. Head does not handle unusual files.
func TestHead(t *testing.T) {
	run := func(t *testing.T, dir string, args ...string) string {
		t.Helper()
		cmd := exec.Command("git", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1",
			"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	write := func(t *testing.T, dir, name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, ".git", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	committed := t.TempDir()
	run(t, committed, "init", "-qb", "main", "--template=")
	run(t, committed, "commit", "-q", "--allow-empty", "-m", "x")
	first := run(t, committed, "rev-parse", "HEAD")
	for _, tt := range []struct {
		name   string
		lay    func(t *testing.T, dir string)
		branch string
		commit bool // that of HEAD; none otherwise
		ok     bool
	}{
		{"a branch", func(*testing.T, string) {}, "main", true, true},
		{"a packed branch", func(t *testing.T, dir string) { run(t, dir, "pack-refs", "--all") }, "main", true, true},
		{"a branch in a folder", func(t *testing.T, dir string) { run(t, dir, "switch", "-qc", "a/b.c") }, "a/b.c", true, true},
		{"detached", func(t *testing.T, dir string) { run(t, dir, "switch", "-q", "--detach") }, "", true, true},
		{"a link to a branch", func(t *testing.T, dir string) {
			head := filepath.Join(dir, ".git/HEAD")
			if err := errors.Join(os.Remove(head), os.Symlink("refs/heads/main", head)); err != nil {
				t.Fatal(err)
			}
		}, "main", true, true},
		{"not born", func(t *testing.T, dir string) { run(t, dir, "switch", "-q", "--orphan", "new") }, "", false, true},
		{"a branch that leads to another", func(t *testing.T, dir string) { write(t, dir, "refs/heads/main", "ref: refs/heads/x\n") }, "", false, false},
		{"a branch that is no hash", func(t *testing.T, dir string) { write(t, dir, "refs/heads/main", "secret\n") }, "", false, false},
		{"a ref out of the branches", func(t *testing.T, dir string) { write(t, dir, "HEAD", "ref: refs/heads/../../config\n") }, "", false, false},
		{"an absolute ref", func(t *testing.T, dir string) { write(t, dir, "HEAD", "ref: /etc/passwd\n") }, "", false, false},
		{"no HEAD", func(t *testing.T, dir string) { write(t, dir, "HEAD", "") }, "", false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir, hash := t.TempDir(), first
			if err := os.CopyFS(dir, os.DirFS(committed)); err != nil {
				t.Fatal(err)
			}
			tt.lay(t, dir)
			dot := filepath.Join(dir, ".git")
			commit, branch, ok := plainHead(dot, dot)
			if !tt.commit {
				hash = ""
			}
			if ok != tt.ok || ok && (commit != hash || branch != tt.branch) {
				t.Errorf("%q %q %t, want %q %q %t", commit, branch, ok, hash, tt.branch, tt.ok)
			}
		})
	}
}
