package box

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxLinks is how many symbolic links one path may lead through, as in the kernel.
const maxLinks = 40

// walk follows an absolute path link by link, and returns where it leads. It calls visit with each folder
// and link on the way, by a path without links before its last name, until that fails.
func walk(path string, visit func(at string, info fs.FileInfo) error) (string, fs.FileInfo, error) {
	if !filepath.IsAbs(path) {
		return "", nil, &fs.PathError{Op: "follow", Path: path, Err: fs.ErrInvalid}
	}
	at, rest := split(path)
	for links := 0; ; rest = rest[1:] {
		next := at
		if len(rest) > 0 {
			next = filepath.Join(at, rest[0]) // for .. the folder above, because at has no links
		}
		info, err := os.Lstat(next)
		if err == nil {
			err = visit(next, info)
		}
		switch {
		case err != nil:
			return "", nil, err
		case info.Mode()&fs.ModeSymlink == 0:
			if at = next; len(rest) == 0 {
				return at, info, nil
			}
			continue
		}
		if links++; links > maxLinks {
			return "", nil, &fs.PathError{Op: "follow", Path: path, Err: errors.New("too many symbolic links")}
		}
		to, err := os.Readlink(next)
		if err != nil {
			return "", nil, err
		}
		names := strings.Split(filepath.ToSlash(to), "/")
		if filepath.IsAbs(to) {
			at, names = split(to)
		}
		rest = slices.Concat(rest[:1], names, rest[1:]) // the loop removes the first
	}
}

// split splits an absolute path into the root of its volume and the names below it. It keeps "..", which
// leads up from the target of a link before it.
func split(path string) (root string, parts []string) {
	volume := filepath.VolumeName(path)
	return volume + string(filepath.Separator), strings.Split(filepath.ToSlash(path[len(volume):]), "/")
}

// Reaches reports whether one of the folders is on the way to path, link by link. It compares the folders
// themselves, so that neither letter case nor a second name hides one. It returns true if it cannot reach
// path, which must be absolute.
func Reaches(path string, folders ...string) bool { return leadsThrough(path, existing(folders)) }

// existing returns those of the paths that exist.
func existing(paths []string) (folders []os.FileInfo) {
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil {
			folders = append(folders, info)
		}
	}
	return folders
}

// isOneOf reports whether a file is one of the folders.
func isOneOf(folders []os.FileInfo, info os.FileInfo) bool {
	return slices.ContainsFunc(folders, func(other os.FileInfo) bool { return os.SameFile(other, info) })
}

// leadsThrough is Reaches for folders as they are.
func leadsThrough(path string, roots []os.FileInfo) bool {
	_, _, err := walk(path, func(_ string, info fs.FileInfo) error {
		if isOneOf(roots, info) {
			return fs.ErrPermission
		}
		return nil
	})
	return err != nil
}
