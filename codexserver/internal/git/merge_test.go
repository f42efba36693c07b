//go:build unix

package git_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// brings makes a repository with a worktree, in which each row of a table brings another work.
func brings(t *testing.T) *fixture {
	r := newRepo(t)
	for name, text := range map[string]string{"a": "one\ntwo\nthree\n", "b": "b\n", "sub/c": "c\n", "run.sh": "#!/bin/sh\n"} {
		r.write(name, text)
	}
	r.commit("first")
	return r
}

// inTree makes the worktree of a repository, and runs a script there that works and commits.
func (r *fixture) inTree(script string) *git.Worktree {
	r.t.Helper()
	w, _, err := r.worktree(r.t.Context(), r.dir)
	must.OK(r.t, err)
	(&fixture{r.t, w.Path}).shell(script + "\ngit add -A; git commit -q --allow-empty -m work")
	return w
}

// merged returns what a merge would change, in one line for each file.
func merged(t *testing.T, w *git.Worktree) (text string, m *git.Merge, err error) {
	t.Helper()
	m, err = w.Merge(t.Context())
	if err != nil {
		return "", nil, err
	}
	t.Cleanup(func() { must.Check(t, m.Close()) })
	for _, f := range m.Files {
		switch {
		case f.Data == nil:
			text += "- " + f.Path
		case f.Was:
			text += fmt.Sprintf("~ %s %q", f.Path, *f.Data)
		default:
			text += fmt.Sprintf("+ %s %q", f.Path, *f.Data)
		}
		if f.Program != nil {
			text += fmt.Sprintf(" %v", *f.Program)
		}
		text += "\n"
	}
	return text, m, nil
}

// state is all that a merge must leave as it is: each file of the repository and its working tree.
func (r *fixture) state() string {
	r.t.Helper()
	sum := sha256.New()
	must.OK(r.t, filepath.WalkDir(r.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		fmt.Fprintf(sum, "%s %x\n", path, sha256.Sum256(data))
		return err
	}))
	return fmt.Sprintf("%x", sum.Sum(nil))
}

