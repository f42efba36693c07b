package policy

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/internal/safefile"
)

// Self is the running program, which the server looks for among the configured MCP servers:
// most users' config.toml lists the server itself, because they added it there to try it
// out. No command starts a nil Self.
type Self struct {
	path string // without links
	name string
	file os.FileInfo
}

// NewSelf returns the program at path, or nil if there is none.
func NewSelf(path string) *Self {
	if path == "" {
		return nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	return &Self{path: path, name: filepath.Base(path), file: info}
}

// Command is a command from a configuration.
type Command struct {
	// Argv is the program and its arguments.
	Argv []string
	// Dir is the folder for relative paths.
	Dir string
	// Env are the command's variables. Only PATH and HOME are used.
	Env map[string]string
}

// StartedBy reports whether the command is the program or probably starts it: whether
// one of these is the program's file, a link to it, or a copy of it:
//
//   - the command's own name, as a path or in the PATH,
//   - a path anywhere in its arguments,
//   - the program's own name anywhere in its arguments,
//   - any name in the arguments of a launcher, such as env, sh -c or npx,
//   - any of these in a shell script that is started,
//   - a path that ends with the program's own name in such a script or in the
//     arguments of a launcher, as "$(dirname "$0")/codex-mcp".
//
// It is also true if such a path or name is in the arguments for another reason: to lose
// an MCP server is better than to start this one in an endless chain.
func (p *Self) StartedBy(c Command) bool {
	if p == nil || len(c.Argv) == 0 {
		return false
	}
	s := &search{program: p, command: c}
	s.path = append(filepath.SplitList(c.Env["PATH"]), filepath.SplitList(os.Getenv("PATH"))...)
	if s.home = c.Env["HOME"]; s.home == "" {
		s.home = os.Getenv("HOME")
	}
	if s.word(c.Argv[0], true) {
		return true
	}
	launches := slices.Contains(launchers, strings.TrimSuffix(filepath.Base(c.Argv[0]), ".exe"))
	return slices.ContainsFunc(c.Argv[1:], func(arg string) bool {
		return s.word(arg, launches) || s.text(arg, launches)
	})
}

// launchers are programs that start what their arguments name.
var launchers = []string{
	"ash", "bash", "bunx", "busybox", "cmd", "command", "dash", "doas", "env", "exec", "fish", "ionice", "ksh", "mise",
	"nice", "nohup", "npm", "npx", "pnpm", "powershell", "pwsh", "setsid", "sh", "stdbuf", "sudo", "timeout", "uvx",
	"xargs", "yarn", "zsh",
}

// search looks for a program in one command.
type search struct {
	program *Self
	command Command
	path    []string // folders
	home    string
	scripts int // read so far
	words   int // checked so far
}

// text checks the words of a script or of an argument.
func (s *search) text(text string, launched bool) bool {
	words := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t\r\n;|&()<>{}\"'`=,", r) })
	return slices.ContainsFunc(words, func(w string) bool {
		return s.word(w, launched) || launched && strings.HasSuffix(w, "/"+s.program.name)
	})
}

// word checks one name or path. A bare name counts only if it is a command's name or the
// program's own.
func (s *search) word(w string, command bool) bool {
	if s.words++; w == "" || len(w) > maxWord || s.words > maxChecked {
		return false
	}
	if after, ok := strings.CutPrefix(w, "~/"); ok {
		w = filepath.Join(s.home, after)
	}
	w = strings.NewReplacer("${HOME}", s.home, "$HOME", s.home).Replace(w)
	if strings.ContainsRune(w, '/') || strings.ContainsRune(w, filepath.Separator) {
		if !filepath.IsAbs(w) {
			w = filepath.Join(s.command.Dir, w)
		}
		return s.file(w, command)
	}
	if !command && w != s.program.name && w+".exe" != s.program.name {
		return false
	}
	return slices.ContainsFunc(s.path, func(folder string) bool { return s.file(filepath.Join(folder, w), command) })
}

// Limits for one command, which an untrusted project may have written.
const (
	maxWord       = 4096
	maxChecked    = 4096
	maxScriptText = 64 << 10
	maxScripts    = 8
)

// file checks whether a file is the program, or a script that starts it.
func (s *search) file(path string, command bool) bool {
	info, err := os.Stat(path)
	if err != nil && runtime.GOOS == "windows" {
		path += ".exe"
		info, err = os.Stat(path)
	}
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	if os.SameFile(info, s.program.file) {
		return true
	}
	// The program's file may have been replaced since it started.
	if real, err := filepath.EvalSymlinks(path); err == nil && real == s.program.path {
		return true
	}
	if info.Size() == s.program.file.Size() && s.program.sameContent(path) {
		return true
	}
	if !command || s.scripts == maxScripts {
		return false
	}
	s.scripts++
	return s.text(script(path), true)
}

// sameContent reports whether the file at path has the program's bytes.
func (p *Self) sameContent(path string) bool {
	mine, err := safefile.Open(p.path)
	if err != nil {
		return false
	}
	defer mine.Close()
	other, err := safefile.Open(path)
	if err != nil {
		return false
	}
	defer other.Close()
	a, b := make([]byte, 64<<10), make([]byte, 64<<10)
	for {
		n, err := io.ReadFull(mine, a)
		m, _ := io.ReadFull(other, b)
		if !bytes.Equal(a[:n], b[:m]) {
			return false
		}
		if err != nil {
			return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		}
	}
}

// script returns the text of a shell script without its comments, or "" for any other
// file.
func script(path string) string {
	f, err := safefile.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxScriptText))
	if err != nil {
		return ""
	}
	first, rest, _ := strings.Cut(string(text), "\n")
	interpreter := strings.Fields(strings.TrimPrefix(first, "#!"))
	if !strings.HasPrefix(first, "#!") || !slices.ContainsFunc(interpreter, func(w string) bool { return strings.HasSuffix(filepath.Base(w), "sh") }) {
		return ""
	}
	var lines []string
	for line := range strings.Lines(rest) {
		if !strings.HasPrefix(strings.TrimSpace(line), "#") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}
