package git

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/internal/regularfile"
)

// maxSmallFile bounds a configuration, and a file that names a folder.
const maxSmallFile = 1 << 20

// Root returns the top of the repository that dir, an absolute path, is in: the
// nearest folder with a .git. It is "" outside a repository.
func Root(dir string) string {
	for {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return ""
		}
		dir = parent
	}
}

// Folders returns the git folder of the working tree at root, and the one that it
// shares with other working trees of the repository, often the same.
func Folders(root string) (gitDir, commonDir string, err error) {
	dot := filepath.Join(root, ".git")
	info, err := os.Stat(dot)
	if err != nil {
		return "", "", err
	}
	gitDir = dot
	if !info.IsDir() {
		if gitDir, err = Pointer(dot, "gitdir:"); err != nil {
			return "", "", err
		}
	}
	commonDir, err = Pointer(filepath.Join(gitDir, "commondir"), "")
	if errors.Is(err, fs.ErrNotExist) {
		commonDir, err = gitDir, nil
	}
	return gitDir, commonDir, err
}

// Pointer reads a file of git's that holds a path behind a prefix.
func Pointer(file, prefix string) (string, error) {
	data, err := regularfile.Read(file, maxSmallFile)
	if err != nil {
		return "", err
	}
	path, ok := strings.CutPrefix(string(data), prefix)
	path = strings.TrimSpace(path)
	if !ok || path == "" {
		return "", fmt.Errorf("%s names no folder", file)
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(file), path)
	}
	return path, nil
}
