package tool_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/internal/decide"
	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/tool"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/nightly"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/google/go-cmp/cmp"
)

// secret is in a file that only a descriptor of the server leads to. variable is in the
// environment of the server, as /proc has it.
const (
	secret   = "sk-of-the-server"
	variable = "PATH=/"
)

// attacked makes a working folder with everything that a command can put into one, and a folder beside it.
func attacked(t *testing.T) (work string) {
	t.Helper()
	top := boxtest.Folder(t)
	work = filepath.Join(top, "work")
	boxtest.Lay(t, top,
		"outside/rc=one\n", "work/sub/", "work/file=one\n", "work/.git/config=one\n", "work/.git/hooks/pre-commit=one\n", "work/soft -> ../outside/rc", "work/dir -> ../outside",
		"work/environ -> /proc/self/environ", "work/self -> /proc/self", "work/zero -> /dev/zero", "work/huge")
	in := func(name string) string { return filepath.Join(top, name) }
	unnamed := must.Get(os.Create(in("gone")))(t)
	t.Cleanup(func() { unnamed.Close() })
	socket, err := net.Listen("unix", in("work/socket"))
	must.OK(t, err)
	t.Cleanup(func() { socket.Close() })
	_, err = unnamed.WriteString(secret)
	for _, err := range []error{
		err,
		os.Remove(in("gone")),
		os.Link(in("outside/rc"), in("work/hard")),
		os.Symlink(fmt.Sprintf("/proc/self/fd/%d", unnamed.Fd()), in("work/handle")),
		syscall.Mkfifo(in("work/fifo"), 0o666),
		os.Truncate(in("work/huge"), 1<<40),
	} {
		must.OK(t, err)
	}
	return work
}

// TestFileToolAttacks has what a model could try with the file tools in the real sandbox. What a
// command could not read or write, these cannot; nothing hangs.
func TestFileToolAttacks(t *testing.T) {
	boxtest.Need(t)
	for _, mode := range []protocol.SandboxMode{protocol.SandboxReadOnly, protocol.SandboxWorkspaceWrite, protocol.SandboxDangerFullAccess} {
		t.Run(string(mode), func(t *testing.T) {
			work := attacked(t)
			h := &host{}
			turn := turnOf(tool.Options{Environ: environ, FileTools: true, Sandbox: tool.Confine(box.New(box.Options{}))}, h, work, protocol.ApprovalNever, mode)
			call := func(name string, arguments map[string]any) string {
				t.Helper()
				text := must.Get(json.Marshal(arguments))(t)
				res := called(t, turn, tool.Call{ID: "c", Name: name, Arguments: string(text)})
				if strings.Contains(res.Output, secret) || strings.Contains(res.Output, variable) {
					t.Errorf("%s %s returns the secret: %q", name, text, res.Output)
				}
				return res.Output
			}
			before := tree(t, filepath.Dir(work))
			// The process hides from others of its user, so that only root gets further than the system's own refusal.
			refused := func(got, want string) bool {
				return strings.Contains(got, want) || want == "in /proc" && os.Getuid() != 0 && strings.Contains(got, "permission denied")
			}
			for path, want := range map[string]string{
				"/proc/self/environ": "in /proc", "environ": "in /proc", "self/environ": "in /proc", "self/root/proc/self/environ": "", "/proc/thread-self/environ": "in /proc",
				fmt.Sprintf("/proc/%d/environ", os.Getpid()): "in /proc", "/proc/self/mem": "in /proc", "/proc/self/maps": "in /proc",
				"handle": "does not exist", "fifo": "a named pipe", "zero": "a device", "socket": "a socket", "/dev/tty": "a device", "huge": "too large", "sub": "a folder", "sub\x00": "not a file name",
			} {
				if got := call("read", map[string]any{"path": path}); !refused(got, want) {
					t.Errorf("read %q: %q lacks %q", path, got, want)
				}
				if got := call("edit", map[string]any{"path": path, "old": "\x00PATH", "new": "x"}); !refused(got, want) {
					t.Errorf("edit %q: %q lacks %q", path, got, want)
				}
				if got := call("search", map[string]any{"path": path, "pattern": "sk-of|P[A]TH="}); strings.Contains(got, "sk-of-") {
					t.Errorf("search %q: %q", path, got)
				}
				if path != "handle" { // its target could be made
					call("write", map[string]any{"path": path, "content": "x\n"})
				}
				call("list", map[string]any{"path": path})
			}
			call("search", map[string]any{"pattern": "sk-of|P[A]TH=."})
			for _, path := range []string{"self/fd", "/proc/self/task", "self"} {
				if got := call("list", map[string]any{"path": path}); !strings.Contains(got, "in /proc") {
					t.Errorf("list %q: %q", path, got)
				}
			}
			if mode != protocol.SandboxDangerFullAccess {
				for _, path := range []string{
					"../outside/rc", "soft", "dir/rc", "dir/new", "hard", ".git/config", ".git/hooks/pre-commit", ".git/hooks/new", "sub/../.git/new",
					".vscode/tasks.json", ".envrc", ".codex/config.toml", "/etc/codex-test", "/proc/self/comm", "/dev/shm/../codex-test",
				} {
					call("read", map[string]any{"path": path})
					for name, arguments := range map[string]map[string]any{
						"write": {"path": path, "content": "two\n"}, "edit": {"path": path, "old": "one", "new": "two"},
					} {
						if got := call(name, arguments); strings.HasPrefix(got, "Success") {
							t.Errorf("%s %s: %q", name, path, got)
						}
					}
				}
			}
			must.Equal(t, "files changed", before, tree(t, filepath.Dir(work)))
			want := mode != protocol.SandboxReadOnly
			if got := call("edit", map[string]any{"path": "file", "old": "one", "new": "two"}); strings.HasPrefix(got, "Success") != want {
				t.Errorf("an edit that the mode allows: %t; %q", want, got)
			}
			if steps := h.steps(); strings.Contains(steps, "ask") {
				t.Errorf("steps %s", steps)
			}
		})
	}
}

