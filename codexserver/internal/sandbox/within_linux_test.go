package sandbox_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/proc"
	"github.com/codexmcp/codexmcp/codexserver/internal/sandbox"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// TestRootWithinAProtectedFolder checks that a root in a protected folder is writable,
// and nothing else there.
func TestRootWithinAProtectedFolder(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	home, main := filepath.Join(top, "home"), filepath.Join(top, "main")
	root := filepath.Join(home, "trees", "one")
	sub, dot := filepath.Join(root, "sub"), filepath.Join(root, ".git")
	for _, dir := range []string{sub, dot, main} {
		if err := os.MkdirAll(dir, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	s := sandbox.New(sandbox.Options{Protected: []string{home, dot, main}, Private: []string{home}, Named: []string{root, sub}})
	c, err := s.Confine(protocol.SandboxPolicy{
		Mode: protocol.SandboxWorkspaceWrite, WritableRoots: []string{root}, ExcludeSlashTmp: true, ExcludeTmpdirEnvVar: true,
	}, sub, nil)
	if err != nil {
		t.Fatal(err)
	}
	if notes := c.Notes(); len(notes) > 0 {
		t.Errorf("notes %q", notes)
	}
	script := "for f in " + home + " " + filepath.Dir(root) + " " + root + " " + sub + " " + main + " " + dot + "; do if (echo x > $f/new) 2>/dev/null; then echo $f; fi; done"
	res, err := pool(t).Run(t.Context(), proc.Spec{
		Argv: []string{"sh", "-c", script}, Dir: sub, Env: []string{"PATH=/usr/bin:/bin"}, Confinement: c,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := root + "\n" + sub + "\n" + dot + "\n"; res.Stdout != want {
		t.Errorf("written in\n%swant\n%s%s", res.Stdout, want, res.Stderr)
	}
}
