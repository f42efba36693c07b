package paths

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// maxLinks is how many symbolic links one path may lead through, as in the kernel.
const maxLinks = 40

// Follow follows an absolute path link by link, and returns where it leads. It calls visit with each folder
// and link on the way, by a path without links before its last name, until that fails.
//
// If a name is missing, the error is [fs.ErrNotExist] and real is what the path would lead to, or "" if the
// missing part goes up again.
func Follow(path string, visit func(at string, info fs.FileInfo) error) (real string, info fs.FileInfo, err error) {
	if !filepath.IsAbs(path) {
		return "", nil, &fs.PathError{Op: "follow", Path: path, Err: fs.ErrInvalid}
	}
	at, rest := split(path)
	for links := 0; len(rest) > 0; {
		next := filepath.Join(at, rest[0]) // for .. the folder above, because at has no links
		rest = rest[1:]
		if info, err = os.Lstat(next); errors.Is(err, fs.ErrNotExist) && !slices.Contains(rest, "..") {
			return filepath.Join(next, filepath.Join(rest...)), nil, err
		}
		if err == nil {
			err = visit(next, info)
		}
		if err != nil {
			return "", nil, err
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			at = next
			continue
		}
		if links++; links > maxLinks {
			return "", nil, &fs.PathError{Op: "follow", Path: path, Err: errors.New("too many symbolic links")}
		}
		to, err := os.Readlink(next)
		if err != nil {
			return "", nil, err
		}
		if err := Local(runtime.GOOS, to, path); err != nil {
			return "", nil, err
		}
		names := strings.Split(filepath.ToSlash(to), "/")
		if filepath.IsAbs(to) {
			at, names = split(to)
		}
		rest = slices.Concat(names, rest)
	}
	return at, info, nil
}

// Near fails as [Local] does, also for a path that a link on its way leads to the network or to a device. It looks at
// nothing on systems that have no such names.
func Near(path, folder string) error {
	if runtime.GOOS != "windows" {
		return nil
	}
	err := Local(runtime.GOOS, path, folder)
	if err == nil {
		_, _, err = Follow(path, func(string, fs.FileInfo) error { return nil })
	}
	if errors.Is(err, ErrNetwork) {
		return err
	}
	return nil // also if the path cannot be followed: then it cannot be opened
}

// split splits an absolute path into the root of its volume and the names below it. It keeps "..", which
// leads up from the target of a link before it.
func split(path string) (root string, names []string) {
	volume := filepath.VolumeName(path)
	return volume + string(filepath.Separator), strings.Split(filepath.ToSlash(path[len(volume):]), "/")
}
