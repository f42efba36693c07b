package repo_test

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/repo"
	"github.com/google/go-cmp/cmp"
)

// bench is a repository with a store next to it.
type bench struct {
	t     testing.TB
	dir   string
	store repo.Store
}

func newBench(t testing.TB) *bench {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t, filepath.Join(top, "repo"), repo.StoreIn(filepath.Join(top, "home"))}
	repo.MakeRepo(t, b.dir)
	return b
}

// in returns the bench for a row of a table.
func (b *bench) in(t testing.TB) *bench { return &bench{t, b.dir, b.store} }

// copied returns a bench with a copy of the repository, without its store. The index does not know
// the files of the copy, so git reads them again.
func (b *bench) copied(t testing.TB) *bench {
	t.Helper()
	c := newBench(t)
	c.must(os.RemoveAll(c.dir))
	c.must(os.CopyFS(c.dir, os.DirFS(b.dir)))
	return c
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
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err == nil {
		_, err = f.WriteString(text.String())
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// all returns settings of one value.
func all(value string, keys ...string) []setting {
	settings := make([]setting, len(keys))
	for i, key := range keys {
		settings[i] = setting{key, value}
	}
	return settings
}

// isolate makes git read only the repository's configuration, for all tests. A process that git would
// start after each commit and push, to look whether there is something to clean up, is not started.
func isolate() error {
	const home = "/nonexistent"
	env := map[string]string{
		"HOME": home, "XDG_CONFIG_HOME": filepath.Join(home, ".config"), "GIT_CONFIG_GLOBAL": os.DevNull, "GIT_CONFIG_NOSYSTEM": "1",
		"GIT_AUTHOR_NAME": "somebody", "GIT_AUTHOR_EMAIL": "somebody@example.com",
		"GIT_COMMITTER_NAME": "somebody", "GIT_COMMITTER_EMAIL": "somebody@example.com",
		"GIT_CONFIG_COUNT": "2",
	}
	for i, key := range []string{"maintenance.auto", "receive.autogc"} {
		env[fmt.Sprint("GIT_CONFIG_KEY_", i)], env[fmt.Sprint("GIT_CONFIG_VALUE_", i)] = key, "false"
	}
	var err error
	for name, value := range env {
		err = errors.Join(err, os.Setenv(name, value))
	}
	return err
}

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) git(args ...string) string {
	b.t.Helper()
	return b.gitIn(b.dir, args...)
}

func (b *bench) gitIn(dir string, args ...string) string {
	b.t.Helper()
	cmd := exec.CommandContext(b.t.Context(), "git", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		b.t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (b *bench) configure(settings ...setting) {
	b.t.Helper()
	configure(b.t, filepath.Join(b.dir, ".git", "config"), settings...)
}

func (b *bench) commit(files map[string]string) string {
	b.t.Helper()
	lay(b.t, b.dir, files)
	b.git("add", "-A")
	return hashIn(b.git("-c", "core.abbrev=no", "commit", "--allow-empty", "-m", "x"))
}

// hashIn returns the hash of a new commit, as git commit prints it.
func hashIn(out string) string {
	return regexp.MustCompile("[0-9a-f]{40,64}").FindString(out)
}

// lay writes files, after removing others: a value is a content, "-" to remove, "+x" for
// the mode, or "> to" for a symbolic link.
func lay(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if files[name] == "-" {
			if err := os.RemoveAll(filepath.Join(dir, filepath.FromSlash(name))); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if files[name] != "-" {
			if err := layFile(filepath.Join(dir, filepath.FromSlash(name)), files[name]); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func layFile(path, content string) error {
	if rest, runs := strings.CutPrefix(content, "+x"); runs { // it gets the rest as its content, or keeps its own
		if rest != "" {
			if err := layFile(path, rest); err != nil {
				return err
			}
		}
		return os.Chmod(path, 0o755)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	to, isLink := strings.CutPrefix(content, "> ")
	if info, err := os.Lstat(path); err == nil && (isLink || !info.Mode().IsRegular()) {
		if err := os.Remove(path); err != nil { // a link, or an empty folder
			return err
		}
	}
	if isLink {
		return os.Symlink(to, path)
	}
	return os.WriteFile(path, []byte(content), 0o644)
}

func (b *bench) create(o repo.CreateOptions) *repo.Worktree {
	b.t.Helper()
	if o.Cwd == "" {
		o.Cwd = b.dir
	}
	w, skipped, err := b.store.Create(b.t.Context(), o)
	if err != nil {
		b.t.Fatal(err)
	}
	if len(skipped) > 0 {
		b.t.Fatalf("skipped: %v", skipped)
	}
	return w
}

func (b *bench) plan(w *repo.Worktree) *repo.Plan {
	b.t.Helper()
	p, err := w.Plan(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	return p
}

// tree returns mode and content of all files in a folder by path, without the folder
// worktrees of a git folder.
func tree(t testing.TB, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if name == filepath.Join(".git", "worktrees") {
			return filepath.SkipDir
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		content := ""
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			content, err = os.Readlink(path)
		case info.Mode().IsRegular():
			var data []byte
			data, err = os.ReadFile(path)
			content = string(data)
		}
		found[filepath.ToSlash(name)] = fmt.Sprintf("%v %q", info.Mode(), content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func same(t testing.TB, what string, want, got map[string]string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got)\n%s", what, diff)
	}
}

// files returns the content of a working tree, with links and modes as in lay.
func files(t testing.TB, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.Name() == ".git" && filepath.Dir(path) == dir {
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		name, err := filepath.Rel(dir, path)
		if err != nil || d.IsDir() {
			return err
		}
		name = filepath.ToSlash(name)
		if d.Type()&fs.ModeSymlink != 0 {
			to, err := os.Readlink(path)
			found[name] = "> " + to
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		found[name] = string(data)
		if info, err := d.Info(); err == nil && info.Mode()&0o111 != 0 {
			found[name] = "+x" + found[name]
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
