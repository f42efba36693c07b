package git_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestRoot compares Root with git, in a folder below a repository. Each case changes the .git of that folder.
func TestRoot(t *testing.T) {
	t.Parallel()
	run := func(dir, script string) (string, error) {
		cmd := exec.Command("sh", "-ec", script)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "GIT_TEMPLATE_DIR=",
			"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
		text, err := cmd.CombinedOutput()
		return strings.TrimSpace(string(text)), err
	}
	around := t.TempDir()
	if text, err := run(around, "mkdir in; git init -q; git commit -q --allow-empty -m x"); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	for _, tt := range []struct {
		name string
		lay  string // in the shell, in the folder in
		root string // "in", "out" for the repository around it
		dies bool   // git gives up
	}{
		{"a repository", "git init -q", "in", false}, {"no .git", "", "out", false}, {"an empty .git", "mkdir .git", "out", false},
		{"an empty file", "touch .git", "out", true},
		{"a link to nowhere", "ln -s nowhere .git", "out", false},
		{"a link to a repository", "git init -q --separate-git-dir=../folder; rm .git; ln -s ../folder .git", "in", false},
		{"no HEAD", "git init -q; rm .git/HEAD", "out", false},
		{"no objects", "git init -q; rm -r .git/objects", "out", false},
		{"no refs", "git init -q; rm -r .git/refs", "out", false},
		{"only HEAD", "mkdir .git; echo ref: refs/heads/main >.git/HEAD", "out", false},
		{"HEAD is empty", "git init -q; : >.git/HEAD", "out", false},
		{"HEAD is a folder", "git init -q; rm .git/HEAD; mkdir .git/HEAD", "out", false},
		{"HEAD is a hash", "git init -q; printf %040d 1 >.git/HEAD", "in", false},
		{"HEAD is a hash in capital letters", "git init -q; printf A%039d 1 >.git/HEAD", "in", false},
		{"HEAD is a longer hash", "git init -q; printf %064d 1 >.git/HEAD", "in", false},
		{"HEAD is a short hash", "git init -q; printf %039d 1 >.git/HEAD", "out", false},
		{"HEAD without a space", "git init -q; echo ref:refs/heads/main >.git/HEAD", "in", false},
		{"HEAD leads elsewhere", "git init -q; echo ref: /etc/passwd >.git/HEAD", "out", false},
		{"HEAD is a link", "git init -q; ln -sf refs/heads/main .git/HEAD", "in", false},
		{"HEAD is a link to elsewhere", "git init -q; mv .git/HEAD .git/other; ln -s other .git/HEAD", "out", false},
		{"the file of another folder", "git init -q --separate-git-dir=../folder", "in", false},
		{"a file that leads nowhere", "echo gitdir: nowhere >.git", "out", true},
		{"a file that leads to an empty folder", "mkdir d; echo gitdir: d >.git", "out", true},
		{"another working tree", "rm -d ../in; cd ..; git worktree add -q in", "in", false},
		{"another working tree of a repository that is gone", "rm -d ../in; cd ..; git worktree add -q in; mkdir empty; echo ../../../empty >.git/worktrees/in/commondir", "out", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out, err := filepath.EvalSymlinks(t.TempDir())
			must.OK(t, err)
			want := out
			in := filepath.Join(out, "in")
			if tt.root == "in" {
				want = in
			}
			must.OK(t, os.CopyFS(out, os.DirFS(around)))
			if text, err := run(in, tt.lay); err != nil {
				t.Fatalf("%v: %s", err, text)
			}
			must.OK(t, os.MkdirAll(filepath.Join(in, "sub"), 0o700))
			if got := git.Root(filepath.Join(in, "sub")); got != want {
				t.Errorf("%q, want %q", got, want)
			}
			if text, err := run(in, "git -C sub rev-parse --show-toplevel"); (err != nil) != tt.dies || err == nil && text != want {
				t.Errorf("git: %q %v, want %q", text, err, want)
			}
		})
	}
}
