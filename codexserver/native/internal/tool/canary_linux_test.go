package tool_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/internal/decide"
	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/tool"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/google/go-cmp/cmp"
)

var whole = flag.Bool("whole", false, "run every command of the lists, and every attack in each way")

// The folders of a canary.
const (
	work    = "work"    // a repository whose configuration names a program
	plain   = "plain"   // a repository without configuration of its own
	home    = "home"    // with a profile that starts a program
	empty   = "empty"   // a home without a profile
	bin     = "bin"     // the listed programs, and the witness in place of every other
	witness = "witness" // writes its name into the tree when it is started
)

// canary is a tree that must stay as it is.
type canary struct {
	base   string
	before map[string]string
}

func newCanary(t testing.TB) *canary {
	t.Helper()
	c := &canary{base: t.TempDir()}
	for _, dir := range []string{work, plain, home, empty, bin, "outside"} {
		if err := os.Mkdir(c.path(dir), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	c.write(t, witness, "#!/bin/sh\necho \"$0 $*\" >>"+c.path("outside/started")+"\n")
	c.write(t, home+"/.bash_profile", c.path(witness)+"\n")
	for _, repo := range []string{work, plain} {
		c.write(t, repo+"/a.txt", "one\ntwo\n")
		c.write(t, repo+"/b.go", "package b\n")
		c.write(t, repo+"/x", "#!/bin/sh\nexec "+c.path(witness)+"\n")
		c.write(t, repo+"/.gitattributes", "*.txt diff=text\n")
		c.git(t, repo, "init", "-q", "-b", "main")
		c.git(t, repo, "add", ".")
		c.git(t, repo, "commit", "-qm", "first")
		c.sign(t, repo)
		c.git(t, repo, "branch", "feat/x")
		c.git(t, repo, "status") // so that nothing is left to refresh
	}
	for _, key := range []string{"core.fsmonitor", "diff.external", "diff.text.textconv", "gpg.program", "core.pager", "core.editor"} {
		c.git(t, work, "config", key, c.path(witness))
	}
	c.before = c.tree(t)
	return c
}

func (c *canary) path(name string) string { return filepath.Join(c.base, name) }

func (c *canary) write(t testing.TB, name, text string) {
	t.Helper()
	if err := os.WriteFile(c.path(name), []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
}

func (c *canary) git(t testing.TB, repo string, args ...string) string {
	t.Helper()
	return servertest.Git(t, c.path(repo), args...)
}

// sign adds a signature to the last commit, so that git would ask gpg about it.
func (c *canary) sign(t testing.TB, repo string) {
	t.Helper()
	header, text, _ := strings.Cut(c.git(t, repo, "cat-file", "commit", "HEAD"), "\n\n")
	c.write(t, "outside/commit", header+"\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n iQ\n -----END PGP SIGNATURE-----\n\n"+text+"\n")
	c.git(t, repo, "update-ref", "HEAD", c.git(t, repo, "hash-object", "-t", "commit", "-w", c.path("outside/commit")))
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
		target := c.path(witness)
		if slices.Contains(real, name) {
			path, err := exec.LookPath(name)
			if err != nil {
				t.Fatal(err)
			}
			target = path
		}
		if err := os.Symlink(target, c.path(bin+"/"+name)); err != nil {
			t.Fatal(err)
		}
	}
	c.before = c.tree(t)
}

// tree describes all files: kind, mode, time and content. The time of a folder also shows
// that a file was made in it and removed again.
func (c *canary) tree(t testing.TB) map[string]string {
	t.Helper()
	seen := map[string]string{}
	err := filepath.WalkDir(c.base, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil || info.Mode()&os.ModeSymlink != 0 {
			return err
		}
		var content []byte
		if info.Mode().IsRegular() {
			if content, err = os.ReadFile(path); err != nil {
				return err
			}
		}
		seen[path] = fmt.Sprintf("%s %s %s", info.Mode(), info.ModTime().Format(time.RFC3339Nano), content)
		if path == c.path(bin) {
			return filepath.SkipDir // a thousand links
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return seen
}

func (c *canary) unchanged(t testing.TB, how string, argv []string) {
	t.Helper()
	after := c.tree(t)
	if before := c.before; !maps.Equal(before, after) {
		c.before = after
		t.Fatalf("%s, %q changes the tree:\n%s", how, argv, cmp.Diff(before, after))
	}
}

// denyHost is a host that denies what it is asked, and remembers it.
type denyHost struct {
	engine.DenyAll
	asked bool
}

func (*denyHost) Emit(protocol.EventMsg) {}

func (*denyHost) EmitAs(string, protocol.EventMsg) {}

func (h *denyHost) ApproveExec(context.Context, protocol.ExecApprovalRequest) elicit.Outcome {
	h.asked = true
	return elicit.Outcome{Decision: elicit.Denied}
}

func (h *denyHost) ApprovePatch(context.Context, protocol.PatchApprovalRequest) elicit.Outcome {
	h.asked = true
	return elicit.Outcome{Decision: elicit.Denied}
}

// ask has a model run a command in a hostile repository with a hostile profile. It reports
// whether there was a question, which is denied.
func (c *canary) ask(t testing.TB, ctx tool.Context, argv []string) (asked bool) {
	t.Helper()
	h := &denyHost{}
	ctx.Cwd, ctx.Host = c.path(work), h
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + c.path(home), "GIT_CONFIG_NOSYSTEM=1"}
	toolbox := newBox(tool.Options{Environ: env, Sandbox: tool.Confine(box.New(box.Options{}))})
	timeout := int64(2000)
	action := &protocol.LocalShellAction{Command: argv, TimeoutMS: &timeout}
	if _, err := toolbox.Turn(ctx).Call(t.Context(), tool.Call{Shell: action}); err != nil {
		t.Fatal(err)
	}
	return h.asked
}

// run runs a command where it could write to the whole tree and start every program, so
// that only its own words prevent it.
func (c *canary) run(t testing.TB, argv []string) {
	t.Helper()
	p := protocol.SandboxPolicy{
		Mode: protocol.SandboxWorkspaceWrite, WritableRoots: []string{c.base}, ExcludeSlashTmp: true, ExcludeTmpdirEnvVar: true,
	}
	env := []string{"PATH=" + c.path(bin), "HOME=" + c.path(empty), "TMPDIR=" + c.path("outside"), "GIT_CONFIG_NOSYSTEM=1", "GIT_OPTIONAL_LOCKS=0"}
	confinement, err := box.New(box.Options{}).Confine(p, c.path(plain), env)
	if err != nil {
		t.Fatal(err)
	}
	if argv[0] == "bash" { // the profile of the system sets another PATH
		argv = []string{"bash", "-c", argv[2]}
	}
	spec := run.Spec{Argv: argv, Dir: c.path(plain), Env: env, Confinement: confinement, Timeout: 2 * time.Second}
	if _, err := processes.Run(t.Context(), spec, nil); t.Context().Err() != nil {
		t.Fatal(err)
	}
}

// TestListedOptions runs each option of the commands that are known to be safe alone: every eighth of them, with the
// race detector others, or all if whole.
func TestListedOptions(t *testing.T) {
	c := newCanary(t)
	c.fillBin(t)
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
			if !decide.KnownSafe(words) {
				t.Errorf("%q is not known to be safe", words)
			}
			if !*whole && i%8 != share {
				continue
			}
			if command == "git branch" { // that would make a branch
				words = append(words, "made")
			}
			if decide.KnownSafe(words) {
				c.run(t, words)
				c.unchanged(t, "by itself", words)
			}
		}
	}
}

// FuzzKnownSafe runs commands that are known to be safe. As a model's command in a hostile
// repository with a hostile profile, such a command is not asked about and changes nothing.
// In a repository without configuration, where it could write everything, it also changes
// nothing, and starts only listed programs.
//
// The words of a command are joined by the unit separator. Every fourth judged command is a seed, with
// the race detector others, or each if whole.
func FuzzKnownSafe(f *testing.F) {
	judged, err := os.ReadFile("../../../internal/decide/testdata/judged.ndjson")
	if err != nil {
		f.Fatal(err)
	}
	n, share := 0, 1
	if testing.Short() {
		share = 3
	}
	for line := range bytes.Lines(judged) {
		if n++; !*whole && n%4 != share {
			continue
		}
		var r struct{ Command []string }
		if err := json.Unmarshal(line, &r); err != nil {
			f.Fatal(err)
		}
		f.Add(strings.Join(r.Command, "\x1f"))
	}
	c := newCanary(f)
	c.fillBin(f)
	untrusted := tool.Context{ApprovalPolicy: "untrusted", SandboxPolicy: protocol.SandboxPolicy{Mode: protocol.SandboxDangerFullAccess}}
	f.Fuzz(func(t *testing.T, words string) {
		argv := strings.Split(words, "\x1f")
		if !decide.KnownSafe(argv) {
			return
		}
		if c.ask(t, untrusted, argv) {
			t.Errorf("asked about %q", argv)
		}
		c.unchanged(t, "in the sandbox", argv)
		c.run(t, argv)
		c.unchanged(t, "by itself", argv)
	})
}
