package tool_test

import (
	"flag"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/internal/decide"
	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/nightly"
	"github.com/google/go-cmp/cmp"
)

var whole = flag.Bool("whole", nightly.Tests(), "run every command of the lists, and every attack in each way")

// canary is a tree that must stay as it is: a repository, an empty home, a folder outside, and a folder bin
// with the listed programs, and a witness in place of every other, which writes its name into the tree when it
// is started.
type canary struct {
	base   string
	before map[string]string
}

func newCanary(t testing.TB) *canary {
	t.Helper()
	c := &canary{base: t.TempDir()}
	boxtest.Lay(t, c.base, "home/", "outside/", "bin/", "witness=#!/bin/sh\necho \"$0 $*\" >>"+c.path("outside/started")+"\n",
		"repo/a.txt=one\ntwo\n", "repo/b.go=package b\n", "repo/x=#!/bin/sh\nexec "+c.path("witness")+"\n", "repo/.gitattributes=*.txt diff=text\n")
	c.git(t, "init", "-q", "-b", "main")
	c.git(t, "add", ".")
	c.git(t, "commit", "-qm", "first")
	c.sign(t)
	c.git(t, "branch", "feat/x")
	c.git(t, "status") // so that nothing is left to refresh
	c.fillBin(t)
	return c
}

func (c *canary) path(name string) string { return filepath.Join(c.base, name) }

func (c *canary) git(t testing.TB, args ...string) string {
	t.Helper()
	return servertest.Git(t, c.path("repo"), args...)
}

// sign adds a signature to the last commit, so that git would ask gpg about it.
func (c *canary) sign(t testing.TB) {
	t.Helper()
	header, text, _ := strings.Cut(c.git(t, "cat-file", "commit", "HEAD"), "\n\n")
	boxtest.Lay(t, c.base, "outside/commit="+header+"\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n iQ\n -----END PGP SIGNATURE-----\n\n"+text+"\n")
	c.git(t, "update-ref", "HEAD", c.git(t, "hash-object", "-t", "commit", "-w", c.path("outside/commit")))
}

