//go:build unix

package box_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/paths"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// tree lays out entries below a new folder, see [boxtest.Lay].
func tree(t *testing.T, entries ...string) string {
	t.Helper()
	base := boxtest.Folder(t)
	boxtest.Lay(t, base, entries...)
	return base
}

func confine(t testing.TB, p protocol.SandboxPolicy, dir string) *box.Confinement {
	t.Helper()
	return must.Get(box.New(box.Options{}).Confine(p, dir, nil))(t)
}

func ran(t testing.TB, spec run.Spec) run.Result {
	t.Helper()
	return must.Get(boxtest.Starter(t).Run(t.Context(), spec, nil))(t)
}

// write is a policy of mode workspace-write without /tmp and $TMPDIR.
func write(roots ...string) protocol.SandboxPolicy {
	return protocol.SandboxPolicy{Mode: protocol.SandboxWorkspaceWrite, WritableRoots: roots, ExcludeSlashTmp: true, ExcludeTmpdirEnvVar: true}
}

func TestRoots(t *testing.T) {
	base := tree(t,
		"work/sub/", "work/file", "other/", "home/.codex/sessions/", "home/.codex/codex-mcp/run/", "home/.codex/trees/one/sub/", "home/.codex/trees/two/", "home/project/",
		"alias -> @/work", "above -> @", "work/link -> @/other", "work/sub/up -> ../..", "work/home -> @/home", "loop -> loop",
		"repo/.git/hooks/", "repo/.git/tree/src/", "repo/.git/tree/.git/", "x/.GIT/", "bare/objects/", "bare/refs/", "bare/sub/", "bare/HEAD", "wired/HEAD", "wired/commondir", "half/HEAD", "half/objects/",
		"toGit -> @/repo/.git",
	)
	for _, tt := range []struct {
		name   string
		mode   protocol.SandboxMode
		cwd    string
		roots  []string // @ is base, as everywhere
		tmpdir string   // $TMPDIR, writable when set
		named  []string
		want   []string
		note   string // "a: b" stands for "a is read-only for commands: b", and … for what can name a
	}{
		{name: "read-only", mode: protocol.SandboxReadOnly, cwd: "@/work", roots: []string{"@/other"}},
		{name: "full access", mode: protocol.SandboxDangerFullAccess, cwd: "@/work", roots: []string{"@/other"}},
		{name: "the working folder", cwd: "@/work", want: []string{"@/work"}},
		{name: "more", cwd: "@/work", roots: []string{"@/other/", "relative", "@/work"}, want: []string{"@/work", "@/other"}},
		{name: "not absolute", cwd: "./@/work", roots: []string{"./@/other"}},
		{name: "$TMPDIR", cwd: "@/work", tmpdir: "@/other", want: []string{"@/work", "@/other"}},
		{name: "missing", cwd: "@/work", roots: []string{"@/work/no/thing"}, want: []string{"@/work"}},
		{name: "a file", cwd: "@/work", roots: []string{"@/work/file"}, want: []string{"@/work"}, note: "@/work/file: it is not a folder"},
		{name: "a loop", cwd: "@/work", roots: []string{"@/loop"}, want: []string{"@/work"}, note: "@/loop: follow @/loop: too many symbolic links"},

		{name: "a link of the user's", cwd: "@/alias", want: []string{"@/work"}},
		{name: "a link in a root", cwd: "@/work", roots: []string{"@/work/link"}, want: []string{"@/work"}, note: "@/work/link: @/work/link is a symbolic link in the writable folder @/work"},
		{name: "in another order", cwd: "@/work/link", roots: []string{"@/work"}, want: []string{"@/work"}, note: "@/work/link: @/work/link is a symbolic link in the writable folder @/work"},
		{name: "behind a link in a root", cwd: "@/work", roots: []string{"@/work/sub/up/other"}, want: []string{"@/work"}, note: "@/work/sub/up/other: @/work/sub/up is a symbolic link in the writable folder @/work"},
		{name: "a link in a root that is behind one", cwd: "@/alias", roots: []string{"@/work/link"}, want: []string{"@/work"}, note: "@/work/link: @/work/link is a symbolic link in the writable folder @/work"},

		{name: "the file system", cwd: "/", note: "/: it is the whole file system; …"},
		{name: "home", cwd: "@/home", note: "@/home: it is or holds @/home; …"},
		{name: "above home", cwd: "@/work", roots: []string{"@"}, want: []string{"@/work"}, note: "@: it is or holds @/home; …"},
		{name: "home by a link", cwd: "@/work/home", note: "@/work/home: it is or holds @/home; …"},
		{name: "$CODEX_HOME", cwd: "@/home/.codex", note: "@/home/.codex: it is or holds @/home/.codex; …"},
		{name: "below $CODEX_HOME", cwd: "@/home/.codex/sessions", note: "@/home/.codex/sessions: it lies in @/home/.codex; …"},
		{name: "below $CODEX_HOME, named", cwd: "@/home/.codex/sessions", named: []string{"@/home/.codex/sessions"}, want: []string{"@/home/.codex/sessions"}},
		{name: "a worktree of the server", cwd: "@/home/.codex/trees/one/sub", roots: []string{"@/home/.codex/trees/two"}, want: []string{"@/home/.codex/trees/one/sub", "@/home/.codex/trees/two"}},
		{name: "all worktrees of the server", cwd: "@/home/.codex/trees", note: "@/home/.codex/trees: it lies in @/home/.codex; …"},
		{name: "of the server, named", cwd: "@/home/.codex/codex-mcp", named: []string{"@/home/.codex/codex-mcp"}, note: "@/home/.codex/codex-mcp: it is or lies in @/home/.codex/codex-mcp, which is this server's"},
		{name: "below that of the server, named", cwd: "@/work", roots: []string{"@/home/.codex/codex-mcp/run"}, named: []string{"@/home/.codex/codex-mcp/run"}, want: []string{"@/work"}, note: "@/home/.codex/codex-mcp/run: it is or lies in @/home/.codex/codex-mcp, which is this server's"},
		{name: "below that of the server as $TMPDIR, named", cwd: "@/work", tmpdir: "@/home/.codex/codex-mcp/run", named: []string{"@/home/.codex/codex-mcp/run"}, want: []string{"@/work"}},
		{name: "devices", cwd: "/dev", note: "/dev: it belongs to the system's /dev; …"},
		{name: "a git folder", cwd: "@/repo/.git", note: "@/repo/.git: it is a git folder or lies in one; …"},
		{name: "in a git folder", cwd: "@/repo/.git/hooks", note: "@/repo/.git/hooks: it is a git folder or lies in one; …"},
		{name: "a git folder in other letters", cwd: "@/x/.GIT", note: "@/x/.GIT: it is a git folder or lies in one; …"},
		{name: "a bare repository", cwd: "@/bare", note: "@/bare: it is a git folder or lies in one; …"},
		{name: "the folder of a worktree", cwd: "@/wired", note: "@/wired: it is a git folder or lies in one; …"},
		{name: "half a repository", cwd: "@/half", want: []string{"@/half"}},
		{name: "a working tree in a git folder", cwd: "@/repo/.git/tree/src", want: []string{"@/repo/.git/tree/src"}},
		{name: "a git folder, named", cwd: "@/repo/.git", named: []string{"@/repo/.git"}, want: []string{"@/repo/.git"}},
		{name: "below home", cwd: "@/home/project", want: []string{"@/home/project"}},
		{name: "home as $TMPDIR", cwd: "@/work", tmpdir: "@/home", want: []string{"@/work"}},
		{name: "home, named", cwd: "@/home", named: []string{"@/home/"}, want: []string{"@/home"}},
		{name: "home by a link, which is named", cwd: "@/work/home", named: []string{"@/work/home"}, want: []string{"@/home"}},
		{name: "the file system, named", cwd: "@/work", roots: []string{"/"}, named: []string{"/"}, want: []string{"@/work", "/"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := func(words ...string) (out []string) {
				for _, word := range words {
					out = append(out, strings.ReplaceAll(word, "@", base))
				}
				return out
			}
			policy := write(in(tt.roots...)...)
			if tt.mode != "" {
				policy.Mode = tt.mode
			}
			env := []string{"TMPDIR=@/other"} // excluded
			if tt.tmpdir != "" {
				policy.ExcludeTmpdirEnvVar = false
				env = []string{"@/home/project", "TMPDIR=" + tt.tmpdir, "OTHER=@/home/project"}
			}
			s := box.New(box.Options{
				Private: in("@/home", "@/home/.codex"), Protected: in("@/home/.codex"), Trees: in("@/home/.codex/trees")[0], Sealed: in("@/home/.codex/codex-mcp"), Named: in(tt.named...),
			})
			got := must.Get(s.Roots(policy, in(tt.cwd)[0], in(env...)))(t)
			must.Equal(t, "roots", in(tt.want...), got.Paths)
			note := strings.Replace(tt.note, ": ", " is read-only for commands: ", 1)
			note = strings.Replace(note, "…", "sandbox_workspace_write.writable_roots in config.toml can name it", 1)
			must.Equal(t, "notes", in(note)[0], strings.Join(got.Notes, "\n"))
		})
	}
	policy, tmp := write(), []string{paths.Real("/tmp")}
	policy.ExcludeSlashTmp = false
	got := must.Get(box.New(box.Options{}).Roots(policy, "/nowhere/at/all", nil))(t)
	must.Equal(t, "the root", tmp, got.Paths)
	// The policy does not name it, so nothing is said when it stays read-only.
	got = must.Get(box.New(box.Options{Private: tmp}).Roots(policy, "/nowhere/at/all", nil))(t)
	must.Equal(t, "a private /tmp", 0, len(got.Paths)+len(got.Notes))
}

