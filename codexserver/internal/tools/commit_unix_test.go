//go:build unix

package tools_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// sh is a turn of the model in which it runs a line.
func sh(line string) providertest.Turn {
	return providertest.Call(providertest.Shell("1", "sh", "-c", line))
}

// TestCommitOfATurn has the work of a conversation committed at the end of each of its turns, however that ends, and by each
// server that runs one. The model is told so, after what the caller and the configuration tell it.
func TestCommitOfATurn(t *testing.T) {
	w := newWorkshop(t)
	dir := t.TempDir()
	servertest.CommitBase(t, dir)
	must.OK(t, os.MkdirAll(w.home, 0o700))
	must.OK(t, os.WriteFile(filepath.Join(w.home, "config.toml"), []byte("developer_instructions = \"CONFIGURED\"\n"), 0o600))
	serve := func(turns ...providertest.Turn) (*servertest.Client, *providertest.Server) {
		model := providertest.New(turns...)
		s := codexserver.New(newNative(t, w.home, model), &codexserver.Options{Home: w.home})
		return servertest.Join(t, s, servertest.Host{Era: servertest.Handshake}), model
	}
	c, model := serve(sh(servertest.CommitWork), providertest.Say("done"), providertest.Say("nothing"),
		sh("echo x >two; git add two"), providertest.Turn{Status: 400, Body: "no"}, sh("echo x >three"), sh("true"), sh("true"))
	first := servertest.CheckCommit(t, dir, c.CallTool(t, "codex", fmt.Sprintf(`{"prompt":"\n Do the work\nas I say","cwd":%q,"worktree":true,%s}`, dir, servertest.CommitSandbox)))
	id, tree := first.ThreadID, first.Worktree
	if body := string(model.Requests()[0].Body); strings.Count(body, "You need not commit") != 1 || !strings.Contains(body, `CONFIGURED\n\nYou work in a git worktree`) {
		t.Errorf("the model is told %s", body)
	}
	reply := func(c *servertest.Client, arguments string) (r servertest.WorktreeResult) {
		t.Helper()
		use(t, c, "codex-reply", fmt.Sprintf(`{"threadId":%q,"prompt":"More\n",%s}`, id, arguments), &r)
		return r
	}
	r := reply(c, `"background":false`)
	must.Equal(t, "the commit of a turn without changes", tree.Commit, r.Worktree.Commit)
	r = reply(c, `"background":false`)
	must.Equal(t, "the status", "failed", r.Status)
	must.Equal(t, "the commit of a turn that failed", "A\ttwo", servertest.Git(t, dir, "show", "--format=", "--name-status", r.Worktree.Commit))
	second := r.Worktree.Commit
	r = reply(c, `"budget":{"tokens":16}`)
	must.Equal(t, "the status", "aborted", r.Status)
	must.Equal(t, "the commit of a turn that was stopped", "A\tthree", servertest.Git(t, dir, "show", "--format=", "--name-status", r.Worktree.Commit))
	must.Equal(t, "its parent", second, servertest.Git(t, dir, "rev-parse", r.Worktree.Commit+"^"))
	c.End()

	c, model = serve(sh("for f in ../*.json .git; do echo x >>$f; done; echo four >four"), providertest.Say("done"), sh("echo five >five"), providertest.Say("done"))
	r = reply(c, `"background":false`)
	must.Equal(t, "the commit of another server's turn", "A\tfour", servertest.Git(t, dir, "show", "--format=", "--name-status", r.Worktree.Commit))
	must.Equal(t, "the subjects", "More\nMore\nMore\nDo the work\nfirst", servertest.Git(t, dir, "log", "--format=%s", tree.Branch))
	if body := string(model.Requests()[0].Body); strings.Count(body, "You need not commit") != 1 {
		t.Errorf("the model is told %s", body)
	}
	other := must.Get(git.Scratch{}.FindWorktree(git.Worktrees(w.home), tree.Path))(t)
	must.OK(t, other.Owner("another one"))
	left := reply(c, `"background":false`)
	must.Equal(t, "what a turn says that has no worktree", "", left.Worktree.Path)
	must.Equal(t, "the branch of another conversation", r.Worktree.Commit, servertest.Git(t, dir, "rev-parse", tree.Branch))
	c.End()

	c, model = serve(providertest.Say("done"))
	c.CallTool(t, "codex", fmt.Sprintf(`{"prompt":"p","cwd":%q,"worktree":true,"developer-instructions":"CALLED"}`, dir))
	if body := string(model.Requests()[0].Body); strings.Contains(body, "CONFIGURED") || !strings.Contains(body, `CALLED\n\nYou work in a git worktree`) {
		t.Errorf("the model is told %s", body)
	}
}

// TestCommitLeavesOut has the result name what is not committed: what the engine keeps from models, and what git cannot store here.
// Nothing is committed while another branch is checked out, and the result says so.
func TestCommitLeavesOut(t *testing.T) {
	w := newWorkshop(t)
	model := providertest.New(
		sh("echo SECRET >private; echo open >open; printf '*.bin filter=lfs\\n' >.gitattributes; echo x >a.bin; echo x >b.bin; git init -q nested"), providertest.Say("done"),
		sh("git checkout -q -b mine; echo x >more"), providertest.Say("done"))
	c := servertest.Connect(t, codexserver.New(keeper{newNative(t, w.home, model)}, &codexserver.Options{Home: w.home}), nil)
	var r servertest.WorktreeResult
	use(t, c, "codex", map[string]any{"prompt": "p", "cwd": w.repo, "worktree": true}, &r)
	for _, words := range []string{
		"Not committed: a.bin, b.bin (git-lfs stores it elsewhere, and git-lfs does not run here).",
		"Not committed: nested/ (another repository).", "Not committed: private (withheld by the configuration).",
	} {
		if !strings.Contains(r.Content, words) {
			t.Errorf("%q is not in %s", words, r.Content)
		}
	}
	must.Equal(t, "the commit", "A\t.gitattributes\nA\topen", w.git("show", "--format=", "--name-status", r.Worktree.Commit))
	use(t, c, "codex-reply", map[string]any{"threadId": r.ThreadID, "prompt": "p"}, &r)
	if want := "Nothing was committed on " + r.Worktree.Branch + ": the branch " + r.Worktree.Branch + " is not checked out in it."; !strings.Contains(r.Content, want) {
		t.Errorf("%q is not in %s", want, r.Content)
	}
	must.Equal(t, "the commits", "1", w.git("rev-list", "--count", "main.."+r.Worktree.Branch))
}