// fillBin makes a folder for PATH in which every program but the listed ones is the
// witness.
func (c *canary) fillBin(t testing.TB) {
	t.Helper()
	real := []string{"bash", "cat", "echo", "false", "find", "git", "grep", "head", "ls", "nl", "pwd", "rg", "sed", "tail", "true", "wc", "which"}
	names := []string{"x", "gpg", "gpgsm", "gpg2", "ssh", "ssh-keygen", "less", "more", "pager", "vi", "editor", "man", "gzip", "xz", "bzip2", "zstd", "touch", "rm"}
	for _, dir := range []string{"/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin"} {
		entries, _ := os.ReadDir(dir) // not every system has them all
		for _, e := range entries {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		target := c.path("witness")
		if slices.Contains(real, name) {
			path, err := exec.LookPath(name)
			if err != nil {
				t.Fatal(err)
			}
			target = path
		}
		if err := os.Symlink(target, c.path("bin/"+name)); err != nil {
			t.Fatal(err)
		}
	}
	c.before = c.tree(t)
}

// tree describes all files with their time. The time of a folder also shows that a file was made in it and
// removed again.
func (c *canary) tree(t testing.TB) map[string]string {
	t.Helper()
	seen := tree(t, c.base, c.path("bin")) // a thousand links
	for path := range seen {
		info, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		seen[path] += info.ModTime().Format(time.RFC3339Nano)
	}
	return seen
}

// run runs a command where it could write to the whole tree and start every program, so
// that only its own words prevent it. The tree must stay as it is.
func (c *canary) run(t testing.TB, argv []string) {
	t.Helper()
	p := protocol.SandboxPolicy{
		Mode: protocol.SandboxWorkspaceWrite, WritableRoots: []string{c.base}, ExcludeSlashTmp: true, ExcludeTmpdirEnvVar: true,
	}
	env := []string{"PATH=" + c.path("bin"), "HOME=" + c.path("home"), "TMPDIR=" + c.path("outside"), "GIT_CONFIG_NOSYSTEM=1", "GIT_OPTIONAL_LOCKS=0"}
	confinement, err := box.New(box.Options{}).Confine(p, c.path("repo"), env)
	if err != nil {
		t.Fatal(err)
	}
	if argv[0] == "bash" { // the profile of the system sets another PATH
		argv = []string{"bash", "-c", argv[2]}
	}
	spec := run.Spec{Argv: argv, Dir: c.path("repo"), Env: env, Confinement: confinement, Timeout: 2 * time.Second}
	if _, err := processes.Run(t.Context(), spec, nil); t.Context().Err() != nil {
		t.Fatal(err)
	}
	if after := c.tree(t); !maps.Equal(c.before, after) {
		before := c.before
		c.before = after
		t.Fatalf("%q changes the tree:\n%s", argv, cmp.Diff(before, after))
	}
}

// TestListedOptions runs each option of the commands that are known to be safe alone: every eighth of them, with the
// race detector others, or all if whole.
func TestListedOptions(t *testing.T) {
	c := newCanary(t)
	share := 0
	if testing.Short() {
		share = 4
	}
	const diff = `-p -u -s -R -z -a -w -b -W -c -U1 -M -M90% -C -Sx -Gx -- --abbrev --binary --cached --check --color --color-moved
		--diff-filter=A --exit-code --find-renames --full-index --function-context --histogram --ignore-all-space --ignore-blank-lines
		--ignore-space-at-eol --ignore-space-change --merge-base --minimal --name-only --name-status --no-color --no-ext-diff --no-patch
		--no-prefix --no-renames --no-textconv --numstat --patch --patch-with-stat --patience --pickaxe-regex --quiet --raw --shortstat
		--staged --stat --stat=1 --summary --text --unified=1 --word-diff --word-diff=color `
	for command, options := range map[string]string{
		"find": `-H -L -P -7 -10k -neweraB -a -amin -and -atime -cmin -ctime -daystart -depth -empty -executable -false -files0-from -follow
			-group -iname -inum -ipath -iregex -links -ls -maxdepth -mindepth -mmin -mount -mtime -name -newer -not -o -or -path -perm -print
			-print0 -printf -prune -quit -readable -regex -regextype -samefile -size -true -type -user -wholename -writable -xdev`,
		"rg": `-. -il -A1 -ez -- --after-context=1 --before-context=1 --case-sensitive --color=always --column --context=1 --count
			--count-matches --encoding=utf8 --files --files-with-matches --files-without-match --fixed-strings --follow --glob=x --heading --help
			--hidden --iglob=x --ignore-case --invert-match --json --line-number --line-regexp --max-columns=1 --max-count=1 --max-depth=1
			--max-filesize=1 --multiline --no-config --no-filename --no-heading --no-ignore --no-ignore-vcs --no-line-number --no-messages --null
			--only-matching --passthru --pcre2 --quiet --regexp=x --replace=x --smart-case --sort=path --sortr=path --stats --text --trim
			--type=go --type-list --type-not=go --unrestricted --version --vimgrep --with-filename --word-regexp`,
		"git status": `-s -b -v -vv -z -u -uno -unormal -uall -- --ahead-behind --branch --ignored --long --no-renames --porcelain --porcelain=v2
			--short --show-stash --untracked-files --untracked-files=all --verbose`,
		"git diff": diff,
		"git log": diff + `-5 -n -n1 -t -m -r -i -E -F -P -g -q -L1,1:a.txt --abbrev-commit --after=1 --all --author=x --before=1 --branches
			--cherry-pick --committer=x --date=iso --date-order --decorate --extended-regexp --first-parent --fixed-strings --follow --full-history
			--graph --grep=x --left-right --max-count=1 --merges --no-decorate --no-merges --oneline --parents --perl-regexp
			--regexp-ignore-case --relative-date --remotes --reverse --simplify-by-decoration --since=1 --skip=1 --source --tags --topo-order
			--until=1 --format=fuller --pretty=raw --format=%h%x09%an%C(auto) --pretty=tformat:%s`,
		"git branch": `-a -r -v -vv -i --abbrev --all --color --ignore-case --list --no-abbrev --no-color --no-column --remotes --show-current
			--verbose --contains --no-contains --merged --no-merged --points-at=x --sort=-committerdate --sort=v:refname
			--format=%(refname:short)%(HEAD)%(subject)`,
	} {
		for i, option := range strings.Fields(options) {
			words := append(strings.Fields(command), option)
			if !decide.KnownSafe(words, false) {
				t.Errorf("%q is not known to be safe", words)
			}
			if !*whole && i%8 != share {
				continue
			}
			if command == "git branch" { // that would make a branch
				words = append(words, "made")
			}
			if decide.KnownSafe(words, false) {
				c.run(t, words)
			}
		}
	}
}
