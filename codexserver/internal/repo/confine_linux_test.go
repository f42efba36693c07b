package repo_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/proc"
	"github.com/codexmcp/codexmcp/codexserver/internal/repo"
	"github.com/codexmcp/codexmcp/codexserver/internal/sandbox"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// TestConfine checks that commands of the thread can write only to the worktree, and can
// read with git, but cannot commit.
func TestConfine(t *testing.T) {
	b := newBench(t)
	b.commit(map[string]string{"a": "one\n"})
	w := b.create(repo.CreateOptions{})
	home := filepath.Dir(b.store.Trees)
	s := sandbox.New(sandbox.Options{Protected: append(w.ReadOnly(), home), Named: w.Writable()})
	policy := protocol.SandboxPolicy{Mode: protocol.SandboxWorkspaceWrite, ExcludeSlashTmp: true, ExcludeTmpdirEnvVar: true}
	c, err := s.Confine(policy, w.Cwd(), nil)
	if err != nil {
		t.Fatal(err)
	}
	before := tree(t, b.dir)
	admin := filepath.Join(b.dir, ".git", "worktrees", "codex-mcp-"+w.ID())
	script := strings.NewReplacer("MAIN", b.dir, "ADMIN", admin, "RECORDS", b.store.Records, "TREES", b.store.Trees).Replace(`
try() { if (eval "$1") >/dev/null 2>&1; then echo "$2 yes"; else echo "$2 no"; fi; }
try 'echo x > own' own
try 'mkdir -p sub && echo x > sub/own' below
try 'git status && git diff && git log' look
try 'echo x > MAIN/a' base
try 'echo x > MAIN/.git/x' git
try 'echo x > ADMIN/HEAD' admin
try 'echo x > RECORDS/x' records
try 'echo x > TREES/x' trees
try 'git add own' add
try 'git commit -qam x' commit
try 'git branch x' branch
`)
	var processes proc.Pool
	defer processes.Close()
	res, err := processes.Run(t.Context(), proc.Spec{
		Argv: []string{"sh", "-c", script}, Dir: w.Cwd(), Env: append(os.Environ(), "GIT_OPTIONAL_LOCKS=0"), Confinement: c,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	const want = "own yes\nbelow yes\nlook yes\nbase no\ngit no\nadmin no\nrecords no\ntrees no\nadd no\ncommit no\nbranch no\n"
	if res.Stdout != want {
		t.Errorf("got\n%s%s", res.Stdout, res.Stderr)
	}
	same(t, "the caller's tree", before, tree(t, b.dir))
	if s, err := w.Status(t.Context()); err != nil || len(s.Files) != 2 {
		t.Errorf("%+v, %v", s, err)
	}
}
