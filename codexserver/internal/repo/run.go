package repo

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

	"github.com/codexmcp/codexmcp/codexserver/internal/sandbox"
)

// maxOutput is how many bytes git may print.
const maxOutput = 64 << 20

// Scratch says where git works for the server, and keeps it from programs that commands
// have written.
type Scratch struct {
	// Dir is a folder for temporary files. It is created if it is missing. Only trusted
	// programs may write to it.
	Dir string
	// Programs finds git. By default no folders count as writable by commands, except those
	// of each call and those for temporary files.
	Programs *sandbox.Programs
}

// program is git and its environment. See [Scratch.find].
type program struct {
	path string // absolute
	env  []string

	programs *sandbox.Programs
	confine  func(writes ...string) (*sandbox.Confinement, error)
}

// call is a call of git.
type call struct {
	// gitDir and tree are the repository's folders. Git does not search for others, unless it
	// finds them. It runs in dir.
	dir, gitDir, tree string
	finds             bool     // git finds the repository whose top is dir, and reads its configuration
	index             string   // instead of the git folder's
	writes            []string // the folders in which git writes
	env               []string // added to the environment
	options           []string // before the command, such as "-c" and a setting
	stdin             string
	cut               int // how many bytes of the output to return; 0 is up to 64 MiB, or an error
}

// withoutUser is the environment that keeps git from reading the user's and the system's
// configuration.
var withoutUser = []string{"GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_CONFIG_SYSTEM=" + os.DevNull, "GIT_CONFIG_NOSYSTEM=1"}

// run runs git and returns what it prints. Git runs no hook and no monitor, does not
// prompt and does not use the network. It runs in a sandbox, because the user's
// configuration may name programs, and may include files that commands can write. Without
// a sandbox on this system, git does not read that configuration, and does not run where it
// would read the repository's.
//
// The error is a [*sandbox.ProgramError] if a command could have written git.
func (p program) run(ctx context.Context, c call, args ...string) (string, error) {
	name := args[0]
	args = slices.Concat([]string{"-c", "core.fsmonitor=false", "-c", "core.hooksPath=" + os.DevNull}, c.options, args)
	cmd := exec.CommandContext(ctx, p.path, args...)
	cmd.Dir = c.dir
	cmd.Env = append(slices.Clone(p.env),
		"GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0", "GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=none", "GIT_NO_REPLACE_OBJECTS=1",
		"GIT_LITERAL_PATHSPECS=1", "GIT_EDITOR=false", "GIT_PAGER=cat", "LC_ALL=C")
	if c.finds {
		cmd.Env = append(cmd.Env, "GIT_CEILING_DIRECTORIES="+filepath.Dir(c.dir))
	} else {
		cmd.Env = append(cmd.Env, "GIT_DIR="+c.gitDir, "GIT_WORK_TREE="+c.tree)
	}
	start := cmd.Start
	switch confined, err := p.confine(c.writes...); {
	case errors.Is(err, sandbox.ErrUnavailable) && !c.finds:
		cmd.Env = append(cmd.Env, withoutUser...)
	case err != nil:
		return "", fmt.Errorf("git %s: %w", name, err)
	default:
		start = func() error { return confined.Start(cmd) }
	}
	cmd.Env = append(cmd.Env, c.env...)
	if c.index != "" {
		cmd.Env = append(cmd.Env, "GIT_INDEX_FILE="+c.index)
	}
	cmd.WaitDelay = time.Second
	cmd.Stdin = strings.NewReader(c.stdin)
	out, errs := &boundedBuffer{max: cmp.Or(c.cut, maxOutput)}, &boundedBuffer{max: 64 << 10}
	cmd.Stdout, cmd.Stderr = out, errs
	err := p.programs.Start(cmd, start)
	if err == nil {
		err = cmd.Wait()
	}
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	var exit *exec.ExitError
	switch {
	case out.full && c.cut > 0:
		return out.String(), nil
	case out.full:
		return "", fmt.Errorf("git %s prints more than %d MiB", name, maxOutput>>20)
	case errors.As(err, &exit):
		said, _, _ := strings.Cut(strings.TrimSpace(errs.String()), "\n")
		return "", fmt.Errorf("git %s: %w: %s", name, err, said)
	}
	return out.String(), err
}

