//go:build unix

package git_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestHead reads the state of repositories, with git and where no git is installed: only what is unusual needs it.
func TestHead(t *testing.T) {
	first := newRepo(t)
	first.write("sub/a.txt", "one\n")
	sha := first.commit("first")
	first.push()
	url := first.git("config", "remote.origin.url")
	on := func(commit, branch string) *protocol.GitInfo {
		return &protocol.GitInfo{CommitHash: commit, Branch: branch, RepositoryURL: url}
	}
	rows := []struct {
		name, lay, dir string // the script runs in the repository
		want           *protocol.GitInfo
		git            bool // without git there is only the URL
	}{
		{"no repository", "", "..", nil, false},
		{"no commit", "rm -r .git; git init -qb main", ".", &protocol.GitInfo{}, false},
		{"a branch", "", ".", on(sha, "main"), false},
		{"a folder below", "", "sub", on(sha, "main"), false},
		{"a branch in a folder", "git switch -qc a/b.c", ".", on(sha, "a/b.c"), false},
		{"a packed branch", "git pack-refs --all", ".", on(sha, "main"), false},
		{"a worktree", "git worktree add -qb other ../tree", "../tree", on(sha, "other"), false},
		{"detached", "git switch -q --detach", ".", on(sha, ""), false},
		{"a branch that is not born", "git switch -q --orphan new", ".", on("", ""), false},
		{"a link to the branch", "ln -sf refs/heads/main .git/HEAD", ".", on(sha, "main"), false},
		{"a branch that leads to another", "git branch x; git symbolic-ref refs/heads/main refs/heads/x", ".", on(sha, "x"), true},
		{"a branch that is no hash", "echo secret > .git/refs/heads/main", ".", on("", ""), true},
		{"a ref out of the branches", "echo ref: refs/heads/../../config > .git/HEAD", ".", on("", ""), true},
		{"an absolute ref", "echo ref: /etc/passwd > .git/HEAD", ".", nil, false},
		{"no HEAD", ": > .git/HEAD", ".", nil, false},
		{"two URLs, the second for pushes", "git config --add remote.origin.url ../second.git", ".", on(sha, "main"), false},
		{"a quoted value", "git config a.b 'c # d'", ".", on(sha, "main"), false},
	}
	for i, r := range first.copies(t, len(rows)) {
		tt := rows[i]
		t.Run(tt.name, func(t *testing.T) {
			r.in(t).shell(tt.lay)
			scratch := filepath.Join(t.TempDir(), "a", "b")
			read := func() *protocol.GitInfo {
				return git.Head(t.Context(), filepath.Join(r.dir, tt.dir), git.Scratch{Dir: scratch})
			}
			must.Equal(t, "with git", tt.want, read())
			if left, _ := os.ReadDir(scratch); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
			t.Setenv("PATH", "")
			want := tt.want
			if tt.git {
				want = on("", "")
			}
			must.Equal(t, "without git", want, read())
		})
	}
}
