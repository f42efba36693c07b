package servertest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// Git runs git in a folder, with an author and without the configuration of the user and of the
// system, and returns what it prints.
func Git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	return must.Get(runGit(dir, args...))(t)
}

func runGit(dir string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1",
		"XDG_CONFIG_HOME="+os.DevNull,
		"GIT_AUTHOR_NAME=somebody", "GIT_AUTHOR_EMAIL=somebody@example.com", "GIT_COMMITTER_NAME=somebody",
		"GIT_COMMITTER_EMAIL=somebody@example.com")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("git %q: %w\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out)), nil
}

// Commit is a step in the making of a repository: files by name, on a branch.
type Commit struct {
	Branch string // of the commit before it; made if there is none
	Files  map[string]string
}

// Repository makes a repository of regular files in memory, for many copies by [os.CopyFS]: git makes it
// once. To the index of a copy all files may have changed, so git reads them again.
func Repository(commits ...Commit) (fs.FS, error) {
	dir, err := os.MkdirTemp("", "repository")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if _, err := runGit(dir, "init", "-q", "--template=", "-b", commits[0].Branch); err != nil {
		return nil, err
	}
	for i, c := range commits {
		if i > 0 && c.Branch != commits[i-1].Branch {
			if _, err := runGit(dir, "switch", "-q", "-c", c.Branch); err != nil {
				return nil, err
			}
		}
		for name, text := range c.Files {
			path := filepath.Join(dir, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755),
				os.WriteFile(path, []byte(text), 0o644)); err != nil {
				return nil, err
			}
		}
		for _, args := range [][]string{{"add", "-A"},
			{"-c", "maintenance.auto=false", "commit", "-q", "-m", fmt.Sprint("commit ", i)}} {
			if _, err := runGit(dir, args...); err != nil {
				return nil, err
			}
		}
	}
	kept := fstest.MapFS{}
	found := os.DirFS(dir)
	return kept, fs.WalkDir(found, ".", func(name string, d fs.DirEntry, err error) error {
		file := &fstest.MapFile{Mode: fs.ModeDir | 0o755}
		if err == nil && !d.IsDir() {
			file.Mode = 0o644
			file.Data, err = fs.ReadFile(found, name)
		}
		kept[name] = file
		return err
	})
}

// CodexHome returns a home of Codex with these lines of its configuration, and the model of a
// provider at a URL. $HOME is another folder, because commands would run the real one's profile.
func CodexHome(t testing.TB, url, configuration string) string {
	t.Helper()
	home := t.TempDir()
	t.Setenv("HOME", t.TempDir())
	must.OK(t, os.WriteFile(filepath.Join(home, "config.toml"), []byte(CodexConfig(url, configuration)), 0o600))
	return home
}

// CodexConfig returns a config.toml with these lines, and the model of a provider at a URL, which is asked once.
func CodexConfig(url, configuration string) string {
	return fmt.Sprintf(`
model = "mock-model"
model_provider = "mock"
%s
[model_providers.mock]
name = "mock"
base_url = %q
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
`, configuration, url)
}