// TestLateRoot puts links and folders in place of a root that was missing.
func TestLateRoot(t *testing.T) {
	base := tree(t, "work/", "outside/")
	work, late := filepath.Join(base, "work"), filepath.Join(base, "work/late")
	const link, folder = "late -> ../outside", "late/"
	var programs box.Programs
	for _, tt := range []struct {
		name, now string // what lies in the place of the root
		cwd       string
		roots     []string
		want      []string
		replaced  bool
	}{
		{"missing", "", work, []string{late}, []string{work}, false},
		{"a link", link, work, []string{late}, []string{work}, false},
		{"a link, in another conversation", link, late, nil, nil, false},
		{"below a link", link, filepath.Join(late, "sub"), nil, nil, false},
		{"a folder", folder, work, []string{late}, []string{work, late}, false},
		{"another folder", folder, work, []string{late}, []string{work, late}, false},
		{"gone", "", work, []string{late}, []string{work}, false},
		{"a link in the place of a root", link, work, []string{late}, nil, true},
		{"a folder again", folder, work, []string{late}, []string{work, late}, false},
	} {
		must.OK(t, os.RemoveAll(late))
		if tt.now != "" {
			boxtest.Lay(t, work, tt.now)
		}
		// Each conversation has a sandbox of its own.
		got, err := box.New(box.Options{Programs: &programs}).Roots(write(tt.roots...), tt.cwd, nil)
		if tt.replaced && (!errors.Is(err, box.ErrReplaced) || !strings.Contains(err.Error(), late) || errors.Is(err, box.ErrUnavailable)) || !tt.replaced && err != nil {
			t.Errorf("%s: %q, %v", tt.name, got.Paths, err)
		}
		must.Equal(t, tt.name, tt.want, got.Paths)
	}
}

