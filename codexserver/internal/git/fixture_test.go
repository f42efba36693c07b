package git_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// fixture is a working tree with the bare repository ../o.git next to it.
type fixture struct {
	t   testing.TB
	dir string
}

func newRepo(t testing.TB) *fixture {
	r := &fixture{t, filepath.Join(t.TempDir(), "w")}
	git.MakeRepo(t, r.dir)
	return r
}

// copies returns copies of the repository and of the one next to it, for the rows of a table. To their
// indexes all files may have changed, so git reads them again.
func (r *fixture) copies(t testing.TB, n int) []*fixture {
	t.Helper()
	all := make([]*fixture, n)
	for i := range all {
		all[i] = &fixture{t, filepath.Join(t.TempDir(), "w")}
		if err := os.CopyFS(filepath.Dir(all[i].dir), os.DirFS(filepath.Dir(r.dir))); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// in returns the repository for a row of a table.
func (r *fixture) in(t testing.TB) *fixture { return &fixture{t, r.dir} }

func (r *fixture) git(args ...string) string {
	r.t.Helper()
	out, err := r.try(args...)
	if err != nil {
		r.t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return out
}

func (r *fixture) try(args ...string) (string, error) {
	cmd := exec.CommandContext(r.t.Context(), "git", args...)
	cmd.Dir = r.dir
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func (r *fixture) write(name, text string) {
	r.t.Helper()
	path := filepath.Join(r.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

func (r *fixture) configure(settings ...setting) {
	r.t.Helper()
	configure(r.t, filepath.Join(r.dir, ".git", "config"), settings...)
}

func (r *fixture) commit(message string) string {
	r.t.Helper()
	r.git("add", "-A")
	return hashIn(r.git("-c", "core.abbrev=no", "commit", "-m", message))
}

func (r *fixture) push() {
	r.t.Helper()
	if !exists(filepath.Join(r.dir, "../o.git")) {
		r.git("init", "-q", "--bare", "--template=", "../o.git")
	}
	r.git("remote", "add", "origin", "../o.git")
	r.git("push", "-q", "origin", "main")
}

// uncommitted returns the diff of the uncommitted changes of the repository that contains dir.
func uncommitted(t testing.TB, dir string, scratch git.Scratch) (string, error) {
	t.Helper()
	c, err := git.Review(t.Context(), dir, scratch, protocol.ReviewUncommitted, "")
	if err != nil {
		return "", err
	}
	return c.Diff, nil
}
