package patch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/codexmcp/codexmcp/internal/paths"
)

// A place is where a file of a plan really is. It is found once, when the plan is made, so
// that the same place is shown, judged and written.
type place struct {
	path   string      // absolute, without symbolic links
	folder *folder     // the deepest existing folder above it
	rest   []string    // the names from the folder to the file
	info   fs.FileInfo // of the file or link, nil if it did not exist
	link   string      // the target of a link, as written
}

// A folder is a folder that existed when the plan was made, or that it has made.
type folder struct {
	path string // without symbolic links
	info fs.FileInfo
}

func (p *place) name() string { return p.rest[len(p.rest)-1] }

// places finds the places of a path. Entry is the name itself, which a removal removes.
// Target is the file that is read and written. They differ if the name is a symbolic link.
func (p *Plan) places(path string) (entry, target *place, err error) {
	if entry, err = p.locate(path, false); err != nil {
		return nil, nil, err
	}
	if entry.info == nil || entry.info.Mode()&fs.ModeSymlink == 0 {
		return entry, entry, nil
	}
	if entry.link, err = os.Readlink(entry.path); err != nil {
		return nil, nil, err
	}
	target, err = p.locate(path, true)
	return entry, target, err
}

func (p *Plan) locate(path string, follow bool) (*place, error) {
	real, err := resolve(path, follow)
	if err != nil {
		return nil, err
	}
	found := &place{path: real, rest: []string{filepath.Base(real)}}
	if found.info, err = lstat(real); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	dir := filepath.Dir(real)
	for {
		if found.folder, err = p.folder(dir); err == nil {
			slices.Reverse(found.rest)
			return found, nil
		}
		up := filepath.Dir(dir)
		if !errors.Is(err, fs.ErrNotExist) || up == dir {
			return nil, err
		}
		found.rest = append(found.rest, filepath.Base(dir))
		dir = up
	}
}

// folder looks up a folder, once for all files below it.
func (p *Plan) folder(path string) (*folder, error) {
	if f := p.folders[path]; f != nil {
		return f, nil
	}
	info, err := lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s is not a folder", path)
	}
	p.folders[path] = &folder{path, info}
	return p.folders[path], nil
}

// lstat is [os.Lstat] with the file's identity. Windows would look that up by name at the first comparison.
func lstat(path string) (fs.FileInfo, error) {
	info, err := os.Lstat(path)
	if err == nil {
		os.SameFile(info, info)
	}
	return info, err
}

// sameEntry reports whether two names are one entry of one folder, which the file system finds by both.
func sameEntry(a, b *place) (same bool, err error) {
	if a.info == nil || b.info == nil || !os.SameFile(a.info, b.info) || !os.SameFile(a.folder.info, b.folder.info) {
		return false, nil
	}
	if a.name() == b.name() {
		return true, nil
	}
	err = a.folder.do(func(root *os.Root) error {
		folder, err := root.Open(".")
		if err != nil {
			return err
		}
		defer folder.Close()
		names, err := folder.Readdirnames(-1)
		same = !slices.Contains(names, a.name()) || !slices.Contains(names, b.name()) // else they are two links
		return err
	})
	return same, err
}

// do opens the folder for f. It fails if the path no longer leads there, or leads through symbolic links.
func (f *folder) do(use func(root *os.Root) error) error {
	if real, err := resolve(f.path, true); err != nil {
		return err
	} else if real != f.path {
		return errChanged(f.path)
	}
	// With the dot, opening fails instead of blocking if the folder is now a named pipe.
	root, err := os.OpenRoot(f.path + string(filepath.Separator) + ".")
	if errors.Is(err, fs.ErrNotExist) {
		return errChanged(f.path)
	}
	if err != nil {
		return err
	}
	defer root.Close()
	if info, err := root.Stat("."); err != nil || !os.SameFile(info, f.info) {
		return errChanged(f.path)
	}
	return use(root)
}

// resolve follows the links of a clean path as far as it exists, the one at the last name only if last is true.
func resolve(path string, last bool) (string, error) {
	if !last {
		dir, err := resolve(filepath.Dir(path), true)
		return filepath.Join(dir, filepath.Base(path)), err
	}
	real, _, err := paths.Follow(path, func(string, fs.FileInfo) error { return nil })
	if errors.Is(err, fs.ErrNotExist) && real != "" {
		err = nil
	}
	return real, err
}

// resolveAll resolves the paths and drops those that it cannot resolve.
func resolveAll(paths []string) (real []string) {
	for _, path := range paths {
		if path, err := resolve(path, true); err == nil {
			real = append(real, path)
		}
	}
	return real
}
