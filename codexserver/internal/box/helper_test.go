//go:build unix

package box_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

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
		c, err := s.Confine(tt.policy, dir, nil)
		must.OK(t, err)
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

// TestHelperInTheDocumentation runs the helper of docs/configuration.md with a program in the
// place of bubblewrap that prints its arguments.
func TestHelperInTheDocumentation(t *testing.T) {
	if _, err := exec.LookPath("jq"); err != nil {
		t.Skip(err)
	}
	page, err := os.ReadFile("../../../docs/configuration.md")
	must.OK(t, err)
	_, rest, found := strings.Cut(string(page), "\n## A sandbox of your own\n")
	_, rest, block := strings.Cut(rest, "\n```bash\n")
	script, _, _ := strings.Cut(rest, "```\n")
	if !found || !block {
		t.Fatal("the page has no helper")
	}
	bin := tree(t, "codex-bwrap="+script, "bwrap=#!/bin/sh\nprintf '%s\\n' \"$*\"\n")
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
		c, err := box.New(box.Options{Helper: []string{helper}}).Confine(tt.policy, work, nil)
		must.OK(t, err)
		res := ran(t, run.Spec{
			Argv: []string{"/bin/true", "a b"}, Dir: work, Env: []string{"PATH=" + bin + ":" + os.Getenv("PATH")}, Confinement: c,
		})
		want := strings.NewReplacer("W", work, "P", plain).Replace(tt.want) + "\n"
		if res.Aggregated != want {
			t.Errorf("%q, want %q", res.Aggregated, want)
		}
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
