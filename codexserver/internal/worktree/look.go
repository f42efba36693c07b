package worktree

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/codexmcp/codexmcp/codexserver/internal/regularfile"
)

// What is looked at in one call at most.
const (
	maxFile  = 64 << 20
	maxAll   = 1 << 30
	maxNames = 50_000
)

// look returns what is at a name with slashes below root, nil for nothing. It
// follows no symbolic link: what is behind one is not there.
func look(root *os.Root, name string) (fs.FileInfo, error) {
	for i := range len(name) {
		if name[i] != '/' {
			continue
		}
		info, err := lstat(root, name[:i])
		if err != nil || info == nil || !info.IsDir() {
			return nil, err
		}
	}
	return lstat(root, name)
}

func lstat(root *os.Root, name string) (fs.FileInfo, error) {
	info, err := root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return info, err
}

// file is a file as it is on the disk, or should be. The zero value means no file.
type file struct {
	isFile, isLink bool
	perm           fs.FileMode
	data           string // the content, or where the link leads
}

func (f file) exists() bool { return f.isFile || f.isLink }

// placeError says why a place cannot hold a file of a merge.
type placeError struct {
	reason   string
	isFolder bool // a folder is there, so no file is
}

func (e *placeError) Error() string { return e.reason }

// read returns the file at a name below root. What cannot be merged is a
// [*placeError]: a folder or special file, a place behind a symbolic link, one in
// another repository.
func read(root *os.Root, name string) (file, error) {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		info, err := look(root, dir)
		switch {
		case err != nil:
			return file{}, err
		case info == nil:
			continue
		case info.Mode()&fs.ModeSymlink != 0:
			return file{}, &placeError{reason: shown(dir) + " is a symbolic link"}
		case !info.IsDir():
			return file{}, nil // whether that file goes, the plan knows
		}
		if inner, err := lstat(root, dir+"/.git"); err != nil || inner != nil {
			return file{}, errors.Join(err, &placeError{reason: shown(dir) + " is a repository of its own"})
		}
	}
	info, err := look(root, name)
	switch {
	case err != nil || info == nil:
		return file{}, err
	case info.Mode()&fs.ModeSymlink != 0:
		to, err := root.Readlink(name)
		return file{isLink: true, data: to}, err
	case info.IsDir():
		return file{}, &placeError{"a folder is there", true}
	case !info.Mode().IsRegular():
		return file{}, &placeError{reason: "a special file is there"}
	}
	f, err := regularfile.OpenIn(root, name, os.O_RDONLY)
	if err != nil {
		return file{}, err
	}
	data, err := f.ReadAll(maxFile)
	err = errors.Join(err, f.Close())
	var size *regularfile.SizeError
	if errors.As(err, &size) {
		return file{}, &placeError{reason: fmt.Sprintf("the file has more than %d MiB", maxFile>>20)}
	}
	return file{isFile: true, perm: f.Info().Mode().Perm(), data: string(data)}, err
}

// waits fails when a file that git reads wherever it finds it is one that it would
// wait for.
func waits(dir string) error {
	return filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && d.Name() != ".git" {
			return nil // git says what it cannot read
		}
		switch strings.ToLower(d.Name()) {
		case ".git":
			if info, err := os.Stat(filepath.Join(name, "HEAD")); err == nil && !info.Mode().IsRegular() && name != filepath.Join(dir, ".git") {
				return refuse("%s is a special file", shown(filepath.Join(name, "HEAD")))
			}
			if d.IsDir() {
				return filepath.SkipDir
			}
		case ".gitattributes", ".gitignore", ".gitmodules":
			if !d.Type().IsRegular() && d.Type() != fs.ModeSymlink { // of links git reads the text
				return refuse("%s is a special file", shown(name))
			}
		}
		return nil
	})
}

// shown is a name as it may stand in a sentence: quoted where it could be taken for
// something else.
func shown(name string) string {
	if name == "" || !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) || r == '"' || r == ' ' }) {
		return strconv.Quote(name)
	}
	return name
}

// isGitName reports whether a path leads through a name that git keeps for itself.
func isGitName(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if strings.EqualFold(part, ".git") {
			return true
		}
	}
	return false
}
