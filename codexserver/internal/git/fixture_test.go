package git_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/memdir"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// fixture is a working tree with the bare repository ../o.git next to it.
type fixture struct {
	t   testing.TB
	dir string
}

func newRepo(t testing.TB) *fixture {
	r := &fixture{t, filepath.Join(t.TempDir(), "w")}
	must.OK(t, os.Mkdir(r.dir, 0o755))
	r.git("init", "-q", "-b", "main", "--template=")
	return r
}

// copies returns copies of the repository and of the one next to it, for the rows of a table. To their
// indexes all files may have changed, so git reads them again.
func (r *fixture) copies(t testing.TB, n int) []*fixture {
	t.Helper()
	all := make([]*fixture, n)
	for i := range all {
		all[i] = &fixture{t, filepath.Join(t.TempDir(), "w")}
		must.OK(t, os.CopyFS(filepath.Dir(all[i].dir), os.DirFS(filepath.Dir(r.dir))))
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

func (r *fixture) shell(script string) {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), "sh", "-ec", script)
	cmd.Dir = r.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		r.t.Fatalf("%s: %v: %s", script, err, out)
	}
}

func (r *fixture) write(name, text string) {
	r.t.Helper()
	path := filepath.Join(r.dir, filepath.FromSlash(name))
	must.OK(r.t, os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644))
}

// age makes a file older, by its time.
func (r *fixture) age(name string, by time.Duration) {
	r.t.Helper()
	then := time.Now().Add(-by)
	must.OK(r.t, os.Chtimes(filepath.Join(r.dir, name), then, then))
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

// scratch is where git works. Programs in the folders for temporary files count as any others.
func scratch(t testing.TB) git.Scratch {
	return git.Scratch{Dir: t.TempDir(), Programs: &box.Programs{Temporary: []string{}}}
}

func (r *fixture) review(target protocol.ReviewTarget, revision string) (*git.Changes, error) {
	return git.Review(r.t.Context(), r.dir, scratch(r.t), target, revision, nil)
}

// setting is a line of a configuration.
type setting struct{ key, value string }

// configure adds lines to a configuration, as git config would, which is a process for each.
func configure(t testing.TB, file string, settings ...setting) {
	t.Helper()
	var text strings.Builder
	for _, s := range settings {
		at, end := strings.Index(s.key, "."), strings.LastIndex(s.key, ".")
		section := s.key[:at]
		if at < end {
			section += fmt.Sprintf(" %q", s.key[at+1:end])
		}
		value := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s.value)
		if strings.ContainsAny(value, ";#") {
			value = `"` + value + `"`
		}
		fmt.Fprintf(&text, "[%s]\n\t%s = %s\n", section, s.key[end+1:], value)
	}
	f := must.Get(os.OpenFile(file, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644))(t)
	_, err := f.WriteString(text.String())
	must.OK(t, err, f.Close())
}

func all(value string, keys ...string) []setting {
	settings := make([]setting, len(keys))
	for i, key := range keys {
		settings[i] = setting{key, value}
	}
	return settings
}

func TestMain(m *testing.M) {
	box.Main() // this may be a launcher
	os.Exit(memdir.Run(m, isolated()...))
}

// isolated makes git read only the repository's configuration, for all tests. A process that git would
// start after each commit and push, to look whether there is something to clean up, is not started.
func isolated() []string {
	env := []string{
		"HOME=/nonexistent", "XDG_CONFIG_HOME=/nonexistent/.config",
		"GIT_AUTHOR_NAME=somebody", "GIT_AUTHOR_EMAIL=somebody@example.com",
		"GIT_COMMITTER_NAME=somebody", "GIT_COMMITTER_EMAIL=somebody@example.com", "GIT_CONFIG_COUNT=2",
	}
	for i, key := range []string{"maintenance.auto", "receive.autogc"} {
		env = append(env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i, key), fmt.Sprintf("GIT_CONFIG_VALUE_%d=false", i))
	}
	return env
}

// hashIn returns the hash of a new commit, as git commit prints it.
func hashIn(out string) string { return regexp.MustCompile("[0-9a-f]{40,64}").FindString(out) }

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
