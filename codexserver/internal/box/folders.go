package box

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/internal/paths"
)

// folder is a folder that was judged.
type folder struct {
	path string      // free of symbolic links
	info fs.FileInfo // of the folder, not of what has its name now
	file *os.File    // the open folder, on systems that can use it
}

// ErrReplaced reports that a writable folder's name no longer leads where it first led. Nothing may run until it does.
var ErrReplaced = errors.New("was replaced")

// errLink reports a symbolic link that a command may have made.
var errLink = errors.New("is a symbolic link in the writable folder")

// judge returns the folder that each name leads to, or why it must not become writable. It holds each from its
// first use on, so that a command cannot make another folder writable by changing names. The names must be
// clean and absolute. It follows no symbolic link in a writable folder: in one of names, or in one that was
// judged before. A name that is refused is judged again at the next call.
func (p *Programs) judge(
	names []string, refuse func(name, path string, info fs.FileInfo) error,
) (folders []*folder, errs []error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := areas(slices.Collect(maps.Values(p.held)))
	// Each folder found may hold links on the way to others, so judge until nothing changes.
	for grown := true; grown; {
		grown = false
		for _, name := range names {
			path, info, err := known.follow(name)
			if err == nil && known.find(info) == nil && refuse(name, path, info) == nil {
				known, grown = append(known, &folder{path: path, info: info}), true
			}
		}
	}
	for _, name := range names {
		held, err := p.hold(known, name, refuse)
		folders, errs = append(folders, held), append(errs, err)
	}
	return folders, errs
}

// hold returns the folder that a name leads to, and holds it.
func (p *Programs) hold(
	known areas, name string, refuse func(name, path string, info fs.FileInfo) error,
) (*folder, error) {
	first := p.held[name]
	path, info, err := known.follow(name)
	switch {
	case first != nil && errors.Is(err, errLink):
		return nil, fmt.Errorf("the folder %s %w: it was %s, and now %w", name, ErrReplaced, first.path, err)
	case err != nil:
		return nil, err
	case first != nil && first.path != path:
		return nil, fmt.Errorf("the folder %s %w: it was %s and is now %s", name, ErrReplaced, first.path, path)
	}
	if err := refuse(name, path, info); err != nil {
		return nil, err
	}
	if first != nil && os.SameFile(first.info, info) {
		return first, nil
	}
	fresh, err := openFolder(path)
	if err != nil {
		return nil, err
	}
	if p.held == nil {
		p.held = map[string]*folder{}
	}
	p.held[name] = fresh
	p.add(path)
	return fresh, nil
}

// openFolder opens a folder. It fails if the path has a symbolic link by now. Other systems than Linux confine
// by real paths, which links made later do not change, so there it stays closed.
func openFolder(path string) (f *folder, err error) {
	f = &folder{path: path}
	if runtime.GOOS != "linux" {
		f.info, err = os.Lstat(path)
	} else if f.file, err = run.OpenFolder(path); err == nil { // closed when it is no longer needed
		f.info, err = f.file.Stat()
	}
	return f, err
}

// areas are folders in which commands may write.
type areas []*folder

// find returns the area that is a folder, or nil.
func (a areas) find(info fs.FileInfo) *folder {
	for _, one := range a {
		if os.SameFile(one.info, info) {
			return one
		}
	}
	return nil
}

// follow returns the folder that a clean absolute name leads to. It wraps errLink at a symbolic link in an area.
func (a areas) follow(name string) (path string, info fs.FileInfo, err error) {
	path, info, err = paths.Follow(name, func(link string, info fs.FileInfo) error {
		if info.Mode()&fs.ModeSymlink == 0 {
			return nil
		}
		_, _, err := paths.Follow(filepath.Dir(link), func(_ string, info fs.FileInfo) error {
			if within := a.find(info); within != nil {
				return fmt.Errorf("%s %w %s", link, errLink, within.path)
			}
			return nil
		})
		return err
	})
	if err == nil && !info.IsDir() {
		err = errors.New("it is not a folder")
	}
	return path, info, err
}
