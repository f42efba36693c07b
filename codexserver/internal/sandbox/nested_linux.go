//go:build amd64 || arm64

package sandbox

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/codexmcp/codexmcp/internal/paths"
)

// bounds limit the search for nested repositories, which precedes every command.
type bounds struct {
	entries      int           // how many files and folders
	repositories int           // how many repositories
	pathBytes    int           // their quoted paths, which become an argument of a program
	time         time.Duration // how long it takes
}

// protectNested protects the repositories in the writable folders. The thread tier protects
// none. If the search is not complete, the command would have less protection than the tier
// promises, so it must not run.
func (c *Confinement) protectNested() error {
	if c.tier != TierNamespaces {
		return nil
	}
	nested, err := nestedRepositories(c.roots.Paths, c.protect, bounds{
		entries: 1 << 20, repositories: 256, pathBytes: 64 << 10, time: 5 * time.Second,
	})
	if err != nil {
		return unavailable("namespaces: the git repositories in the writable folders cannot be protected: %v", err)
	}
	c.protect = append(c.protect, nested...)
	return nil
}

// nestedRepositories returns the paths to protect of the repositories in the folders, at any
// depth: every .git with what it leads to, and every bare repository. It follows no symbolic
// link, does not look into the folders of skip, and leaves out a repository that is one of the
// folders: only the user's own configuration can name it.
//
// The error says why the search was not complete. A folder that this process cannot read, and
// that a command could not enter or make readable either, does not count.
func nestedRepositories(folders, skip []string, b bounds) ([]string, error) {
	s := search{bounds: b, until: time.Now().Add(b.time), roots: folders, skip: skip}
	folders = slices.Clone(folders)
	slices.Sort(folders) // a folder before what lies in it
	var done []string
	for _, folder := range folders {
		if slices.ContainsFunc(done, func(other string) bool { return paths.Below(folder, other) }) {
			continue
		}
		done = append(done, folder)
		s.folders = append(s.folders, folder)
		for len(s.folders) > 0 {
			next := s.folders[len(s.folders)-1]
			s.folders = s.folders[:len(s.folders)-1]
			if err := s.look(next); err != nil {
				return nil, err
			}
		}
	}
	return s.found, nil
}

// search is a search for nested repositories.
type search struct {
	bounds
	until   time.Time
	roots   []string
	skip    []string
	folders []string // to look into
	found   []string
}

// look looks into one folder.
func (s *search) look(dir string) error {
	f, err := os.OpenFile(dir, unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP):
		return nil // it was removed or replaced meanwhile
	case errors.Is(err, unix.EACCES) && closed(dir):
		return nil
	case err != nil:
		return err
	}
	defer f.Close()
	var below []string
	var head, objects, refs bool
	for {
		entries, err := f.ReadDir(1024)
		if errors.Is(err, io.EOF) || errors.Is(err, unix.ENOENT) { // the folder was removed meanwhile
			break
		}
		if err != nil {
			return err
		}
		if s.entries -= len(entries); s.entries < 0 || time.Now().After(s.until) {
			return errors.New("they have too many files")
		}
		for _, entry := range entries {
			name := entry.Name()
			path := filepath.Join(dir, name)
			head, objects, refs = head || name == "HEAD", objects || name == "objects", refs || name == "refs"
			switch {
			case strings.EqualFold(name, ".git") && slices.Contains(s.roots, path):
			case strings.EqualFold(name, ".git"):
				if err := s.add(gitPaths(path)); err != nil {
					return err
				}
			case entry.IsDir():
				below = append(below, path)
			}
		}
	}
	if head && objects && refs {
		if slices.Contains(s.roots, dir) {
			return nil
		}
		return s.add([]string{dir})
	}
	for _, path := range below {
		if !slices.Contains(s.skip, path) {
			s.folders = append(s.folders, path)
		}
	}
	return nil
}

// closed reports whether a folder that this process cannot read is closed to its commands as
// well: they can neither enter it nor change its mode.
func closed(dir string) bool {
	var stat unix.Stat_t
	if err := unix.Lstat(dir, &stat); err != nil {
		return errors.Is(err, unix.ENOENT)
	}
	return int(stat.Uid) != os.Geteuid() && unix.Access(dir, unix.X_OK) != nil
}

// add adds the paths of one repository.
func (s *search) add(paths []string) error {
	if s.repositories--; s.repositories < 0 {
		return errors.New("they have too many git repositories")
	}
	for _, path := range paths {
		if s.pathBytes -= len(strconv.Quote(path)); s.pathBytes < 0 {
			return errors.New("the paths of their git repositories are too long")
		}
		if !utf8.ValidString(path) {
			return fmt.Errorf("%q is not valid UTF-8", path)
		}
	}
	s.found = append(s.found, paths...)
	return nil
}