// TestReadInARace reads and searches files that change into links, pipes and folders meanwhile.
func TestReadInARace(t *testing.T) {
	boxtest.Need(t)
	work := attacked(t)
	h := &host{}
	turn := turnOf(tool.Options{Environ: environ, FileTools: true, Sandbox: tool.Confine(box.New(box.Options{}))}, h, work, protocol.ApprovalNever, protocol.SandboxReadOnly)
	stop := make(chan struct{})
	var swaps sync.WaitGroup
	swaps.Go(func() {
		target := filepath.Join(work, "sub", "target")
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			next := filepath.Join(work, "next")
			switch i % 4 {
			case 0:
				_ = os.WriteFile(next, []byte("one\n"), 0o666)
			case 1:
				_ = os.Symlink("/proc/self/environ", next)
			case 2:
				_ = syscall.Mkfifo(next, 0o666)
			case 3:
				_ = os.Symlink(filepath.Join(work, "handle"), next)
			}
			_ = os.Rename(next, target)
		}
	})
	defer swaps.Wait()
	defer close(stop)
	for range nightly.Number(40, 200) {
		for name, arguments := range map[string]string{
			"read": `{"path":"sub/target"}`, "search": `{"path":"sub","pattern":"sk-|P[A]TH=|one"}`, "edit": `{"path":"sub/target","old":"sk-","new":"x"}`,
		} {
			res, err := turn.Call(t.Context(), tool.Call{ID: "c", Name: name, Arguments: arguments})
			if err != nil || strings.Contains(res.Output, secret) || strings.Contains(res.Output, variable) {
				t.Fatalf("%s: %q, %v", name, res.Output, err)
			}
		}
	}
}

var whole = flag.Bool("whole", nightly.Tests(), "run every command of the lists, and every attack in each way")

// canary is a tree that must stay as it is: a repository, an empty home, a folder outside, and a folder bin with the
// listed programs, and a witness in place of every other, which writes its name into the tree when it is started.
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

// fillBin makes a folder for PATH in which every program but the listed ones is the witness.
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
			path := must.Get(exec.LookPath(name))(t)
			target = path
		}
		must.OK(t, os.Symlink(target, c.path("bin/"+name)))
	}
	c.before = c.tree(t)
}