// TestProtectedWithSpecialFiles checks that special files in place of .git or commondir are not followed.
func TestProtectedWithSpecialFiles(t *testing.T) {
	top := t.TempDir()
	script := "mkdir -p 1 2/.git 3/.git 4 5; mkfifo 1/.git 2/.git/commondir; ln -s /dev/zero 3/.git/commondir; ln -s /dev/zero 4/.git; ln -s nothing 5/.git"
	cmd := exec.CommandContext(t.Context(), "sh", "-ec", script)
	cmd.Dir = top
	must.OK(t, cmd.Run())
	var roots, want []string
	for i := range 5 {
		root := fmt.Sprintf("%s/%d", top, i+1)
		roots, want = append(roots, root), append(want, root+"/.git")
	}
	must.Equal(t, "the folders", want, box.New(box.Options{}).Protected(roots))
}

// TestHelper runs commands by a helper, which the caller's search finds each time. This one prints its
// arguments, and runs the command.
func TestHelper(t *testing.T) {
	const script = `helper=#!/bin/sh
printf '%s %s\n' "$1" "$2"; shift 2; exec "$@"
`
	dir, helper := boxtest.Folder(t), filepath.Join(tree(t, script), "helper")
	missing := errors.New("missing")
	var lost error
	find := func(string) (string, error) { return helper, lost }
	s := box.New(box.Options{Helper: []string{"no-such-helper"}, Find: find})
	writes := protocol.SandboxPolicy{Mode: protocol.SandboxWorkspaceWrite, NetworkAccess: true, ExcludeSlashTmp: true}
	for _, tt := range []struct {
		policy  protocol.SandboxPolicy
		said    string
		environ []string
	}{
		{writes, `{"cwd":"` + dir + `","mode":"workspace-write","network_access":true,"writable_roots":["` + dir + `"]}`, nil},
		{protocol.SandboxPolicy{Mode: protocol.SandboxReadOnly}, `{"cwd":"` + dir + `","mode":"read-only","network_access":false,"writable_roots":[]}`,
			[]string{"CODEX_SANDBOX_NETWORK_DISABLED=1"}},
	} {
		c := must.Get(s.Confine(tt.policy, dir, nil))(t)
		want := tt.said + " --\na b\n"
		res := ran(t, run.Spec{Argv: []string{"echo", "a b"}, Dir: dir, Env: []string{"PATH=/usr/bin:/bin"}, Confinement: c})
		must.Equal(t, "by a launcher", want, res.Stdout)
		var out strings.Builder
		cmd := exec.CommandContext(t.Context(), "/bin/echo", "a b")
		cmd.Stdout = &out
		must.OK(t, c.Start(cmd), cmd.Wait())
		must.Equal(t, "by this process", want, out.String())
		must.Equal(t, "environment", tt.environ, c.Environ())
		for _, run := range []func(func() error) error{c.Do, c.Read} {
			must.Equal(t, "no function runs", true, errors.Is(run(func() error { t.Error("it ran"); return nil }), box.ErrUnavailable))
		}
		lost = missing
		must.Equal(t, "a helper that is lost", true, errors.Is(c.Start(exec.CommandContext(t.Context(), "/bin/true")), missing))
		_, err := s.Confine(tt.policy, dir, nil)
		must.Equal(t, "a helper that is not found", true, errors.Is(err, box.ErrUnavailable))
		lost = nil
	}
}

