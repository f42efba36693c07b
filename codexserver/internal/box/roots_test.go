//go:build unix

package box_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
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
	tmp := []string{"/tmp"}
	if real, err := filepath.EvalSymlinks("/tmp"); err == nil {
		tmp[0] = real
	}
	for _, tt := range []struct {
		name   string
		mode   protocol.SandboxMode
		cwd    string
		roots  []string // @ is base, as everywhere
		tmpdir string   // $TMPDIR, writable when set
		named  []string
		want   []string
		notes  []string
	}{
		{name: "read-only", mode: protocol.SandboxReadOnly, cwd: "@/work", roots: []string{"@/other"}},
		{name: "full access", mode: protocol.SandboxDangerFullAccess, cwd: "@/work", roots: []string{"@/other"}},
		{name: "the working folder", cwd: "@/work", want: []string{"@/work"}},
		{name: "more", cwd: "@/work", roots: []string{"@/other/", "relative", "@/work"}, want: []string{"@/work", "@/other"}},
		{name: "not absolute", cwd: "./@/work", roots: []string{"./@/other"}},
		{name: "$TMPDIR", cwd: "@/work", tmpdir: "@/other", want: []string{"@/work", "@/other"}},
		{name: "missing", cwd: "@/work", roots: []string{"@/work/no/thing"}, want: []string{"@/work"}},
		{name: "a file", cwd: "@/work", roots: []string{"@/work/file"}, want: []string{"@/work"}, notes: []string{"@/work/file is read-only for commands: it is not a folder"}},
		{name: "a loop", cwd: "@/work", roots: []string{"@/loop"}, want: []string{"@/work"}, notes: []string{"@/loop is read-only for commands: follow @/loop: too many symbolic links"}},

		{name: "a link of the user's", cwd: "@/alias", want: []string{"@/work"}},
		{name: "a link in a root", cwd: "@/work", roots: []string{"@/work/link"}, want: []string{"@/work"},
			notes: []string{"@/work/link is read-only for commands: @/work/link is a symbolic link in the writable folder @/work"}},
		{name: "in another order", cwd: "@/work/link", roots: []string{"@/work"}, want: []string{"@/work"},
			notes: []string{"@/work/link is read-only for commands: @/work/link is a symbolic link in the writable folder @/work"}},
		{name: "behind a link in a root", cwd: "@/work", roots: []string{"@/work/sub/up/other"}, want: []string{"@/work"},
			notes: []string{"@/work/sub/up/other is read-only for commands: @/work/sub/up is a symbolic link in the writable folder @/work"}},
		{name: "a link in a root that is behind one", cwd: "@/alias", roots: []string{"@/work/link"}, want: []string{"@/work"},
			notes: []string{"@/work/link is read-only for commands: @/work/link is a symbolic link in the writable folder @/work"}},

		{name: "the file system", cwd: "/", notes: []string{"/ is read-only for commands: it is the whole file system; sandbox_workspace_write.writable_roots in config.toml can name it"}},
		{name: "home", cwd: "@/home", notes: []string{"@/home is read-only for commands: it is or holds @/home; sandbox_workspace_write.writable_roots in config.toml can name it"}},
		{name: "above home", cwd: "@/work", roots: []string{"@"}, want: []string{"@/work"},
			notes: []string{"@ is read-only for commands: it is or holds @/home; sandbox_workspace_write.writable_roots in config.toml can name it"}},
		{name: "home by a link", cwd: "@/work/home", notes: []string{"@/work/home is read-only for commands: it is or holds @/home; sandbox_workspace_write.writable_roots in config.toml can name it"}},
		{name: "$CODEX_HOME", cwd: "@/home/.codex", notes: []string{"@/home/.codex is read-only for commands: it is or holds @/home/.codex; sandbox_workspace_write.writable_roots in config.toml can name it"}},
		{name: "below $CODEX_HOME", cwd: "@/home/.codex/sessions", notes: []string{"@/home/.codex/sessions is read-only for commands: it lies in @/home/.codex; sandbox_workspace_write.writable_roots in config.toml can name it"}},
		{name: "below $CODEX_HOME, named", cwd: "@/home/.codex/sessions", named: []string{"@/home/.codex/sessions"}, want: []string{"@/home/.codex/sessions"}},
		{name: "a worktree of the server", cwd: "@/home/.codex/trees/one/sub", roots: []string{"@/home/.codex/trees/two"}, want: []string{"@/home/.codex/trees/one/sub", "@/home/.codex/trees/two"}},
		{name: "all worktrees of the server", cwd: "@/home/.codex/trees", notes: []string{"@/home/.codex/trees is read-only for commands: it lies in @/home/.codex; sandbox_workspace_write.writable_roots in config.toml can name it"}},
		{name: "of the server, named", cwd: "@/home/.codex/codex-mcp", named: []string{"@/home/.codex/codex-mcp"},
			notes: []string{"@/home/.codex/codex-mcp is read-only for commands: it is or lies in @/home/.codex/codex-mcp, which is this server's"}},
		{name: "below that of the server, named", cwd: "@/work", roots: []string{"@/home/.codex/codex-mcp/run"}, named: []string{"@/home/.codex/codex-mcp/run"}, want: []string{"@/work"},
			notes: []string{"@/home/.codex/codex-mcp/run is read-only for commands: it is or lies in @/home/.codex/codex-mcp, which is this server's"}},
		{name: "below that of the server as $TMPDIR, named", cwd: "@/work", tmpdir: "@/home/.codex/codex-mcp/run", named: []string{"@/home/.codex/codex-mcp/run"}, want: []string{"@/work"}},
		{name: "devices", cwd: "/dev", notes: []string{"/dev is read-only for commands: it belongs to the system's /dev; sandbox_workspace_write.writable_roots in config.toml can name it"}},
		{name: "a git folder", cwd: "@/repo/.git", notes: []string{"@/repo/.git is read-only for commands: it is a git folder or lies in one; sandbox_workspace_write.writable_roots in config.toml can name it"}},
		{name: "in a git folder", cwd: "@/repo/.git/hooks", notes: []string{"@/repo/.git/hooks is read-only for commands: it is a git folder or lies in one; sandbox_workspace_write.writable_roots in config.toml can name it"}},
		{name: "a git folder in other letters", cwd: "@/x/.GIT", notes: []string{"@/x/.GIT is read-only for commands: it is a git folder or lies in one; sandbox_workspace_write.writable_roots in config.toml can name it"}},
		{name: "a bare repository", cwd: "@/bare", notes: []string{"@/bare is read-only for commands: it is a git folder or lies in one; sandbox_workspace_write.writable_roots in config.toml can name it"}},
		{name: "the folder of a worktree", cwd: "@/wired", notes: []string{"@/wired is read-only for commands: it is a git folder or lies in one; sandbox_workspace_write.writable_roots in config.toml can name it"}},
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
			must.Equal(t, "notes", in(tt.notes...), got.Notes)
		})
	}
	t.Run("/tmp", func(t *testing.T) {
		policy := write()
		policy.ExcludeSlashTmp = false
		got, err := box.New(box.Options{}).Roots(policy, "/nowhere/at/all", nil)
		must.OK(t, err)
		must.Equal(t, "the root", tmp, got.Paths)
		// The policy does not name it, so nothing is said when it stays read-only.
		got, err = box.New(box.Options{Private: tmp}).Roots(policy, "/nowhere/at/all", nil)
		if err != nil || got.Paths != nil || got.Notes != nil {
			t.Errorf("a private /tmp: %q, %q, %v", got.Paths, got.Notes, err)
		}
	})
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
	var roots, want []string
	for name, lay := range map[string]func(dot string) error{
		"pipe": func(dot string) error { return syscall.Mkfifo(dot, 0o600) },
		"commondir pipe": func(dot string) error {
			return errors.Join(os.Mkdir(dot, 0o700), syscall.Mkfifo(filepath.Join(dot, "commondir"), 0o600))
		},
		"commondir zero": func(dot string) error {
			return errors.Join(os.Mkdir(dot, 0o700), os.Symlink("/dev/zero", filepath.Join(dot, "commondir")))
		},
		"zero": func(dot string) error { return os.Symlink("/dev/zero", dot) },
		"link": func(dot string) error { return os.Symlink("nothing", dot) },
	} {
		root := filepath.Join(top, name)
		dot := filepath.Join(root, ".git")
		must.OK(t, os.Mkdir(root, 0o700), lay(dot))
		roots, want = append(roots, root), append(want, dot)
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
		if err := errors.Join(c.Start(cmd), cmd.Wait()); err != nil || out.String() != want {
			t.Errorf("by this process: %s, %v", &out, err)
		}
		must.Equal(t, "environment", tt.environ, c.Environ())
		for name, run := range map[string]func(func() error) error{"Do": c.Do, "Read": c.Read} {
			if err := run(func() error { t.Error("it ran"); return nil }); !errors.Is(err, box.ErrUnavailable) {
				t.Errorf("%s: %v", name, err)
			}
		}
		lost = missing
		if err := c.Start(exec.CommandContext(t.Context(), "/bin/true")); !errors.Is(err, missing) {
			t.Errorf("a helper that is lost: %v", err)
		}
		if _, err := s.Confine(tt.policy, dir, nil); !errors.Is(err, box.ErrUnavailable) {
			t.Errorf("a helper that is not found: %v", err)
		}
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
