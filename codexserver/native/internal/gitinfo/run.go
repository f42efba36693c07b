package gitinfo

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

// git runs git on the mirror with stdin and returns what it prints.
func (m *mirror) git(stdin string, args ...string) (string, error) {
	return m.run(m.root, stdin, args...)
}

// run runs git in a folder, without hooks, monitors, prompts or the network.
func (m *mirror) run(dir, stdin string, args ...string) (string, error) {
	name := args[0]
	args = append([]string{"-c", "core.fsmonitor=false", "-c", "core.hooksPath=" + os.DevNull}, args...)
	cmd := exec.CommandContext(m.ctx, m.program, args...)
	cmd.Dir = dir
	cmd.Env = append(slices.Clone(m.env),
		"GIT_DIR="+m.dir, "GIT_WORK_TREE="+m.root,
		"GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0", "GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=none", "GIT_NO_REPLACE_OBJECTS=1", "LC_ALL=C")
	cmd.WaitDelay = time.Second
	cmd.Stdin = strings.NewReader(stdin)
	out, errs := &boundedBuffer{max: maxOutput}, &boundedBuffer{max: 64 << 10}
	cmd.Stdout, cmd.Stderr = out, errs
	err := cmd.Run()
	if m.ctx.Err() != nil {
		return "", context.Cause(m.ctx)
	}
	var exit *exec.ExitError
	switch {
	case out.full:
		return "", fmt.Errorf("git %s prints more than %d MiB", name, maxOutput>>20)
	case errors.As(err, &exit):
		said, _, _ := strings.Cut(strings.TrimSpace(errs.String()), "\n")
		return "", fmt.Errorf("git %s: %w: %s", name, err, said)
	}
	return out.String(), err
}

// boundedBuffer keeps at most max bytes and refuses more.
type boundedBuffer struct {
	bytes.Buffer
	max  int
	full bool
}

// Write implements [io.Writer].
func (b *boundedBuffer) Write(p []byte) (int, error) {
	if b.Len()+len(p) > b.max {
		b.full = true
		return 0, errors.New("too much output")
	}
	return b.Buffer.Write(p)
}

// userSettings are the variables of git's that say where the user's own
// configuration is. All others of git's are left out.
var userSettings = []string{"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"}

// program returns the path of git and the environment to run it with. Programs
// below root, or among the temporary files, are not found: a repository can hold
// its own git. The user's configuration counts, for the filters of large files and
// what is ignored everywhere, unless it lies there too or is no regular file.
func program(root string, environ []string) (path string, env []string, err error) {
	var bounds []string
	for _, dir := range []string{root, os.TempDir(), "/tmp"} {
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
		return "", nil, fmt.Errorf("git: %w", exec.ErrNotFound)
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
	return path, env, nil
}

// special reports whether a file is something that git could wait for, or read
// without end.
func special(file string) bool {
	info, err := os.Stat(file)
	return err == nil && !info.Mode().IsRegular() && !info.IsDir()
}