// TestMerge merges the work of a worktree with checkouts in several states.
func TestMerge(t *testing.T) {
	const work = "printf 'one\\ntwo\\nTHREE\\n' >a; git rm -q b; echo n >sub/new; chmod +x sub/c"
	const whole = "~ a \"one\\ntwo\\nTHREE\\n\"\n- b\n~ sub/c \"c\\n\" true\n+ sub/new \"n\\n\"\n"
	rows := []struct {
		name, work string
		lay        func(r *fixture)
		want       string // or what the error has
	}{
		{"a clean checkout", work, func(*fixture) {}, whole},
		{"nothing", ":", func(*fixture) {}, ""},
		{"HEAD moved on", work, func(r *fixture) { r.write("a", "ONE\ntwo\nthree\n"); r.commit("x") },
			strings.Replace(whole, "one", "ONE", 1)},
		{"another branch", work, func(r *fixture) { r.git("checkout", "-q", "-b", "other"); r.write("z", "z"); r.commit("x") }, whole},
		{"a detached HEAD", work, func(r *fixture) { r.git("checkout", "-q", "--detach") }, whole},
		{"it is merged already", work, func(r *fixture) { r.git("merge", "-q", "--squash", r.branch()); r.commit("x") }, ""},
		{"a rename", "git mv a sub/a", func(*fixture) {}, "- a\n+ sub/a \"one\\ntwo\\nthree\\n\"\n"},
		{"a renamed file that HEAD has changed", "git mv a sub/a", func(r *fixture) { r.write("a", "ONE\ntwo\nthree\n"); r.commit("x") },
			"- a\n+ sub/a \"ONE\\ntwo\\nthree\\n\"\n"},
		{"no longer executable, and a new program", "echo x >p; chmod +x p", func(*fixture) {}, "+ p \"x\\n\" true\n"},
		{"bytes", "printf 'a\\0\\377' >bin", func(*fixture) {}, "+ bin \"a\\x00\\xff\"\n"},
		{"line ends", "echo x >crlf.txt", func(r *fixture) { r.write(".gitattributes", "*.txt eol=crlf\n"); r.commit("x") },
			"+ crlf.txt \"x\\r\\n\"\n"},
		{"line ends by the branch", "echo '*.txt eol=crlf' >.gitattributes; echo x >crlf.txt", func(*fixture) {},
			"+ .gitattributes \"*.txt eol=crlf\\n\"\n+ crlf.txt \"x\\r\\n\"\n"},
		{"a pointer", "printf '" + strings.ReplaceAll(lfsPointer, "\n", "\\n") + "' >big.bin", func(r *fixture) {
			r.write(".gitattributes", "*.bin filter=lfs\n")
			r.commit("x")
		}, fmt.Sprintf("+ big.bin %q\n", lfsPointer)},
		{"an identity and an encoding", "echo '$Id$' >i; printf 'x\\0' >u", func(r *fixture) {
			r.write(".gitattributes", "i ident\nu working-tree-encoding=UTF-16LE\n")
			r.commit("x")
		}, "+ i \"$Id: 055c8729cdcc372500a08db659c045e16c4409fb $\\n\"\n+ u \"x\\x00\\x00\\x00\"\n"},
		{"names that differ in letter case", "echo x >A; mkdir SUB; echo x >SUB/x", func(r *fixture) { r.configure(setting{"core.ignoreCase", "true"}) },
			"+ A \"x\\n\"\n+ SUB/x \"x\\n\"\n"},
		{"a conflict", "echo x >a; echo x >b", func(r *fixture) { r.write("a", "y"); r.write("b", "y"); r.commit("x") },
			`it conflicts with HEAD: "a", "b"`},
		{"a file that HEAD has removed", "echo x >b", func(r *fixture) { r.git("rm", "-q", "b"); r.commit("x") }, `it conflicts with HEAD: "b"`},
		{"a folder where HEAD has a file", "mkdir d; echo x >d/x", func(r *fixture) { r.write("d", "x"); r.commit("x") }, "it conflicts with HEAD: "},
		{"a folder that moved", "git mv sub one; mkdir two; git mv one/c two/c; echo z > two/z", func(r *fixture) { r.write("sub/q", "x"); r.commit("x") },
			"it conflicts with HEAD"},
		{"a merge", work, func(r *fixture) {
			r.git("checkout", "-q", "-b", "other", "HEAD")
			r.write("b", "other\n")
			r.commit("x")
			r.git("checkout", "-q", "main")
			r.write("b", "mine\n")
			r.commit("x")
			_, _ = r.try("merge", "other")
		}, "is in the middle of a merge"},
		{"a rebase", work, func(r *fixture) {
			r.git("checkout", "-q", "-b", "other")
			r.write("b", "other\n")
			r.commit("x")
			r.git("checkout", "-q", "main")
			r.write("b", "mine\n")
			r.commit("x")
			_, _ = r.try("rebase", "other")
		}, "is in the middle of a rebase"},
		{"no branch", work, func(r *fixture) { r.git("update-ref", "-d", "refs/heads/"+r.branch()) }, "is not a revision"},
		{"another history", work, func(r *fixture) { r.git("checkout", "-q", "--orphan", "o"); r.commit("x") }, "unrelated histories"},
		{"a link", "ln -s /etc/passwd l", func(*fixture) {}, `git must merge links and submodules: "l"`},
		{"a file of a filter", "echo x >f.enc", func(r *fixture) { r.write(".gitattributes", "*.enc filter=crypt\n"); r.commit("x") },
			`a filter of git's converts it, which does not run here: "f.enc"`},
		{"a large file", "truncate -s 17M big; echo x >small", func(*fixture) {}, `too large: "big"`},
		{"many large files", "for i in 1 2 3 4 5; do truncate -s 15M $i; done", func(*fixture) {}, "its files have more than 64 MiB"},
	}
	for i, r := range brings(t).copies(t, len(rows)) {
		tt := rows[i]
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := r.in(t)
			w := r.inTree(tt.work)
			tt.lay(r)
			before := r.state()
			text, _, err := merged(t, w)
			if err != nil && tt.want != "" {
				must.Fail(t, "Merge", tt.want, err)
			} else {
				must.OK(t, err)
				must.Equal(t, "the merge", tt.want, text)
			}
			must.Equal(t, "the repository", before, r.state())
		})
	}
}

// branch returns the branch of the worktree.
func (r *fixture) branch() string {
	return strings.TrimPrefix(r.git("for-each-ref", "--format=%(refname)", "refs/heads/codex"), "refs/heads/")
}

