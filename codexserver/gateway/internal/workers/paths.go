package workers

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/enclosure"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/settings"
	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/internal/paths"
)

// userPaths are the paths of the users and of the server, without symbolic links.
type userPaths struct {
	server  string              // the server's $CODEX_HOME
	program string              // codex-mcp
	hidden  []string            // from all users
	homes   map[string]string   // by user
	folders map[string][]string // by user
}

// resolvePaths creates the homes and resolves all paths. It fails if a user could see,
// move or replace files of another user or of the server.
func resolvePaths(
	server, program string, hidden []string, principals map[string]settings.Principal,
) (*userPaths, error) {
	p := &userPaths{homes: map[string]string{}, folders: map[string][]string{}}
	var err error
	if p.server, err = filepath.EvalSymlinks(server); err != nil {
		return nil, err
	}
	if p.program, err = filepath.EvalSymlinks(program); err != nil {
		return nil, err
	}
	for _, path := range append(slices.Clone(hidden), "/run/user") {
		path, err := resolve(path)
		if err != nil {
			return nil, err
		}
		p.hidden = append(p.hidden, path)
	}
	for _, name := range slices.Sorted(maps.Keys(principals)) {
		principal, key := principals[name], "http.principals."+name
		home := principal.Home
		if home == "" {
			home = filepath.Join(server, "codex-mcp", "principals", name)
		}
		if err = os.MkdirAll(home, 0o700); err == nil {
			p.homes[name], err = filepath.EvalSymlinks(home)
		}
		if err != nil {
			return nil, fmt.Errorf("%s.home: %w", key, err)
		}
		for _, folder := range principal.Folders {
			folder, err := filepath.EvalSymlinks(folder)
			if err == nil && !isFolder(folder) {
				err = errors.New("not a folder")
			}
			if err != nil {
				return nil, fmt.Errorf("%s.folders: %w", key, err)
			}
			p.folders[name] = append(p.folders[name], folder)
		}
	}
	return p, p.check()
}

// check resolves the paths of users. It also fails if a user could change where the path of a hidden file leads: a worker
// that starts later would see the file.
func (p *Pool) check(principals map[string]settings.Principal) (*userPaths, error) {
	found, err := resolvePaths(p.o.Home, p.o.Program, p.o.Hidden, principals)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(found.homes)) {
		writable := append(slices.Clone(found.folders[name]), found.homes[name])
		for _, path := range p.o.Hidden {
			dir := filepath.Dir(path)
			_, err := os.Stat(dir) // who opens the file says that it is missing
			if !errors.Is(err, fs.ErrNotExist) && box.Reaches(dir, writable...) {
				return nil, fmt.Errorf("http.principals.%s: its commands can write on the way to %s; name a file "+
					"elsewhere", name, path)
			}
		}
	}
	return found, nil
}

// resolve resolves the symbolic links of a path. The path need not exist.
func resolve(path string) (string, error) {
	resolved, err := filepath.EvalSymlinks(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return resolved, err
	}
	parent, err := filepath.EvalSymlinks(filepath.Dir(path))
	if errors.Is(err, fs.ErrNotExist) {
		return filepath.Clean(path), nil
	}
	return filepath.Join(parent, filepath.Base(path)), err
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// check fails if a folder that a user can write contains files of another user or of the
// server. Each start of a worker calls it, so it looks up the folders around a path, and does not
// compare all users with each other.
func (p *userPaths) check() error {
	homes, folders := map[string][]string{}, map[string][]string{} // the users of a path
	names := slices.Sorted(maps.Keys(p.homes))
	for _, name := range names {
		home, key := p.homes[name], "http.principals."+name
		if paths.Below(p.server, home) {
			return fmt.Errorf("%s.home: %s contains the server's home", key, home)
		}
		if paths.Below(p.program, home) { // which runs for every user
			return fmt.Errorf("%s.home: %s contains %s, the program of the workers", key, home, p.program)
		}
		homes[home] = append(homes[home], name)
		for _, folder := range p.folders[name] {
			for _, path := range append([]string{p.server, p.program}, p.hidden...) {
				if paths.Below(path, folder) {
					return fmt.Errorf("%s.folders: %s contains %s, which belongs to the server", key, folder, path)
				}
			}
			folders[folder] = append(folders[folder], name)
		}
	}
	for _, name := range names {
		key, others := "http.principals."+name, func(n string) bool { return n != name }
		for at := range around(p.homes[name]) {
			if i := slices.IndexFunc(homes[at], others); i >= 0 {
				return fmt.Errorf("%s.home: it is or lies in that of %s", key, homes[at][i])
			}
			if users := folders[at]; users != nil {
				return fmt.Errorf("%s.home: %s lies in %s, where %s can write", key, p.homes[name], at, users[0])
			}
		}
		for _, folder := range p.folders[name] {
			for at := range around(folder) {
				users := homes[at]
				if at != folder { // users may share a folder
					users = slices.Concat(users, folders[at])
				}
				if i := slices.IndexFunc(users, others); i >= 0 {
					return fmt.Errorf("%s.folders: %s lies in %s of %s", key, folder, at, users[i])
				}
			}
		}
	}
	return nil
}

// around returns a path and the folders in which it lies, from the inside.
func around(path string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for yield(path) {
			parent := filepath.Dir(path)
			if parent == path {
				return
			}
			path = parent
		}
	}
}

// tempFolder is a folder in a user's home. The user's worker sees it as /tmp.
var tempFolder = filepath.Join("codex-mcp", "tmp")

// enclosure returns the enclosure of a user's worker.
func (p *userPaths) enclosure(name string) *enclosure.Enclosure {
	home := p.homes[name]
	e := &enclosure.Enclosure{
		Writable: append(slices.Clone(p.folders[name]), home), Temp: filepath.Join(home, tempFolder),
		Hidden: append([]string{p.server}, p.hidden...),
	}
	for other, home := range p.homes {
		if other == name {
			continue
		}
		e.Hidden = append(e.Hidden, home)
		for _, folder := range p.folders[other] {
			if !slices.Contains(p.folders[name], folder) {
				e.Hidden = append(e.Hidden, folder)
			}
		}
	}
	slices.Sort(e.Hidden)
	e.Hidden = slices.Compact(e.Hidden)
	all := make(map[string]bool, len(e.Hidden)) // whether it is hidden; else it is writable
	for _, path := range e.Hidden {
		all[path] = true
	}
	for _, path := range e.Writable {
		all[path] = false
	}
	// What lies in something hidden needs no mount of its own: homes lie in that of the server.
	e.Hidden = slices.DeleteFunc(e.Hidden, func(path string) bool {
		for at := range around(filepath.Dir(path)) {
			if hidden, ok := all[at]; ok {
				return hidden
			}
		}
		return false
	})
	return e
}

// clearTemp empties the /tmp of a user, whose worker must not be running.
func (p *userPaths) clearTemp(name string) error {
	root, err := os.OpenRoot(p.homes[name])
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.RemoveAll(tempFolder); err != nil {
		return err
	}
	return root.MkdirAll(tempFolder, 0o700)
}