// documentedHelper returns the helper of docs/configuration.md.
func documentedHelper(t *testing.T) string {
	t.Helper()
	page := must.Get(os.ReadFile("../../../docs/configuration.md"))(t)
	_, rest, found := strings.Cut(string(page), "\n## A sandbox of your own\n")
	_, rest, block := strings.Cut(rest, "\n```bash\n")
	script, _, _ := strings.Cut(rest, "```\n")
	if !found || !block {
		t.Fatal("the page has no helper")
	}
	return script
}

// TestHelperInTheDocumentation runs the helper of docs/configuration.md with a program in the
// place of bubblewrap that prints its arguments.
func TestHelperInTheDocumentation(t *testing.T) {
	if _, err := exec.LookPath("jq"); err != nil {
		t.Skip(err)
	}
	bin := tree(t, "codex-bwrap="+documentedHelper(t), "bwrap=#!/bin/sh\nprintf '%s\\n' \"$*\"\n")
	work, plain, helper := tree(t, ".git/"), tree(t), filepath.Join(bin, "codex-bwrap")
	writes := write(plain)
	writes.NetworkAccess = true
	const all = "--ro-bind / / --dev /dev --proc /proc --unshare-user --unshare-pid --unshare-ipc --new-session --die-with-parent"
	for _, tt := range []struct {
		policy protocol.SandboxPolicy
		want   string
	}{
		{protocol.SandboxPolicy{Mode: protocol.SandboxReadOnly}, all + " --unshare-net --chdir W -- /bin/true a b"},
		{writes, all + " --bind W W --bind P P --ro-bind W/.git W/.git --chdir W -- /bin/true a b"},
	} {
		c := must.Get(box.New(box.Options{Helper: []string{helper}}).Confine(tt.policy, work, nil))(t)
		res := ran(t, run.Spec{
			Argv: []string{"/bin/true", "a b"}, Dir: work, Env: []string{"PATH=" + bin + ":" + os.Getenv("PATH")}, Confinement: c,
		})
		want := strings.NewReplacer("W", work, "P", plain).Replace(tt.want) + "\n"
		must.Equal(t, "the arguments", want, res.Aggregated)
	}
}

func TestUnavailable(t *testing.T) {
	policy := protocol.SandboxPolicy{Mode: protocol.SandboxReadOnly}
	if _, err := box.New(box.Options{Helper: []string{"no-such-helper"}}).Confine(policy, "/", nil); !errors.Is(err, box.ErrUnavailable) {
		t.Errorf("a missing helper: %v", err)
	}
	policy = protocol.SandboxPolicy{Mode: protocol.SandboxDangerFullAccess}
	if _, err := box.New(box.Options{}).Confine(policy, "/", nil); err == nil {
		t.Error("full access is confined")
	}
}

// TestReadOnly checks which confinements let a command change no file.
func TestReadOnly(t *testing.T) {
	boxtest.Need(t)
	own, helped := box.Options{}, box.Options{Helper: []string{"sh"}}
	for _, tt := range []struct {
		name    string
		options box.Options
		policy  protocol.SandboxPolicy
		want    bool
	}{
		{"read-only", own, protocol.SandboxPolicy{Mode: protocol.SandboxReadOnly}, true},
		{"with the network, over which others may write", own, protocol.SandboxPolicy{Mode: protocol.SandboxReadOnly, NetworkAccess: true}, false},
		{"by a helper, which may allow more", helped, protocol.SandboxPolicy{Mode: protocol.SandboxReadOnly}, false},
		{"workspace-write", own, protocol.SandboxPolicy{Mode: protocol.SandboxWorkspaceWrite}, false},
	} {
		c, err := box.New(tt.options).Confine(tt.policy, boxtest.Folder(t), nil)
		if err != nil || c.ReadOnly() != tt.want {
			t.Errorf("%s: %t, %v", tt.name, c != nil && c.ReadOnly(), err)
		}
	}
}
