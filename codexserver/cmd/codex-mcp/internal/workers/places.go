package workers

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/internal/sandbox"
)

// places are where users live and work, free of symbolic links.
type places struct {
	server string            // the server's $CODEX_HOME
	secret []string          // what no user sees
	homes  map[string]string // by user
	work   map[string][]string
}

// findPlaces makes the homes, and finds where all paths lead. It fails where one user
// could see, move or replace what is another's or the server's.
func findPlaces(server string, secret []string, principals map[string]config.Principal) (*places, error) {
	p := &places{homes: map[string]string{}, work: map[string][]string{}}
	var err error
	if p.server, err = filepath.EvalSymlinks(server); err != nil {
		return nil, err
	}
	for _, path := range append(slices.Clone(secret), "/run/user") {
		path, err := real(path)
		if err != nil {
			return nil, err
		}
		p.secret = append(p.secret, path)
	}
	for _, name := range slices.Sorted(maps.Keys(principals)) {
		who, key := principals[name], "http.principals."+name
		home := who.Home
		if home == "" {
			home = filepath.Join(server, "codex-mcp", "principals", name)
		}
		if err = os.MkdirAll(home, 0o700); err == nil {
			p.homes[name], err = filepath.EvalSymlinks(home)
		}
		if err != nil {
			return nil, fmt.Errorf("%s.home: %w", key, err)
		}
		for _, folder := range who.Folders {
			folder, err := filepath.EvalSymlinks(folder)
			if err == nil && !isFolder(folder) {
				err = errors.New("not a folder")
			}
			if err != nil {
				return nil, fmt.Errorf("%s.folders: %w", key, err)
			}
			p.work[name] = append(p.work[name], folder)
		}
	}
	return p, p.check()
}

// real returns where a path leads, also one that is not there.
func real(path string) (string, error) {
	found, err := filepath.EvalSymlinks(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return found, err
	}
	up, err := filepath.EvalSymlinks(filepath.Dir(path))
	if errors.Is(err, fs.ErrNotExist) {
		return filepath.Clean(path), nil
	}
	return filepath.Join(up, filepath.Base(path)), err
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// check fails when a folder that a user may write contains what is another user's or the
// server's.
func (p *places) check() error {
	for name, home := range p.homes {
		key := "http.principals." + name
		if within(p.server, home) {
			return fmt.Errorf("%s.home: %s holds the server's own", key, home)
		}
		for _, folder := range p.work[name] {
			for _, path := range append([]string{p.server}, p.secret...) {
				if within(path, folder) {
					return fmt.Errorf("%s.folders: %s holds %s, which is the server's", key, folder, path)
				}
			}
		}
		for other, theirs := range p.homes {
			if other != name && within(theirs, home) {
				return fmt.Errorf("%s.home: it is or lies in that of %s", "http.principals."+other, name)
			}
			for _, folder := range p.work[name] {
				if within(theirs, folder) {
					return fmt.Errorf("%s.home: %s lies in %s, where %s may write", "http.principals."+other, theirs, folder, name)
				}
			}
			for _, folder := range p.work[other] {
				for _, own := range append([]string{home}, p.work[name]...) {
					if other != name && within(folder, own) && (folder != own || own == home) {
						return fmt.Errorf("%s.folders: %s lies in %s of %s", "http.principals."+other, folder, own, name)
					}
				}
			}
		}
	}
	return nil
}

func within(path, folder string) bool {
	rel, err := filepath.Rel(folder, path)
	return err == nil && filepath.IsLocal(rel)
}

// temp is the folder of a user that its worker has as /tmp, in its home.
var temp = filepath.Join("codex-mcp", "tmp")

// enclosure returns what a user's worker has of the system.
func (p *places) enclosure(name string) *sandbox.Enclosure {
	home := p.homes[name]
	e := &sandbox.Enclosure{
		Writable: append(slices.Clone(p.work[name]), home), Temp: filepath.Join(home, temp),
		Hidden: append([]string{p.server}, p.secret...),
	}
	for other, home := range p.homes {
		if other == name {
			continue
		}
		e.Hidden = append(e.Hidden, home)
		for _, folder := range p.work[other] {
			if !slices.Contains(p.work[name], folder) {
				e.Hidden = append(e.Hidden, folder)
			}
		}
	}
	slices.Sort(e.Hidden)
	e.Hidden = slices.Compact(e.Hidden)
	return e
}

// clear makes the /tmp of a user empty. Nothing of the user's runs.
func (p *places) clear(name string) error {
	root, err := os.OpenRoot(p.homes[name])
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.RemoveAll(temp); err != nil {
		return err
	}
	return root.MkdirAll(temp, 0o700)
}
