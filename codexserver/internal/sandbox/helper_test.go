//go:build unix

package sandbox_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/proc"
	"github.com/codexmcp/codexmcp/codexserver/internal/sandbox"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/google/go-cmp/cmp"
)

func pool(t testing.TB) *proc.Pool {
	t.Helper()
	p := &proc.Pool{}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func TestHelper(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	// This one prints its arguments, and runs the command.
	helper := []string{"sh", "-c", `printf '%s %s\n' "$1" "$2"; shift 2; exec "$@"`, "helper"}
	s := sandbox.New(sandbox.Options{Helper: helper})
	policy := protocol.SandboxPolicy{Mode: protocol.SandboxWorkspaceWrite, NetworkAccess: true, ExcludeSlashTmp: true}
	c, err := s.Confine(policy, dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := pool(t).Run(t.Context(), proc.Spec{
		Argv: []string{"echo", "a b"}, Dir: dir, Env: []string{"PATH=/usr/bin:/bin"}, Confinement: c,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"cwd":"` + dir + `","mode":"workspace-write","network_access":true,"writable_roots":["` + dir + `"]} --` + "\na b\n"
	if diff := cmp.Diff(want, res.Stdout); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if c.Environ() != nil {
		t.Errorf("environment %q with network", c.Environ())
	}
	if err := c.Do(func() error { return nil }); !errors.Is(err, sandbox.ErrUnavailable) {
		t.Errorf("a function: %v", err)
	}
}

func TestUnavailable(t *testing.T) {
	for name, o := range map[string]sandbox.Options{
		"missing helper": {Helper: []string{"no-such-helper"}},
		"unknown tier":   {Tier: "strongest"},
	} {
		policy := protocol.SandboxPolicy{Mode: protocol.SandboxReadOnly}
		if _, err := sandbox.New(o).Confine(policy, "/", nil); !errors.Is(err, sandbox.ErrUnavailable) {
			t.Errorf("%s: %v", name, err)
		}
	}
	policy := protocol.SandboxPolicy{Mode: protocol.SandboxDangerFullAccess}
	if _, err := sandbox.New(sandbox.Options{}).Confine(policy, "/", nil); err == nil {
		t.Error("full access is confined")
	}
}
