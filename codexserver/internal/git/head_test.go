//go:build unix

package git_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/safefile"
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

// TestCalls lists the commands of git that a look and a comparison start.
func TestCalls(t *testing.T) {
	first := newRepo(t)
	first.shell("for f in a b c d; do echo $f > $f; done")
	first.commit("first")
	const look, some = "ls-files status", "status checkout-index diff"
	rows := []struct{ name, lay, act, look, compare string }{
		{"nothing", "", "", look, "status"},
		{"an edit", "", "echo x >> a", look, some},
		{"a file less", "", "rm a", look, some},
		{"a file more", "", "echo n > n", look, "status diff"},
		{"changes before", "echo xx > b; rm c; echo n > n", "echo yy > b", look, "status diff"},
		{"attributes", "echo '*.x -diff' > .gitattributes", "echo x >> a", look, some + " check-attr"},
		{"line ends", "printf 'a\\r\\n' > a; echo '* text=auto' > .gitattributes", "printf 'b\\r\\n' > a", look, "status diff check-attr apply diff"},
	}
	program := must.Get(exec.LookPath("git"))(t)
	bin := t.TempDir()
	(&fixture{t, bin}).program("git", `(while [ "$1" = -c ]; do shift 2; done; echo "$1" >> "${GIT_DIR%/git}/calls") 2> /dev/null; exec '`+program+`' "$@"`)
	for i, r := range first.copies(t, len(rows)) {
		tt := rows[i]
		t.Run(tt.name, func(t *testing.T) {
			r := r.in(t)
			r.shell("git update-index -q --refresh; touch -t 210001010000 .git/index; " + tt.lay) // written long after the files
			scratch := scratch(t)
			calls := func() string {
				files, err := filepath.Glob(filepath.Join(scratch.Dir, "git-*", "calls"))
				var all strings.Builder
				for _, file := range files {
					data, _ := os.ReadFile(file)
					all.Write(data)
				}
				must.Check(t, err)
				return strings.Join(strings.Fields(all.String()), " ")
			}
			path := os.Getenv("PATH")
			t.Setenv("PATH", bin+":"+path)
			s, err := git.Look(t.Context(), r.dir, &git.Options{Scratch: scratch})
			must.OK(t, err)
			defer s.Remove()
			must.Equal(t, "the look", tt.look, calls())
			t.Setenv("PATH", path)
			r.shell(tt.act)
			if _, _, err = s.Compare(t.Context(), 1<<20); err != nil {
				t.Fatal(err)
			}
			must.Equal(t, "both", strings.TrimSpace(tt.look+" "+tt.compare), calls())
		})
	}
}

// TestScratchSweep checks that only folders are removed that are ours, and not locked by a process that uses them.
func TestScratchSweep(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"git-left", "git-used", "arg0", "trail-1"} {
		must.OK(t, os.MkdirAll(filepath.Join(dir, name, "git"), 0o700))
	}
	must.OK(t, os.Symlink(t.TempDir(), filepath.Join(dir, "git-link")))
	f := must.Get(os.Open(filepath.Join(dir, "git-used")))(t)
	defer f.Close()
	must.OK(t, safefile.Share(f), git.Scratch{Dir: dir}.Sweep(t.Context()))
	for name, kept := range map[string]bool{"git-left": false, "git-used": true, "arg0": true, "trail-1": true, "git-link": true} {
		if _, err := os.Lstat(filepath.Join(dir, name)); errors.Is(err, fs.ErrNotExist) == kept {
			t.Errorf("%s: %v", name, err)
		}
	}
	must.Check(t, (git.Scratch{Dir: filepath.Join(dir, "missing")}).Sweep(t.Context()))
}

// TestScratchSwept looks at a repository while others sweep all the time. A folder that they take
// before it is locked is made again.
func TestScratchSwept(t *testing.T) {
	r := newRepo(t)
	r.write("a", "one\n")
	r.commit("x")
	scratch := scratch(t)
	done := make(chan struct{})
	var sweeping sync.WaitGroup
	defer sweeping.Wait()
	defer close(done)
	for range 2 {
		sweeping.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					_ = scratch.Sweep(t.Context())
				}
			}
		})
	}
	for range 50 {
		s := must.Get(git.Look(t.Context(), r.dir, &git.Options{Scratch: scratch}))(t)
		must.OK(t, s.Remove())
	}
}