// boundedBuffer keeps at most max bytes and refuses more. It does not embed the buffer,
// whose ReadFrom has no limit.
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

// userSettings are the variables of git that name the user's own configuration. Git gets
// no other variables of its own.
var userSettings = []string{"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"}

// find returns git for the working trees at roots. It ignores programs in the roots, in
// folders that commands can write and in those for temporary files, because git could come
// from the repository or from a command. Git reads the user's configuration, for the
// filters of large files and for global ignore patterns, unless that lies in such a folder
// too or is not a regular file.
func (s Scratch) find(environ []string, roots ...string) (program, error) {
	programs := s.Programs
	if programs == nil {
		programs = &sandbox.Programs{}
	}
	programs.Given(roots...)
	var env []string
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
	search := programs.Path(variables["PATH"])
	path, err := programs.Find("git", "", variables["PATH"])
	if err != nil {
		return program{}, fmt.Errorf("git: %w", err)
	}
	env = append(env, "PATH="+search)
	home, xdg := cmp.Or(variables["HOME"], variables["USERPROFILE"]), variables["XDG_CONFIG_HOME"]
	if xdg == "" {
		xdg = filepath.Join(home, ".config")
	}
	files := []string{filepath.Join(home, ".gitconfig"), filepath.Join(xdg, "git", "config")}
	if file, ok := variables["GIT_CONFIG_GLOBAL"]; ok {
		files = []string{file}
	}
	if slices.ContainsFunc(files, func(file string) bool {
		return !filepath.IsAbs(file) || special(file) || programs.Writable(present(file))
	}) {
		env = append(env, "GIT_CONFIG_GLOBAL="+os.DevNull)
	}
	return program{path: path, env: env, programs: programs, confine: programs.Confine}, nil
}

// present returns the file, or the nearest folder above that exists.
func present(file string) string {
	for {
		if _, err := os.Lstat(file); err == nil || filepath.Dir(file) == file {
			return file
		}
		file = filepath.Dir(file)
	}
}

// special reports whether git could block on reading a file, or read it without end.
func special(file string) bool {
	info, err := os.Stat(file)
	return err == nil && !info.Mode().IsRegular() && !info.IsDir()
}

// silent reports whether the configuration of the user and of the system certainly has none of the
// words, and includes no other file.
func (p program) silent(words ...string) bool {
	if runtime.GOOS != "linux" { // the system's file may be anywhere
		return false
	}
	set := map[string]string{}
	for _, entry := range p.env {
		name, value, _ := strings.Cut(entry, "=")
		set[name] = value
	}
	home := set["HOME"]
	files := []string{filepath.Join(home, ".gitconfig"), filepath.Join(cmp.Or(set["XDG_CONFIG_HOME"], filepath.Join(home, ".config")), "git", "config")}
	if file, ok := set["GIT_CONFIG_GLOBAL"]; ok {
		files = []string{file}
	}
	if file, ok := set["GIT_CONFIG_SYSTEM"]; ok {
		files = append(files, file)
	} else {
		files = append(files, p.system("gitconfig")...)
	}
	words = append(words, "include")
	for _, file := range files {
		if file == os.DevNull {
			continue
		}
		data, err := readConfig(file)
		text := strings.ToLower(string(data))
		if err != nil || slices.ContainsFunc(words, func(word string) bool { return strings.Contains(text, word) }) {
			return false
		}
	}
	return true
}

// system returns where a file of the system for all repositories may be.
func (p program) system(name string) []string {
	files := []string{filepath.Join("/etc", name)}
	for _, path := range []string{p.path, realPath(p.path)} {
		files = append(files, filepath.Join(filepath.Dir(filepath.Dir(path)), "etc", name))
	}
	return files
}

// realPath returns a path without links, or as it is.
func realPath(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}