// tree describes all files with their time. The time of a folder also shows that a file was made in it and
// removed again.
func (c *canary) tree(t testing.TB) map[string]string {
	t.Helper()
	seen := tree(t, c.base, c.path("bin")) // a thousand links
	for path := range seen {
		info := must.Get(os.Lstat(path))(t)
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
	confinement := must.Get(box.New(box.Options{}).Confine(p, c.path("repo"), env))(t)
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
	for line := range strings.Lines(string(must.Get(os.ReadFile("testdata/options.txt"))(t))) {
		command, options, _ := strings.Cut(line, ": ")
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

// TestSessionStaysInside approves a harmless program for the session, which a patch or a command then replaces. The
// same words start the other program without a question, and it writes nothing outside the sandbox.
func TestSessionStaysInside(t *testing.T) {
	boxtest.Need(t)
	for name, argv := range map[string][]string{
		"a program": {"./x"}, "a shell": {"sh", "x"}, "a script": {"bash", "-lc", "true && ./?"}, "in PATH": {"tool"}, "behind env": {"env", "PATH=bin:/usr/bin:/bin", "tool"},
	} {
		t.Run(name, func(t *testing.T) {
			top := boxtest.Folder(t)
			f := &field{top: top, work: filepath.Join(top, "work"), outside: filepath.Join(top, "outside")}
			f.put(t, "outside/file", "one\n")
			write := func(text string) {
				for _, name := range []string{"work/x", "work/bin/tool"} {
					f.put(t, name, "#!/bin/sh\n"+text+"\n")
				}
			}
			write("exit 0")
			h := &host{answer: elicit.ApprovedForSession}
			o := tool.Options{Environ: []string{"PATH=" + f.work + "/bin:/usr/bin:/bin", "HOME=" + top}, Sandbox: tool.Confine(box.New(box.Options{}))}
			turn := turnOf(o, h, f.work, "untrusted", "workspace-write")
			called(t, turn, shellCall("", argv...))
			h.answer = elicit.Denied
			write(f.evil())
			called(t, turn, shellCall("", argv...))
			if _, err := os.Stat(filepath.Join(f.work, "proof")); err != nil {
				t.Errorf("it did not run again in the sandbox: %s", h.steps())
			}
			if _, err := os.Stat(filepath.Join(f.outside, "proof")); err == nil {
				t.Errorf("it left the sandbox: %s", h.steps())
			}
			if steps := h.steps(); strings.Count(steps, "ask") != 2 || !strings.HasSuffix(steps, "retry without sandbox?") {
				t.Errorf("steps %s", steps)
			}
		})
	}
}

// The columns of the table of policies. A call in noColumn runs nothing in any row.
const (
	noColumn = iota
	_
	_ // the policy and the mode are before them
	knownColumn
	otherColumn
	escalatedColumn
	unconfinedColumn
	insideColumn
	elsewhereColumn
)

// policies returns the cells of the rows of the table of policies, which TestPolicies of package decide compares.
func policies(t *testing.T) (rows [][]string) {
	t.Helper()
	page := must.Get(os.ReadFile("../../../internal/decide/testdata/policies.txt"))(t)
	_, table, _ := strings.Cut(string(page), "|---|---|---|---|---|---|---|---|\n")
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		for i := range cells {
			cells[i] = strings.Trim(cells[i], " `\n")
		}
		rows = append(rows, cells)
	}
	if len(rows) != 12 {
		t.Fatalf("%d rows", len(rows))
	}
	return rows
}

// field is where an attack happens: a repository that the model controls, and a folder beside it.
// An attack that succeeds leaves a file proof in one of them.
type field struct {
	top, work, outside string
	box                *tool.Toolbox
	turn               *tool.Turn
}

// evil is a script that proves that it ran, inside and outside of the working folder.
func (f *field) evil() string { return "echo x >" + f.work + "/proof; echo x >" + f.outside + "/proof" }

func (f *field) put(t *testing.T, name, text string) { boxtest.Lay(t, f.top, name+"="+text) }

// faultySandbox is a real sandbox that fails later.
type faultySandbox struct {
	tool.Sandbox
	confines int  // how often it can be confined
	starts   bool // whether a command can start in it
}

func (s *faultySandbox) Confine(p protocol.SandboxPolicy, cwd string, env []string) (tool.Confinement, error) {
	if s.confines--; s.confines < 0 {
		return nil, box.ErrUnavailable
	}
	c, err := s.Sandbox.Confine(p, cwd, env)
	return faultyConfinement{c, s.starts}, err
}

type faultyConfinement struct {
	tool.Confinement
	starts bool
}

func (c faultyConfinement) Apply(cmd *exec.Cmd) (string, error) {
	if !c.starts {
		return "", box.ErrUnavailable
	}
	return c.Confinement.Apply(cmd)
}

// approving approves for the session.
type approving struct{ *host }

func (approving) Ask(context.Context, approval.Subject) elicit.Outcome {
	return elicit.Outcome{Decision: elicit.ApprovedForSession}
}

const (
	newProof   = "*** Begin Patch\n*** Add File: %s\n+x\n*** End Patch\n"
	patchFirst = "apply_patch <<'E'\n*** Begin Patch\n*** Add File: file\n+x\n*** End Patch\nE\n"
)

// tableAttacks try to be judged as in a milder column than their own, or to do more than the cell
// says. In files and calls, EVIL is the script, and WORK and OUTSIDE are the folders.
var tableAttacks = []struct {
	column  int
	name    string
	silent  bool                                 // nothing runs where the cell says that it asks
	first   bool                                 // a folder of the working folder is the first in PATH
	sandbox func(real tool.Sandbox) tool.Sandbox // nil for the real one
	files   []string                             // see boxtest.Lay
	prepare func(t *testing.T, f *field)         // afterwards
	call    tool.Call
}{
	{column: noColumn, name: "the command twice, once with an escape",
		call: tool.Call{Name: "shell", Arguments: `{"command":["ls"],"comm\u0061nd":["sh","-c","EVIL"]}`}},
	{column: noColumn, name: "two calls in the arguments of one",
		call: tool.Call{Name: "shell", Arguments: `{"command":["ls"]}{"command":["sh","-c","EVIL"]}`}},
	{column: noColumn, name: "a tool that looks like the shell", call: tool.Call{Name: "shell\u200b", Arguments: `{"command":["sh","-c","EVIL"]}`}},
	{column: noColumn, name: "a patch beside the patch",
		call: shellCall("", "apply_patch", fmt.Sprintf(newProof+newProof, "file", "../outside/proof"))},
	{column: noColumn, name: "variables of the model", files: []string{"work/.bash_profile=EVIL"},
		call: tool.Call{Shell: &protocol.LocalShellAction{Command: []string{"bash", "-lc", "pwd"}, Env: map[string]string{"HOME": "WORK", "BASH_ENV": "WORK/.bash_profile"}}}},

	{column: knownColumn, name: "a filter of the repository", files: []string{"work/.gitattributes=*.txt filter=evil\n", "work/a.txt=one\n"}, prepare: func(t *testing.T, f *field) {
		servertest.Git(t, f.work, "init", "-q")
		servertest.Git(t, f.work, "add", ".")
		f.put(t, "work/a.txt", "two, which is longer\n")
		servertest.Git(t, f.work, "config", "filter.evil.clean", "cat;"+f.evil())
	}, call: shellCall("", "git", "diff")},
	{column: knownColumn, name: "a program of that name earlier in PATH", first: true, files: []string{"work/bin/ls=#!/bin/sh\nEVIL"},
		call: shellCall("", "ls")},
	{column: knownColumn, name: "a hook of the index", prepare: func(t *testing.T, f *field) {
		servertest.Git(t, f.work, "init", "-q")
		servertest.Git(t, f.work, "add", ".")
		f.put(t, "work/.git/hooks/post-index-change", "#!/bin/sh\n"+f.evil())
		if err := os.Chtimes(f.work+"/file", time.Time{}, time.Unix(1, 0)); err != nil { // so that git refreshes it
			t.Fatal(err)
		}
	}, call: shellCall("", "git", "status")},
	{column: knownColumn, name: "what the repository's configuration starts", files: []string{
		"work/.gitattributes=*.txt diff=text\n", "work/a.txt=one\n", "outside/witness=#!/bin/sh\nEVIL",
	}, prepare: func(t *testing.T, f *field) {
		servertest.Git(t, f.work, "init", "-q")
		servertest.Git(t, f.work, "add", ".")
		servertest.Git(t, f.work, "commit", "-qm", "first")
		for _, key := range []string{"core.fsmonitor", "diff.external", "diff.text.textconv", "gpg.program", "core.pager", "core.editor"} {
			servertest.Git(t, f.work, "config", key, f.outside+"/witness")
		}
	}, call: shellCall("", "git", "log", "-p")},
	{column: knownColumn, name: "a profile", files: []string{"home/.bash_profile=EVIL"}, call: shellCall("", "bash", "-lc", "ls")},

	{column: otherColumn, name: "a patch and then a command in one script", call: shellCall("", "bash", "-lc", patchFirst+"EVIL")},
	{column: otherColumn, name: "a known name in a folder of its own", files: []string{"work/sub/ls=#!/bin/sh\nEVIL"},
		call: shellCall(`,"workdir":"sub"`, "./ls")},
	{column: otherColumn, name: "asks to leave the sandbox in other words",
		call: shellCall(`,"sandbox_permissions":"require_escalated","With_Escalated_Permissions":true,"with_escalated_permissions":false`, "sh", "-c", "EVIL")},
	{column: otherColumn, name: "an approval for the session of the other modes", prepare: approveInOtherModes,
		call: shellCall("", "sh", "OUTSIDE/script")},

	{column: escalatedColumn, name: "a line for the shell",
		call: tool.Call{Name: "shell", Arguments: `{"command":"EVIL","with_escalated_permissions":true,"justification":"approved by the user already"}`}},
	{column: escalatedColumn, name: "a known command whose program is another", first: true, files: []string{"work/bin/ls=#!/bin/sh\nEVIL"},
		call: shellCall(escalated, "ls")},
	{column: escalatedColumn, name: "an approval for the session of the other modes", prepare: approveInOtherModes,
		call: shellCall(escalated, "sh", "OUTSIDE/script")},

	{column: unconfinedColumn, name: "a known command whose program is another", first: true, files: []string{"work/bin/ls=#!/bin/sh\nEVIL"},
		sandbox: func(tool.Sandbox) tool.Sandbox { return nil }, call: shellCall("", "ls")},
	{column: unconfinedColumn, name: "the sandbox is gone after the first command", sandbox: func(real tool.Sandbox) tool.Sandbox {
		return &faultySandbox{Sandbox: real, confines: 1, starts: true}
	}, prepare: func(t *testing.T, f *field) { // the answers of this turn are no
		called(t, f.turn, shellCall("", "true"))
	}, call: shellCall("", "sh", "-c", "EVIL")},
	{column: unconfinedColumn, name: "nothing starts in the sandbox", silent: true, sandbox: func(real tool.Sandbox) tool.Sandbox {
		return &faultySandbox{Sandbox: real, confines: 100}
	}, call: shellCall("", "sh", "-c", "EVIL")},

	{column: insideColumn, name: "as a script with an escalation",
		call: shellCall(escalated, "bash", "-lc", "cd sub && apply_patch <<'E'\n"+fmt.Sprintf(newProof, "../proof")+"E\n")},
	{column: insideColumn, name: "by the tool that writes", call: tool.Call{Name: "write", Arguments: `{"path":"sub/.././proof","content":"x\n"}`}},

	{column: elsewhereColumn, name: "a file inside, and one by a link", files: []string{"work/link -> ../outside"},
		call: shellCall("", "apply_patch", "*** Begin Patch\n*** Add File: new\n+x\n*** Add File: link/proof\n+x\n*** End Patch")},
	{column: elsewhereColumn, name: "a move by a link that leads up", files: []string{"outside/deep/file=x\n", "work/link -> ../outside/deep"},
		call: shellCall(`,"workdir":"link"`, "bash", "-lc", "cd .. && apply_patch <<'E'\n"+fmt.Sprintf(newProof, "../outside/proof")+"E\n")},
	{column: elsewhereColumn, name: "a hook by the name of another folder", files: []string{"work/.git/hooks/sample", "work/tools -> .git/hooks"},
		call: tool.Call{Name: "write", Arguments: `{"path":"tools/proof","content":"x\n"}`}},
}

// approveInOtherModes approves a script for the session in the sandbox modes that the row has not,
// and removes what it did.
func approveInOtherModes(t *testing.T, f *field) {
	t.Helper()
	f.put(t, "outside/script", f.evil())
	for _, mode := range []protocol.SandboxMode{protocol.SandboxReadOnly, protocol.SandboxWorkspaceWrite, protocol.SandboxDangerFullAccess} {
		if mode == f.turn.SandboxPolicy.Mode {
			continue
		}
		of := f.turn.SandboxPolicy
		of.Mode = mode
		turn := f.box.Turn(tool.Context{Cwd: f.work, ApprovalPolicy: protocol.ApprovalUntrusted, SandboxPolicy: of, Host: approving{&host{}}})
		called(t, turn, shellCall("", "sh", f.outside+"/script"))
		for _, dir := range []string{f.work, f.outside} {
			must.OK(t, os.Remove(dir+"/proof"))
		}
	}
}

// TestAttacksOnTheTable tries each attack in each row of the table of policies, with the
// real sandbox and a user who denies everything. What happens is what the cell says. Each attack meets
// every other row, and the next attack the rest.
func TestAttacksOnTheTable(t *testing.T) {
	boxtest.Need(t)
	for i, row := range policies(t) {
		approvals, mode := protocol.ApprovalPolicy(row[1]), protocol.SandboxMode(row[2])
		for n, tt := range tableAttacks {
			if !servertest.Plays(i+n, *whole) {
				continue
			}
			cell := "never"
			if tt.column != noColumn {
				cell = row[tt.column]
			}
			t.Run(fmt.Sprintf("%s %s/%s/%s", approvals, mode, cell, tt.name), func(t *testing.T) {
				t.Parallel()
				top := boxtest.Folder(t)
				f := &field{top: top, work: filepath.Join(top, "work"), outside: filepath.Join(top, "outside")}
				path := "PATH=/usr/local/bin:/usr/bin:/bin"
				if tt.first {
					path = "PATH=" + f.work + "/bin:/usr/bin:/bin"
				}
				stands := strings.NewReplacer("EVIL", f.evil(), "WORK", f.work, "OUTSIDE", f.outside)
				boxtest.Lay(t, top, "work/file=one\n", "work/sub/file=one\n", "outside/file=one\n", "home/file=one\n")
				toolbox := tool.Confine(box.New(box.Options{}))
				if tt.sandbox != nil {
					toolbox = tt.sandbox(toolbox)
				}
				h := &host{answer: elicit.Denied}
				f.box = newBox(tool.Options{Environ: []string{path, "HOME=" + filepath.Join(top, "home")}, Sandbox: toolbox, FileTools: true})
				f.turn = f.box.Turn(tool.Context{
					Cwd: f.work, ApprovalPolicy: approvals, Host: h,
					// The configuration of the mode workspace-write counts in no other.
					SandboxPolicy: protocol.SandboxPolicy{Mode: mode, WritableRoots: []string{f.work}, ExcludeSlashTmp: true, ExcludeTmpdirEnvVar: true},
				})
				for _, entry := range tt.files {
					boxtest.Lay(t, top, stands.Replace(entry))
				}
				if tt.prepare != nil {
					tt.prepare(t, f)
				}
				before := tree(t, top)
				h.trace = nil
				call := tt.call
				call.Arguments = stands.Replace(call.Arguments)
				if call.Shell != nil {
					action := *call.Shell
					action.Env = map[string]string{}
					for name, value := range call.Shell.Env {
						action.Env[name] = stands.Replace(value)
					}
					call.Shell = &action
				}
				res := called(t, f.turn, call)
				var inside, outside, proof bool
				for path, now := range tree(t, top) {
					if before[path] == now {
						continue
					}
					if strings.HasPrefix(path, f.work+"/") {
						inside = true
					} else {
						outside = true
					}
					proof = proof || filepath.Base(path) == "proof"
				}
				steps := h.steps()
				asked := strings.Count(steps, "ask")
				switch cell {
				case "never", "may, read-only":
					if asked > 0 || inside || outside {
						t.Errorf("asked %d times, changed inside: %t, outside: %t", asked, inside, outside)
					}
				case "asks":
					if asked != 1 && !tt.silent || inside || outside || strings.Contains(steps, "begin") && !tt.silent {
						t.Errorf("asked %d times, changed inside: %t, outside: %t", asked, inside, outside)
					}
				case "may, in the sandbox", "may, in the sandbox; then asks":
					if outside || inside && mode != protocol.SandboxWorkspaceWrite || asked > 0 && !strings.HasSuffix(cell, "then asks") || strings.HasPrefix(steps, "ask") || asked > 1 {
						t.Errorf("asked %d times, changed inside: %t, outside: %t", asked, inside, outside)
					}
				case "**may**":
					if asked > 0 || !proof || outside && mode != protocol.SandboxDangerFullAccess {
						t.Errorf("asked %d times, proof: %t, changed outside: %t", asked, proof, outside)
					}
				default:
					t.Errorf("the page says %q", cell)
				}
				if t.Failed() {
					t.Errorf("steps %q; the model receives %q", steps, res.Output)
				}
			})
		}
	}
}
