package box

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/codexmcp/codexmcp/codexserver/internal/run"
)

// Outside returns how a command runs outside the sandbox by a rule, so that nobody looks at it: it starts only programs
// that no command can write, and has no variable that names a program or code. Commands are argv itself, or those of
// the script of plain commands that argv runs in a shell, which then runs without a profile. Also are further folders
// that commands can write. The program is an absolute path. The error says why the command must not run so.
func (p *Programs) Outside(argv []string, commands [][]string, dir string, env []string, also ...string) (clean, environ []string, err error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	roots := p.roots(append(also, p.temporary()...)...)
	s := starts{dir, unwritable(run.Value(env, "PATH"), roots), roots}
	program, err := s.program(argv[0], maxScripts)
	if err != nil {
		return nil, nil, err
	}
	clean = append([]string{program}, argv[1:]...)
	if len(commands) != 1 || !slices.Equal(commands[0], argv) {
		if clean[1] = "-c"; filepath.Base(program) == "zsh" {
			clean[1] = "-fc" // else it reads .zshenv
		}
		if err := s.script(commands); err != nil {
			return nil, nil, err
		}
	}
	return clean, withPath(withoutVariables(env, NamesProgram), s.path), nil
}

// starts finds what a command starts.
type starts struct {
	dir   string
	path  []string      // the folders of the PATH
	roots []os.FileInfo // folders that commands can write
}

// program returns the path of a program that no command can write. Of its interpreters at most most may be scripts.
func (s *starts) program(name string, most int) (string, error) {
	found := programsNamed(name, s.dir, s.path)
	if len(found) == 0 {
		return "", &exec.Error{Name: name, Err: exec.ErrNotFound}
	}
	path := found[0]
	if leadsThrough(path, s.roots) {
		return "", &ProgramError{path}
	}
	by, searched, _, err := interpreterOf(path)
	if most == 0 && by != "" {
		return "", unclear(path)
	}
	for _, name := range []string{by, searched} {
		if err == nil && name != "" {
			if _, err = s.program(name, most-1); err != nil {
				err = fmt.Errorf("the interpreter of %s: %w", path, err)
			}
		}
	}
	return path, err
}

// script checks the programs of the commands of a script, which may be built into the shell.
func (s *starts) script(commands [][]string) error {
	moved := false // a command may have changed the folder
	for _, words := range commands {
		name := words[0]
		named := filepath.Base(name) != name
		if moved && named && !filepath.IsAbs(name) {
			return fmt.Errorf("%s depends on the folder that an earlier command chose", name)
		}
		moved = moved || slices.Contains([]string{"cd", "pushd", "popd"}, name)
		if !named && len(programsNamed(name, s.dir, s.path)) == 0 { // the shell finds no other, or has it built in
			continue
		}
		if _, err := s.program(name, maxScripts); err != nil {
			return err
		}
	}
	return nil
}

// programsNamed returns the programs with a name in the order in which the folders have them, or the one that a
// path names. Its dir is not cleaned away: .. leads up from the target of a link.
func programsNamed(name, dir string, folders []string) (found []string) {
	if filepath.Base(name) != name {
		folders = []string{dir}
		if filepath.IsAbs(name) {
			dir, folders = "", []string{""}
		}
	}
	for _, folder := range folders {
		path := name
		if folder != "" {
			path = folder + string(filepath.Separator) + name
		}
		if path, err := exec.LookPath(path); err == nil {
			found = append(found, path)
		}
	}
	return found
}

// Planted returns the path of the first of some programs that a command in dir with the environment env would start,
// although commands may write it. Also are further folders that they can write. The path is "" if there is none.
func (p *Programs) Planted(programs []string, dir string, env []string, also ...string) string {
	p.mu.RLock()
	defer p.mu.RUnlock()
	roots, folders := p.roots(also...), filepath.SplitList(run.Value(env, "PATH"))
	for i, folder := range folders {
		if !filepath.IsAbs(folder) { // a shell also searches there
			folders[i] = filepath.Join(dir, folder)
		}
	}
	for _, name := range programs {
		if found := programsNamed(name, dir, folders); len(found) > 0 && leadsThrough(found[0], roots) {
			return filepath.Clean(found[0])
		}
	}
	return ""
}

// NamesProgram reports whether a variable names a program, code, or where both are found.
func NamesProgram(variable string) bool {
	return run.MatchName(programVariables, variable) && !run.MatchName([]string{"GIT_AUTHOR_*", "GIT_COMMITTER_*"}, variable)
}

// programVariables match the variables that a command does not get which a rule lets run outside.
var programVariables = []string{
	"*_ASKPASS", "*_BROWSER", "*_COMMAND", "*EDITOR", "*_JAVA_OPTIONS", "*PAGER", "*_SHELL", "*_WRAPPER", "BASH*",
	"BROWSER", "BUNDLE_*", "CARGO_*", "CC", "CDPATH", "CLASSPATH", "COMSPEC", "CXX", "DYLD_*", "ENV", "GCONV_PATH",
	"GEM_*", "GIT_*", "GLIBC_TUNABLES", "GOFLAGS", "GOROOT", "GOTOOLCHAIN", "IFS", "JAVA_TOOL_OPTIONS", "LD_*",
	"LESSCLOSE", "LESSOPEN", "LUA_*", "MAKEFLAGS", "NODE_*", "NPM_CONFIG_*", "PERL*", "PS0", "PS1", "PS2", "PS4",
	"PYTHON*", "RUBY*", "RUSTC*", "RUSTFLAGS", "SHELL", "SHELLOPTS", "SSH_ASKPASS*", "VISUAL", "ZDOTDIR",
}
