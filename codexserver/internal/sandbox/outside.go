package sandbox

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/internal/policy"
)

// Outside returns how a command runs outside the sandbox by a rule, so that nobody looks at it: it starts
// only programs that no command can write, and has no variable that names a program or code. Also are
// further folders that commands can write. The program is an absolute path. A script of plain commands
// runs in its shell without a profile. The error says why the command must not run so.
func (p *Programs) Outside(argv []string, dir string, env []string, also ...string) (clean, environ []string, err error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	commands, plain := policy.Commands(argv)
	if !plain {
		return nil, nil, fmt.Errorf("it is more than plain commands")
	}
	s := starts{dir: dir, roots: p.roots(append(also, p.temporary()...)...)}
	s.path = slices.DeleteFunc(filepath.SplitList(value(env, "PATH")), func(folder string) bool {
		return !filepath.IsAbs(folder) || policy.LeadsThrough(folder, s.roots)
	})
	program, err := s.program(argv[0])
	if err != nil {
		return nil, nil, err
	}
	clean = append([]string{program}, argv[1:]...)
	if policy.LooksLikeShell(argv[0]) {
		clean[1] = "-c"
		for _, words := range commands {
			if err := s.inScript(words[0]); err != nil {
				return nil, nil, err
			}
		}
	}
	for _, entry := range env {
		if name, _, _ := strings.Cut(entry, "="); !NamesProgram(name) && !isNamed(name, "PATH") {
			environ = append(environ, entry)
		}
	}
	return clean, append(environ, "PATH="+strings.Join(s.path, string(filepath.ListSeparator))), nil
}

// starts finds what a command starts.
type starts struct {
	dir   string
	path  []string // folders that no command can write
	roots []os.FileInfo
	moved bool // a command of the script may have changed the folder
}

// program returns the path of a program. It fails for one that commands can write, also by its interpreter.
func (s *starts) program(name string) (string, error) {
	path, err := s.find(name)
	if err != nil {
		return "", err
	}
	words := policy.Interpreter(path)
	if len(words) == 0 {
		return path, nil
	}
	if _, err := s.find(words[0]); err != nil {
		return "", fmt.Errorf("the interpreter of %s: %w", path, err)
	}
	if filepath.Base(words[0]) != "env" {
		return path, nil
	}
	interpreter, ok := policy.EnvProgram(words)
	if !ok {
		return "", fmt.Errorf("%s is a script whose interpreter is not clear", path)
	}
	if _, err := s.find(interpreter); err != nil {
		return "", fmt.Errorf("the interpreter of %s: %w", path, err)
	}
	return path, nil
}

// find returns the first program with a name, as the system or a shell finds it.
func (s *starts) find(name string) (string, error) {
	all := []string{name}
	switch {
	case filepath.Base(name) == name:
		all = nil
		for _, folder := range s.path {
			all = append(all, filepath.Join(folder, name))
		}
	case !filepath.IsAbs(name):
		all[0] = s.dir + string(filepath.Separator) + name // not cleaned: .. leads up from the target of a link
	}
	for _, path := range all {
		found, err := exec.LookPath(path)
		switch {
		case err != nil:
		case policy.LeadsThrough(found, s.roots):
			return "", &ProgramError{found}
		default:
			return found, nil
		}
	}
	return "", &exec.Error{Name: name, Err: exec.ErrNotFound}
}

// inScript checks the program of a command of a script, which may be built into the shell.
func (s *starts) inScript(name string) error {
	named := filepath.Base(name) != name
	if s.moved && named && !filepath.IsAbs(name) {
		return fmt.Errorf("%s depends on the folder that an earlier command chose", name)
	}
	s.moved = s.moved || slices.Contains([]string{"cd", "pushd", "popd"}, name)
	if _, err := s.find(name); err != nil && !named {
		if _, planted := err.(*ProgramError); !planted { // the shell finds no other, or has it built in
			return nil
		}
	}
	_, err := s.program(name)
	return err
}

// NamesProgram reports whether a variable names a program, code, or where both are found.
func NamesProgram(variable string) bool {
	name := strings.ToUpper(variable)
	return slices.ContainsFunc(programVariables, func(pattern string) bool {
		if strings.HasPrefix(pattern, "*") {
			return strings.HasSuffix(name, pattern[1:])
		}
		prefix, open := strings.CutSuffix(pattern, "*")
		return name == pattern || open && strings.HasPrefix(name, prefix)
	}) && !strings.HasPrefix(name, "GIT_AUTHOR_") && !strings.HasPrefix(name, "GIT_COMMITTER_")
}

// programVariables are the variables that a command does not get which a rule lets run outside. A * stands
// for any rest. docs/reference/rules.md has the list.
var programVariables = []string{
	"*_ASKPASS", "*_BROWSER", "*_COMMAND", "*EDITOR", "*_JAVA_OPTIONS", "*PAGER", "*_SHELL", "*_WRAPPER", "BASH*",
	"BROWSER", "BUNDLE_*", "CARGO_*", "CC", "CDPATH", "CLASSPATH", "COMSPEC", "CXX", "DYLD_*", "ENV", "GCONV_PATH",
	"GEM_*", "GIT_*", "GLIBC_TUNABLES", "GOFLAGS", "GOROOT", "GOTOOLCHAIN", "IFS", "JAVA_TOOL_OPTIONS", "LD_*",
	"LESSCLOSE", "LESSOPEN", "LUA_*", "MAKEFLAGS", "NODE_*", "NPM_CONFIG_*", "PERL*", "PS0", "PS1", "PS2", "PS4",
	"PYTHON*", "RUBY*", "RUSTC*", "RUSTFLAGS", "SHELL", "SHELLOPTS", "SSH_ASKPASS*", "VISUAL", "ZDOTDIR",
}
