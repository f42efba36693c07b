package box

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/internal/run"
)

// Outside returns how a command runs outside the sandbox by a rule, so that nobody looks at it: it starts only programs
// that no command can write, and of the environment it has a list that names no program and no code, and the named
// variables. Commands are argv itself, or those of the script of plain commands that argv runs in a shell, which then runs
// without a profile. Also are further folders that commands can write. The program is an absolute path. The error says why
// the command must not run so.
func (p *Programs) Outside(
	argv []string, commands [][]string, dir string, env, named []string, also ...string,
) (clean, environ []string, err error) {
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
	return clean, s.environ(env, named), nil
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

const (
	maxWords = 5_000  // words of a command that are searched
	maxNames = 50_000 // names in a folder that are compared
)

// Planted returns the paths of programs that commands may write, and that a command in dir with the environment env may
// start: those that one of its names leads to, and then all in the folders of its PATH that come before one of the same
// name further on. Also are further folders that commands can write. Of too many names each may be one: FOLDER/* stands
// for all programs of a folder.
func (p *Programs) Planted(names []string, dir string, env []string, also ...string) (paths []string) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	roots, known := p.roots(also...), map[string]bool{}
	add := func(path string) {
		if path = filepath.Clean(path); !known[path] {
			known[path], paths = true, append(paths, path)
		}
	}
	var folders []string // of the PATH, each once
	var seen []os.FileInfo
	for _, folder := range filepath.SplitList(run.Value(env, "PATH")) {
		if !filepath.IsAbs(folder) { // a shell also searches there
			folder = filepath.Join(dir, folder)
		}
		if info, err := os.Stat(folder); err == nil && !isOneOf(seen, info) {
			seen, folders = append(seen, info), append(folders, folder)
		}
	}
	for _, name := range names[:min(len(names), maxWords)] {
		if found := programsNamed(name, dir, folders); len(found) > 0 && leadsThrough(found[0], roots) {
			add(found[0])
		}
	}
	for i, folder := range folders {
		if !leadsThrough(folder, roots) {
			continue
		}
		if len(names) > maxWords {
			add(filepath.Join(folder, "*"))
		}
		for _, further := range folders[i+1:] {
			for _, name := range programsIn(further) {
				for _, path := range programsNamed(name, "", []string{folder}) {
					add(path)
				}
			}
		}
	}
	return paths
}

// programsIn returns the names in a folder, those of Windows without their extension.
func programsIn(folder string) (names []string) {
	dir, err := os.Open(folder + string(filepath.Separator) + ".") // does not wait for a named pipe
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ = dir.Readdirnames(maxNames)
	if runtime.GOOS == "windows" {
		for i, name := range names {
			names[i] = strings.TrimSuffix(name, filepath.Ext(name))
		}
	}
	slices.Sort(names)
	return names
}

// environ returns what a command gets of an environment: what is written here, unless it leads into a folder that commands
// can write, and what its user has named.
func (s *starts) environ(env, named []string) []string {
	env = slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
		name, value, _ := strings.Cut(entry, "=")
		return !slices.ContainsFunc(named, func(other string) bool { return run.IsNamed(other, name) }) &&
			!s.harmless(name, value)
	})
	if root := run.Value(env, "SYSTEMROOT"); runtime.GOOS == "windows" && root != "" &&
		run.Value(env, "COMSPEC") == "" {
		env = append(env, "COMSPEC="+filepath.Join(root, "System32", "cmd.exe"))
	}
	return withPath(env, s.path)
}

// harmless reports whether a variable names no program and no code: it is in one of the lists, and leads into no folder
// that commands can write.
func (s *starts) harmless(name, value string) bool {
	switch {
	case run.MatchName([]string{"TMPDIR", "TEMP", "TMP"}, name):
		return true
	case run.MatchName([]string{"PATH", "SHELL", "COMSPEC"}, name): // withPath, environ
		return false
	case run.MatchName(texts, name):
		path := strings.TrimPrefix(value, ":") // TZ may be a file
		return !filepath.IsAbs(path) || !leadsThrough(path, s.roots)
	case run.IsNamed(name, "DBUS_SESSION_BUS_ADDRESS"):
		value, _, _ = strings.Cut(strings.TrimPrefix(value, "unix:path="), ",")
	case !run.MatchName(slices.Concat(run.Core(), places), name):
		return false
	}
	return filepath.IsAbs(value) && !leadsThrough(value, s.roots)
}

// texts and places match what a command gets besides the variables of [run.Core], of which the former are no paths.
var (
	texts = []string{
		"LOGNAME", "USER", "USERNAME", "LANG", "LC_*", "TZ", "TERM", "NO_COLOR", "*_PROXY", "PATHEXT", "SYSTEMDRIVE",
	}
	places = []string{
		"SSL_CERT_FILE", "SSL_CERT_DIR", "SSH_AUTH_SOCK", "XDG_RUNTIME_DIR", "WINDIR", "APPDATA", "LOCALAPPDATA",
		"PROGRAMDATA",
		"PROGRAMFILES*",
	}
)
