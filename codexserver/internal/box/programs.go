package box

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/codexmcp/codexmcp/codexserver/internal/run"
)

// Programs finds and starts programs of the server, away from the folders that commands can write. It knows
// those that the sandboxes of its engine found writable, and those that it is told. The zero value knows only
// the folders for temporary files. Programs is safe for concurrent use.
type Programs struct {
	// More returns further folders that commands can write. Nil means none.
	More func() []string
	// Temporary are the folders for temporary files. Nil means the system's.
	Temporary []string

	mu      sync.RWMutex
	folders map[string][]os.FileInfo // what each name has led to
	held    map[string]*folder       // those of sandboxes, by requested name
}

// ProgramError reports a program that a command could have written.
type ProgramError struct{ Path string }

func (e *ProgramError) Error() string {
	return fmt.Sprintf("%s lies in a folder that commands can write, or a link on the way to it does, so it is not "+
		"started", e.Path)
}

// Add records folders that commands can write from now on. It waits for programs that are being started.
func (p *Programs) Add(folders ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, folder := range folders {
		if filepath.IsAbs(folder) {
			p.add(filepath.Clean(folder))
		}
	}
}

// Given records working folders that callers chose, whether or not commands can write them: a repository may have
// brought programs along. It leaves out folders that hold the user's home, with the user's programs: see Add.
func (p *Programs) Given(folders ...string) {
	home, err := os.UserHomeDir()
	p.Add(slices.DeleteFunc(slices.Clone(folders), func(folder string) bool {
		return err == nil && filepath.IsAbs(folder) && below(home, folder) // a home that is missing has no programs
	})...)
}

// add records a folder with what it leads to now. The folder may be moved later, and its name may lead to another one.
func (p *Programs) add(folder string) {
	if p.folders == nil {
		p.folders = map[string][]os.FileInfo{}
	}
	known := p.folders[folder]
	if info, err := os.Stat(folder); err == nil && !isOneOf(known, info) {
		known = append(known, info)
	}
	p.folders[folder] = known // also of one that does not exist yet
}

// Folders returns the recorded folders.
func (p *Programs) Folders() []string {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return slices.Sorted(maps.Keys(p.folders))
}

func (p *Programs) temporary() []string {
	if p.Temporary != nil {
		return p.Temporary
	}
	if runtime.GOOS == "windows" {
		return []string{os.TempDir()}
	}
	return []string{"/tmp", "/var/tmp", "/dev/shm", os.TempDir()}
}

// roots returns the folders that commands can write. The caller holds the lock.
func (p *Programs) roots(also ...string) []os.FileInfo {
	names := slices.Concat(slices.Collect(maps.Keys(p.folders)), also)
	if p.More != nil {
		names = append(names, p.More()...)
	}
	roots := existing(names)
	for _, known := range p.folders {
		roots = append(roots, known...)
	}
	// The whole file system is writable only if the user says so, and nothing would start.
	return without(roots, string(filepath.Separator))
}

// Start calls start, which starts cmd, unless commands can write its program or, if that is a script, the script's
// interpreter: the error is then an [*ProgramError]. Start changes a cmd whose interpreter env would search, so that it
// starts the interpreter itself. No folder becomes writable until start returns.
func (p *Programs) Start(cmd *exec.Cmd, start func() error) error {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if err := p.check(cmd.Path); err != nil {
		return err
	}
	if err := p.interpret(cmd); err != nil {
		return err
	}
	return start()
}

// check returns an [*ProgramError] if commands can write a program that was named or found. The user may have named
// one in a folder for temporary files.
func (p *Programs) check(path string) error {
	if leadsThrough(path, without(p.roots(), p.temporary()...)) {
		return &ProgramError{path}
	}
	return nil
}

// Writable reports whether a command could have written the file at an absolute path, or
// replaced a folder or a link on the way to it. It returns true for a missing file.
func (p *Programs) Writable(path string) bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return leadsThrough(path, p.roots(p.temporary()...))
}

// unwritable returns the folders of a PATH to which none of the roots leads.
func unwritable(list string, roots []os.FileInfo) []string {
	return slices.DeleteFunc(filepath.SplitList(list), func(dir string) bool {
		return !filepath.IsAbs(dir) || leadsThrough(dir, roots)
	})
}

// Environ returns the environment without folders of its PATH that commands can write. Path is the PATH as it was.
func (p *Programs) Environ(env []string) (changed []string, path string) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	path = run.Value(env, "PATH")
	return withPath(env, unwritable(path, p.roots(p.temporary()...))), path
}

// withPath returns the environment with these folders in its PATH. If there are none, nothing is found: an empty PATH would
// mean the working folder, and some shells search it without a PATH, too.
func withPath(env, folders []string) []string {
	changed := slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return run.IsNamed(name, "PATH")
	})
	return append(changed, "PATH="+cmp.Or(strings.Join(folders, string(filepath.ListSeparator)), os.DevNull))
}

// Find returns the absolute path of a program. One without a folder is searched in the folders of path, a PATH, as far
// as no command can write them or the program. One with a folder is relative to dir. The error is an [*ProgramError] if
// commands could write each program that there is.
func (p *Programs) Find(name, dir, path string) (string, error) {
	all, err := p.FindAll(name, dir, path)
	if err != nil {
		return "", err
	}
	return all[0], nil
}

// FindAll is Find for all programs in the order of the path.
func (p *Programs) FindAll(name, dir, path string) ([]string, error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if filepath.Base(name) == name {
		return p.search(name, path)
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(dir, name)
	}
	found, err := exec.LookPath(name)
	if err != nil {
		return nil, err
	}
	return []string{found}, p.check(found)
}

// search returns the programs with a name in path that no command can write. The caller holds the lock.
func (p *Programs) search(name, path string) ([]string, error) {
	folders := slices.DeleteFunc(filepath.SplitList(path), func(folder string) bool {
		return !filepath.IsAbs(folder) // it depends on the working folder, which may be a repository
	})
	all, roots := programsNamed(name, "", folders), p.roots(p.temporary()...)
	if len(all) == 0 {
		return nil, &exec.Error{Name: name, Err: exec.ErrNotFound}
	}
	refused := &ProgramError{all[0]}
	all = slices.DeleteFunc(all, func(found string) bool { return leadsThrough(found, roots) })
	if len(all) == 0 {
		return nil, refused
	}
	return all, nil
}

// interpret makes cmd start a script's interpreter if env would search it in cmd's PATH, where a command could put one.
// The error is an [*ProgramError] if commands can write an interpreter. The caller holds the lock.
func (p *Programs) interpret(cmd *exec.Cmd) error {
	path := cmd.Path
	for range maxScripts {
		program, searched, args, err := interpreterOf(path)
		if err != nil || program == "" {
			return err
		}
		if err := p.check(program); err != nil {
			return err
		}
		if searched == "" { // the system starts it
			path = program
			continue
		}
		if path != cmd.Path {
			break
		}
		all, err := p.search(searched, run.Value(cmd.Environ(), "PATH"))
		if err != nil {
			return fmt.Errorf("the interpreter of %s: %w", path, err)
		}
		cmd.Args = slices.Concat([]string{searched}, args, []string{path}, cmd.Args[1:])
		path, cmd.Path = all[0], all[0]
	}
	return unclear(path)
}
