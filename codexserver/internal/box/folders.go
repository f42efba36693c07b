package box

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// Folders judges the writable folders of an engine, and holds each from its first use on,
// so that a command cannot make another folder writable by changing names. The sandboxes
// of one engine share one Folders. The zero value is ready for use, and safe for
// concurrent use.
type Folders struct {
	mu   sync.Mutex
	held map[string]*folder // by requested name
}

// folder is a folder that was judged.
type folder struct {
	path string      // free of symbolic links
	info fs.FileInfo // of the folder, not of what has its name now
	file *os.File    // the open folder, on systems that can use it
}

// ReplacedError reports that the name of a writable folder no longer leads where it first
// led. Nothing may run until it does again.
type ReplacedError struct {
	// Folder is the name. First is where it led, Now where it leads.
	Folder, First, Now string
}

// Error implements error.
func (e *ReplacedError) Error() string {
	return fmt.Sprintf("the folder %s was replaced: it was %s and is now %s", e.Folder, e.First, e.Now)
}

// linkError reports a symbolic link that a command may have made.
type linkError struct {
	link, area string
}

func (e *linkError) Error() string {
	return fmt.Sprintf("%s is a symbolic link in the writable folder %s", e.link, e.area)
}

// judge returns the folder that each name leads to, or why it must not become writable. The names must be
// clean and absolute. It follows no symbolic link in a writable folder: in one of names, or in one that
// was judged before. A name that is refused is judged again at the next call.
func (f *Folders) judge(names []string, refuse func(name, path string, info fs.FileInfo) error) (folders []*folder, errs []error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var known areas
	for _, held := range f.held {
		known = append(known, held)
	}
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
		held, err := f.hold(known, name, refuse)
		folders, errs = append(folders, held), append(errs, err)
	}
	return folders, errs
}

// hold returns the folder that a name leads to, and holds it.
func (f *Folders) hold(known areas, name string, refuse func(name, path string, info fs.FileInfo) error) (*folder, error) {
	first := f.held[name]
	path, info, err := known.follow(name)
	var link *linkError
	switch {
	case first != nil && errors.As(err, &link):
		return nil, &ReplacedError{Folder: name, First: first.path, Now: "behind a symbolic link, " + link.link}
	case err != nil:
		return nil, err
	case first != nil && first.path != path:
		return nil, &ReplacedError{Folder: name, First: first.path, Now: path}
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
	if f.held == nil {
		f.held = map[string]*folder{}
	}
	f.held[name] = fresh
	return fresh, nil
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

// around returns the area that is dir, or contains it, or nil. It compares files instead of
// names, which may differ in letter case.
func (a areas) around(dir string) *folder {
	for {
		if info, err := os.Lstat(dir); err == nil {
			if one := a.find(info); one != nil {
				return one
			}
		}
		up := filepath.Dir(dir)
		if up == dir {
			return nil
		}
		dir = up
	}
}

// follow returns the folder that a clean absolute name leads to. It fails with a
// [*linkError] when the way leads through a symbolic link in one of the areas.
func (a areas) follow(name string) (path string, info fs.FileInfo, err error) {
	path, info, err = walk(name, func(at string, info fs.FileInfo) error {
		if info.Mode()&fs.ModeSymlink == 0 {
			return nil
		}
		if within := a.around(filepath.Dir(at)); within != nil {
			return &linkError{at, within.path}
		}
		return nil
	})
	if err == nil && !info.IsDir() {
		err = errors.New("it is not a folder")
	}
	return path, info, err
}