// TestMergeDirty has files that differ from HEAD, of which only those count that the merge changes.
func TestMergeDirty(t *testing.T) {
	const work = "echo x >a; git rm -q b; echo n >new; echo C >sub/c"
	rows := []struct {
		name string
		lay  func(r *fixture)
		want string
	}{
		{"nothing", func(*fixture) {}, ""},
		{"other files", func(r *fixture) {
			r.write("run.sh", "other")
			r.write("untracked", "x")
			r.write("z", "")
			r.git("add", "z")
		}, ""},
		{"changed", func(r *fixture) { r.write("a", "mine\n") }, "a"},
		{"changed, of the same size at the same time", func(r *fixture) { r.shell("cp -p a ../a; printf 'ONE\\ntwo\\nthree\\n' >a; touch -r ../a a") }, "a"},
		{"assumed to be unchanged", func(r *fixture) { r.git("update-index", "--assume-unchanged", "a"); r.write("a", "mine\n") }, "a"},
		{"not checked out", func(r *fixture) { r.git("update-index", "--skip-worktree", "a"); r.write("a", "mine\n") }, "a"},
		{"removed", func(r *fixture) { must.OK(r.t, os.Remove(filepath.Join(r.dir, "a"))) }, "a"},
		{"staged, and back", func(r *fixture) {
			r.write("b", "mine\n")
			r.git("add", "b")
			r.write("b", "b\n")
		}, "b"},
		{"removed from the index", func(r *fixture) { r.git("rm", "-q", "--cached", "sub/c") }, "sub/c"},
		{"new in the index", func(r *fixture) { r.write("new", "n"); r.git("add", "-N", "new") }, "new"},
		{"a mode", func(r *fixture) { r.shell("chmod +x a") }, "a"},
		{"read again", func(r *fixture) { r.shell("touch a b sub/c") }, ""},
		{"no index", func(r *fixture) { must.OK(r.t, os.Remove(filepath.Join(r.dir, ".git/index"))) }, "a b sub/c"},
		{"an index in two parts", func(r *fixture) { r.git("update-index", "--split-index"); r.write("a", "mine\n"); r.git("add", "a") }, "a"},
		{"line ends", func(r *fixture) {
			r.configure(setting{"core.autocrlf", "true"})
			r.write("a", "one\r\ntwo\r\nthree\r\n")
		}, ""},
	}
	for i, r := range brings(t).copies(t, len(rows)) {
		tt := rows[i]
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := r.in(t)
			w := r.inTree(work)
			tt.lay(r)
			_, m, err := merged(t, w)
			must.OK(t, err)
			dirty, err := m.Dirty(t.Context(), m.Files)
			must.OK(t, err)
			must.Equal(t, "the files", tt.want, strings.Join(dirty, " "))
		})
	}
}

// plumbed commits a tree on the branch of the worktree, as the lines that git mktree reads, in which NAME is the object of
// that text, and TREE{lines} of that tree.
func (r *fixture) plumbed(w *git.Worktree, lines string) {
	r.t.Helper()
	input := func(in string, args ...string) string {
		cmd := exec.CommandContext(r.t.Context(), "git", args...)
		cmd.Dir, cmd.Stdin = r.dir, strings.NewReader(in)
		out, err := cmd.Output()
		must.OK(r.t, err)
		return strings.TrimSpace(string(out))
	}
	var trees []string
	for _, part := range strings.Split(lines, "==\n") { // each may have those before it, as T0, T1
		for i, id := range trees {
			part = strings.ReplaceAll(part, fmt.Sprintf("T%d", i), id)
		}
		part = strings.ReplaceAll(part, "BLOB", input("planted\n", "hash-object", "-w", "--stdin"))
		part = strings.ReplaceAll(part, "LINK", input("/etc", "hash-object", "-w", "--stdin"))
		part = strings.ReplaceAll(part, "COMMIT", r.git("rev-parse", "HEAD"))
		trees = append(trees, input(strings.ReplaceAll(part, "\n", "\x00"), "mktree", "-z"))
	}
	commit := r.git("commit-tree", "-p", "HEAD", "-m", "planted", trees[len(trees)-1])
	r.git("update-ref", "refs/heads/"+w.Branch, commit)
}

