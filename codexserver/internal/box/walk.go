package box

import (
	"io/fs"
	"os"
	"slices"

	"github.com/codexmcp/codexmcp/internal/paths"
)

// Reaches reports whether one of the folders, whatever its name, is on the way to an absolute path, link by link, or the
// way cannot be followed.
func Reaches(path string, folders ...string) bool { return leadsThrough(path, existing(folders)) }

// leadsThrough is Reaches for folders as they are.
func leadsThrough(path string, folders []os.FileInfo) bool {
	passed, err := passes(path, folders)
	return passed || err != nil
}

// passes reports whether one of the folders is on the way to path, as far as that exists.
func passes(path string, folders []os.FileInfo) (passed bool, err error) {
	_, _, err = paths.Follow(path, func(_ string, info fs.FileInfo) error {
		passed = passed || isOneOf(folders, info)
		return nil
	})
	return passed, err
}

// below reports whether a path is folder, or lies in it.
func below(path, folder string) bool {
	passed, _ := passes(path, existing([]string{folder}))
	return passed
}

func existing(paths []string) (folders []os.FileInfo) {
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil {
			folders = append(folders, info)
		}
	}
	return folders
}

// without returns the folders that are not at the paths.
func without(folders []os.FileInfo, paths ...string) []os.FileInfo {
	others := existing(paths)
	return slices.DeleteFunc(folders, func(folder os.FileInfo) bool { return isOneOf(others, folder) })
}

func isOneOf(folders []os.FileInfo, info os.FileInfo) bool {
	return slices.ContainsFunc(folders, func(other os.FileInfo) bool { return os.SameFile(other, info) })
}
