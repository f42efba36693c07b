package repo

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
)

// constants are the settings of our git folder that do not depend on the
// repository.
const constants = `[core]
	protectHFS = true
	protectNTFS = true
	logAllRefUpdates = false
	attributesFile = ` + os.DevNull + `
	pager = cat
	safecrlf = false
[gc]
	auto = 0
[maintenance]
	auto = false
[submodule]
	recurse = false
[commit]
	gpgSign = false
`

// makeGitFolder makes the git folder that git runs on. It has a configuration of this
// package and the repository's objects by reference.
func makeGitFolder(ctx context.Context, dir string, r *repository) error {
	for _, sub := range []string{"refs", "info", filepath.Join("objects", "info"), filepath.Join("objects", "pack")} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			return err
		}
	}
	settings := map[string]string{}
	for _, key := range []string{"core.autocrlf", "core.eol"} {
		settings[key] = userSetting(ctx, r.program, dir, key)
	}
	maps.Copy(settings, r.settings)
	excludes := userSetting(ctx, r.program, dir, "core.excludesFile")
	if info, err := os.Stat(excludes); err != nil || !info.Mode().IsRegular() || !isPlain(excludes) {
		excludes = os.DevNull
		if xdg := defaultExcludes(); xdg != "" {
			excludes = xdg
		}
	}
	text := Configuration(settings) + constants + "[core]\n\texcludesFile = " + Quote(excludes) + "\n"
	files := map[string]string{
		"HEAD":                    r.head + "\n",
		"config":                  text,
		"objects/info/alternates": Quote(filepath.Join(r.commonDir, "objects")) + "\n",
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, filepath.FromSlash(name)), []byte(text), 0o600); err != nil {
			return err
		}
	}
	for _, name := range []string{"shallow", filepath.Join("info", "exclude"), filepath.Join("info", "attributes")} {
		if err := CopyFile(dir, r.commonDir, name, 1<<20); err != nil {
			return err
		}
	}
	return nil
}

// userSetting returns a value of the user's own configuration, or "".
func userSetting(ctx context.Context, program Program, dir, key string) string {
	args := []string{"config", "--includes", "--get", key}
	if key == "core.excludesFile" {
		args = []string{"config", "--includes", "--type=path", "--get", key}
	}
	out, err := program.Run(ctx, Call{Dir: dir, GitDir: os.DevNull, WorkTree: dir}, args...)
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(out, "\n")
}

// defaultExcludes returns git's default file of the user's global ignore patterns, or "".
func defaultExcludes() string {
	dir, err := os.UserConfigDir()
	if err != nil {
		return ""
	}
	path := filepath.Join(dir, "git", "ignore")
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() || !isPlain(path) {
		return ""
	}
	return path
}

// call is a call of git.
type call struct {
	tree  string // the working tree; "" is the worktree
	index string
	stdin string
	cut   int
	env   []string
	// writes are folders in which git may write, besides the worktree's folder of files of
	// its own.
	writes []string
}

// git runs git on our git folder. Git does not read the user's configuration, because
// makeGitFolder has copied the needed settings.
func (w *Worktree) git(ctx context.Context, c call, args ...string) (string, error) {
	if c.tree == "" {
		c.tree = w.record.Path
	}
	if c.index == "" {
		c.index = filepath.Join(w.folder(), "no-index")
	}
	own := w.gitFolder()
	env := append([]string{
		"GIT_INDEX_FILE=" + c.index, "GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_CONFIG_SYSTEM=" + os.DevNull, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_ATTR_NOSYSTEM=1", "GIT_LITERAL_PATHSPECS=1", "GIT_EDITOR=false", "GIT_PAGER=cat",
	}, c.env...)
	out, err := w.program.Run(ctx, Call{Dir: c.tree, Writes: append([]string{w.folder()}, c.writes...), GitDir: own, WorkTree: c.tree, Env: env, Stdin: c.stdin, Cut: c.cut}, args...)
	if err != nil {
		return "", fmt.Errorf("worktree: %w", err)
	}
	return out, nil
}

// line returns the first line that git prints.
func (w *Worktree) line(ctx context.Context, c call, args ...string) (string, error) {
	out, err := w.git(ctx, c, args...)
	first, _, _ := strings.Cut(out, "\n")
	return first, err
}

// folder has the record, gitFolder is the git folder that git runs on, and index has the
// worktree's content when it was last read.
func (w *Worktree) folder() string    { return w.store.recordFolder(w.record.ID) }
func (w *Worktree) gitFolder() string { return filepath.Join(w.folder(), "git") }
func (w *Worktree) index() string     { return filepath.Join(w.folder(), "index") }

// scratch makes a folder for the files of one call.
func (w *Worktree) scratch() (dir string, remove func(), err error) {
	dir, err = os.MkdirTemp(w.folder(), "tmp-*")
	return dir, func() { _ = os.RemoveAll(dir) }, err
}