// TestHostileBranch has branches with names that no working tree may have, made without git's checks. Of two entries with one
// name git takes one.
func TestHostileBranch(t *testing.T) {
	const wrong, gone = "no working tree may have such a file: ", "- a\n- b\n- run.sh\n- sub/c\n"
	rows := []struct{ name, tree, want string }{
		{"below .git", "100644 blob BLOB\tx\n==\n040000 tree T0\t.git\n", wrong + `".git/x"`},
		{"below .GIT/hooks", "100755 blob BLOB\tpre-commit\n==\n040000 tree T0\thooks\n==\n040000 tree T1\t.GIT\n", wrong + `".GIT/hooks/pre-commit"`},
		{"a .git file", "100644 blob BLOB\t.git\n", wrong + `".git"`},
		{"below a .git deeper", "100644 blob BLOB\tconfig\n==\n040000 tree T0\t.git\n==\n040000 tree T1\td\n", wrong + `"d/.git/config"`},
		{"..", "100644 blob BLOB\tx\n==\n040000 tree T0\t..\n", wrong + `"../x"`},
		{".", "100644 blob BLOB\tx\n==\n040000 tree T0\t.\n", wrong + `"./x"`},
		{"a name that is empty", "100644 blob BLOB\tx\n==\n040000 tree T0\t\n", "empty filename in tree entry"},
		{"a link, and a file below it", "100644 blob BLOB\tx\n==\n120000 blob LINK\ttl\n040000 tree T0\ttl\n", "+ tl/x \"planted\\n\"\n"},
		{"a file twice", "100644 blob BLOB\ttd\n100755 blob BLOB\ttd\n", "+ td \"planted\\n\" true\n"},
		{"a file, and one below it", "100644 blob BLOB\tx\n==\n100644 blob BLOB\ttq\n040000 tree T0\ttq\n", "+ tq/x \"planted\\n\"\n"},
		{"git~1, which is .git on NTFS", "100644 blob BLOB\tx\n==\n040000 tree T0\tgit~1\n", wrong + `"git~1/x"`},
		{"a .git that HFS reads so", "100644 blob BLOB\tx\n==\n040000 tree T0\t.g\u200cit\n", wrong + `".g\u200cit/x"`},
		{"a .git that NTFS reads so", "100644 blob BLOB\tx\n==\n040000 tree T0\t.git \n", wrong + `".git /x"`},
		{"a backslash", "100644 blob BLOB\tt\\..\\b\n", "+ t\\..\\b \"planted\\n\"\n"}, // which a plan refuses
		{"a submodule", "160000 commit COMMIT\tm\n100644 blob BLOB\t.gitmodules\n", `git must merge links and submodules: "m"`},
		{"a link out", "120000 blob LINK\tl\n", `git must merge links and submodules: "l"`},
		{"a mode that git does not know", "100644 blob BLOB\tx\n100777 blob BLOB\ty\n", "+ x \"planted\\n\"\n+ y \"planted\\n\" true\n"},
	}
	all := brings(t)
	w := all.inTree(":")
	for _, tt := range rows {
		t.Run(tt.name, func(t *testing.T) {
			r := all.in(t)
			r.plumbed(w, tt.tree)
			before := r.state()
			text, _, err := merged(t, w)
			if err == nil {
				must.Equal(t, "the merge", gone+tt.want, text)
			} else if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
			must.Equal(t, "the repository", before, r.state())
		})
	}
}

// TestMergeRunsNothing has hooks, filters, drivers and programs of diffs in the repository, which git merge would run.
func TestMergeRunsNothing(t *testing.T) {
	r := brings(t)
	r.write(".gitattributes", "a merge=evil diff=evil\nb diff=evil\n")
	r.commit("attributes")
	w := r.inTree("printf 'one\\ntwo\\nTHREE\\n' >a; echo B >b")
	r.write("a", "ONE\ntwo\nthree\n")
	r.commit("mine")
	trap := filepath.Join(r.dir, "ran")
	script := "touch '" + trap + "'; cat"
	for _, name := range []string{"post-index-change", "post-checkout", "reference-transaction", "pre-merge-commit", "post-merge", "fsmonitor-watchman"} {
		r.program(".git/hooks/"+name, script)
	}
	r.configure(all(script, traps...)...)
	_, _ = r.try("merge", "--no-commit", w.Branch)
	if err := os.Remove(trap); err != nil {
		t.Errorf("the trap does not work: %v", err)
	}
	r.git("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "reset", "-q", "--hard", "HEAD")
	_ = os.Remove(trap)
	text, m, err := merged(t, w)
	must.OK(t, err)
	must.Equal(t, "the merge", "~ a \"ONE\\ntwo\\nTHREE\\n\"\n~ b \"B\\n\"\n", text)
	dirty := must.Get(m.Dirty(t.Context(), m.Files))(t)
	must.Equal(t, "dirty files", 0, len(dirty))
	if exists(trap) {
		t.Error("a program of the repository ran")
	}
}

// TestMergeOld has a git without merges in memory.
func TestMergeOld(t *testing.T) {
	r := brings(t)
	w := r.inTree("echo x >a")
	real := must.Get(exec.LookPath("git"))(t)
	bin := t.TempDir()
	(&fixture{t, bin}).program("git", `case "$*" in *merge-tree*) echo "usage: git merge-tree <base-tree> <branch1> <branch2>" >&2; exit 129;; esac; exec '`+real+`' "$@"`)
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	_, _, err := merged(t, w)
	must.Fail(t, "Merge", "git is older than 2.38", err)
}

// TestMergeEnds checks that a merge ends with its context.
func TestMergeEnds(t *testing.T) {
	r := brings(t)
	w := r.inTree("echo x >a")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.Merge(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
