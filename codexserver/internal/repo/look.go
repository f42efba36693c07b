package repo

import (
	"context"
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

	"github.com/codexmcp/codexmcp/internal/safefile"
)

// Limits of one call.
const (
	maxFile  = 64 << 20 // bytes of one file
	maxAll   = 1 << 30  // bytes of all changed files
	maxNames = 50_000   // changed files
)

// look describes the file at a name with slashes below root, or returns nil. It does not
// follow symbolic links: a name that leads through one does not exist.
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

// placeError reports why a merge cannot put a file at a name.
type placeError struct {
	reason   string
	isFolder bool // the name belongs to a folder
}

func (e *placeError) Error() string { return e.reason }

// read returns the file at a name below root. The error is a [*placeError] if the name
// cannot be merged: it is a folder or special file, leads through a symbolic link, or lies
// in another repository.
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
			return file{}, nil // the plan may remove the file dir
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
	f, err := safefile.OpenIn(root, name, os.O_RDONLY)
	if err != nil {
		return file{}, err
	}
	data, err := f.ReadAll(maxFile)
	err = errors.Join(err, f.Close())
	var size *safefile.SizeError
	if errors.As(err, &size) {
		return file{}, &placeError{reason: fmt.Sprintf("the file has more than %d MiB", maxFile>>20)}
	}
	return file{isFile: true, perm: f.Info().Mode().Perm(), data: string(data)}, err
}

// refuseSpecial fails when a file that git reads in any folder, such as .gitignore, is a
// special file, on which git could block.
func refuseSpecial(ctx context.Context, dir string) error {
	return filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil || d.IsDir() && d.Name() != ".git" {
			return nil // git reports what it cannot read
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
			if !d.Type().IsRegular() && d.Type() != fs.ModeSymlink { // git does not follow links
				return refuse("%s is a special file", shown(name))
			}
		}
		return nil
	})
}

// shown returns a name for use in a sentence, in quotes if it could be misread.
func shown(name string) string {
	if name == "" || !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) || r == '"' || r == ' ' }) {
		return strconv.Quote(name)
	}
	return name
}

// isGitName reports whether a path contains the name .git in any letter case.
func isGitName(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if strings.EqualFold(part, ".git") {
			return true
		}
	}
	return false
}
