package git_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestConfine checks that commands in a worktree can write only there, although it is in a protected
// folder, and can read with git, but cannot commit.
func TestConfine(t *testing.T) {
	r := newRepo(t)
	r.write("a", "one\n")
	r.commit("x")
	home := filepath.Join(t.TempDir(), "home")
	scratch := git.Scratch{Dir: filepath.Join(home, "tmp")}
	trees := git.Worktrees(home)
	w := must.Get(scratch.AddWorktree(t.Context(), r.dir, trees))(t)
	other := must.Get(scratch.AddWorktree(t.Context(), r.dir, trees))(t)
	s := box.New(box.Options{Protected: []string{home}, Private: []string{home}, Trees: trees})
	policy := protocol.SandboxPolicy{Mode: protocol.SandboxWorkspaceWrite, ExcludeSlashTmp: true, ExcludeTmpdirEnvVar: true}
	for dir, writable := range map[string]bool{w.Path: true, trees: false, home: false} {
		if roots, err := s.Roots(policy, dir, nil); err != nil || (len(roots.Paths) == 1) != writable {
			t.Errorf("in %s writable are %q, %v", dir, roots.Paths, err)
		}
	}
	c := must.Get(s.Confine(policy, w.Cwd, nil))(t)
	script := strings.NewReplacer("MAIN", r.dir, "ADMIN", filepath.Join(r.dir, ".git", "worktrees", filepath.Base(w.Path)), "TREES", trees, "OTHER", other.Path, "HOME", home).Replace(`
try() { if (eval "$1") >/dev/null 2>&1; then echo "$2 yes"; else echo "$2 no"; fi; }
try 'echo x > own' own
try 'mkdir -p sub && echo x > sub/own' below
try 'git status && git diff && git log' look
try 'echo x > MAIN/a' base
try 'echo x > MAIN/.git/x' git
try 'echo x > ADMIN/HEAD' admin
try 'echo x > OTHER/x' other
try 'echo x > TREES/x' trees
try 'echo x > HOME/x' home
try 'git add own' add
try 'git commit -qam x' commit
try 'git branch x' branch
`)
	var processes run.Starter
	defer processes.Close()
	res, err := processes.Run(t.Context(), run.Spec{
		Argv: []string{"sh", "-c", script}, Dir: w.Cwd, Env: append(os.Environ(), "GIT_OPTIONAL_LOCKS=0"), Confinement: c,
	}, nil)
	must.OK(t, err)
	const want = "own yes\nbelow yes\nlook yes\nbase no\ngit no\nadmin no\nother no\ntrees no\nhome no\nadd no\ncommit no\nbranch no\n"
	must.Equal(t, "what could be done", want, res.Stdout)
}
