// Package git runs git without anything that a repository configures: no hook, filter,
// monitor, alias or other program, no network, and no prompts.
//
// It reads a repository's own files as data. What git itself is run on is a git folder
// that its caller has made, with a [Configuration] of ours and the repository's objects
// by reference.
package git

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// maxOutput bounds what git prints.
const maxOutput = 64 << 20

// Program is a git, with the environment to run it in. See [Find].
type Program struct {
	// Path is absolute.
	Path string
	// Env has no variable of git's but those that say where the user's own
	// configuration is.
	Env []string
}

// Call is what a git is run on.
type Call struct {
	// Dir is where it runs.
	Dir string
	// GitDir and WorkTree are the repository's folders, given to git explicitly so
	// that it looks for none.
	GitDir, WorkTree string
	// Env is added to the environment.
	Env []string
	// Options stand before the command, such as "-c" and a setting.
	Options []string
	// Stdin is what it reads.
	Stdin string
	// Cut bounds what it prints: the rest is cut off. Without it, too much is an
	// error.
	Cut int
}

// Run runs git and returns what it prints. Git runs no hook and no monitor, prompts for
// nothing and uses no network.
func (p Program) Run(ctx context.Context, c Call, args ...string) (string, error) {
	name := args[0]
	args = slices.Concat([]string{"-c", "core.fsmonitor=false", "-c", "core.hooksPath=" + os.DevNull}, c.Options, args)
	cmd := exec.CommandContext(ctx, p.Path, args...)
	cmd.Dir = c.Dir
	cmd.Env = append(slices.Clone(p.Env),
		"GIT_DIR="+c.GitDir, "GIT_WORK_TREE="+c.WorkTree,
		"GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0", "GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=none", "GIT_NO_REPLACE_OBJECTS=1", "LC_ALL=C")
	cmd.Env = append(cmd.Env, c.Env...)
	cmd.WaitDelay = time.Second
	cmd.Stdin = strings.NewReader(c.Stdin)
	out, errs := &boundedBuffer{max: cmp.Or(c.Cut, maxOutput)}, &boundedBuffer{max: 64 << 10}
	cmd.Stdout, cmd.Stderr = out, errs
	err := cmd.Run()
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	var exit *exec.ExitError
	switch {
	case out.full && c.Cut > 0:
		return out.String(), nil
	case out.full:
		return "", fmt.Errorf("git %s prints more than %d MiB", name, maxOutput>>20)
	case errors.As(err, &exit):
		said, _, _ := strings.Cut(strings.TrimSpace(errs.String()), "\n")
		return "", fmt.Errorf("git %s: %w: %s", name, err, said)
	}
	return out.String(), err
}

// boundedBuffer keeps at most max bytes and refuses more. It embeds no buffer:
// that one's ReadFrom would take all there is.
type boundedBuffer struct {
	kept bytes.Buffer
	max  int
	full bool
}

// Write implements [io.Writer].
func (b *boundedBuffer) Write(p []byte) (int, error) {
	if left := b.max - b.kept.Len(); len(p) > left {
		b.full = true
		n, _ := b.kept.Write(p[:left])
		return n, errors.New("too much output")
	}
	return b.kept.Write(p)
}

// String returns what was kept.
func (b *boundedBuffer) String() string { return b.kept.String() }

// userSettings are the variables of git's that say where the user's own
// configuration is. All others of git's are left out.
var userSettings = []string{"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"}

// Find returns git for working trees. Programs below their roots, or among the temporary
// files, are not found: a repository can hold its own git. The user's configuration
// counts, for the filters of large files and what is ignored everywhere, unless it lies
// there too or is not a regular file.
func Find(environ []string, roots ...string) (Program, error) {
	var path string
	var env []string
	var bounds []string
	for _, dir := range append(slices.Clone(roots), os.TempDir(), "/tmp") {
		if real, err := filepath.EvalSymlinks(dir); err == nil && real != filepath.Dir(real) {
			bounds = append(bounds, real)
		}
	}
	inside := func(path string) bool {
		if target, err := filepath.EvalSymlinks(path); err == nil {
			path = target
		}
		return slices.ContainsFunc(bounds, func(bound string) bool {
			rel, err := filepath.Rel(bound, path)
			return err == nil && filepath.IsLocal(rel)
		})
	}
	variables := map[string]string{}
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if runtime.GOOS == "windows" {
			name = strings.ToUpper(name)
		}
		if strings.HasPrefix(name, "GIT_") && !slices.Contains(userSettings, name) {
			continue
		}
		variables[name] = value
		if name != "PATH" && name != "LC_ALL" {
			env = append(env, entry)
		}
	}
	var folders []string
	for _, dir := range filepath.SplitList(variables["PATH"]) {
		if !filepath.IsAbs(dir) || inside(dir) {
			continue
		}
		folders = append(folders, dir)
		if path != "" {
			continue
		}
		if found, err := exec.LookPath(filepath.Join(dir, "git")); err == nil && !inside(found) {
			path = found
		}
	}
	if path == "" {
		return Program{}, fmt.Errorf("git: %w", exec.ErrNotFound)
	}
	env = append(env, "PATH="+strings.Join(folders, string(filepath.ListSeparator)))
	home, xdg := cmp.Or(variables["HOME"], variables["USERPROFILE"]), variables["XDG_CONFIG_HOME"]
	if xdg == "" {
		xdg = filepath.Join(home, ".config")
	}
	files := []string{filepath.Join(home, ".gitconfig"), filepath.Join(xdg, "git", "config")}
	if file, ok := variables["GIT_CONFIG_GLOBAL"]; ok {
		files = []string{file}
	}
	if slices.ContainsFunc(files, func(file string) bool { return !filepath.IsAbs(file) || inside(file) || special(file) }) {
		env = append(env, "GIT_CONFIG_GLOBAL="+os.DevNull)
	}
	return Program{Path: path, Env: env}, nil
}

// special reports whether a file is something that git could wait for, or read
// without end.
func special(file string) bool {
	info, err := os.Stat(file)
	return err == nil && !info.Mode().IsRegular() && !info.IsDir()
}
