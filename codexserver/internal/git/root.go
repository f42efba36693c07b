package git

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/internal/safefile"
)

// maxSmallFile is the size of the largest configuration, or file with one line, in bytes.
const maxSmallFile = 1 << 20

// Root returns the top of the repository that contains dir, an absolute path, or "" outside a repository. That is the
// nearest folder whose .git is a repository for git. Others do not count: sandboxes leave an empty .git. At a .git file
// that leads nowhere git stops, and Root continues with the parent.
func Root(dir string) string {
	for !isTop(dir) {
		parent := filepath.Dir(dir)
		if parent == dir {
			return ""
		}
		dir = parent
	}
	return dir
}

// CommonDir returns the git folder that the working trees of the repository that contains dir share, or "".
func CommonDir(dir string) string {
	root := Root(dir)
	if root == "" {
		return ""
	}
	_, common, _ := folders(root)
	return common
}

// isTop reports whether the .git of a folder is a repository for git, which looks for objects, refs and a HEAD.
func isTop(dir string) bool {
	gitDir, commonDir, err := folders(dir)
	if err != nil {
		return false
	}
	for _, name := range []string{"objects", "refs"} {
		if info, err := os.Stat(filepath.Join(commonDir, name)); err != nil || !info.IsDir() {
			return false
		}
	}
	ref, commit, err := readHead(gitDir)
	return err == nil && (strings.HasPrefix(ref, "refs/") || len(commit) >= 40 && isHash(strings.ToLower(commit[:40])))
}

// readHead reads HEAD: the name of a ref, to which HEAD may also be a link, or else a commit.
func readHead(gitDir string) (ref, commit string, err error) {
	file := filepath.Join(gitDir, "HEAD")
	if target, err := os.Readlink(file); err == nil { // the branch may have no commit yet
		return filepath.ToSlash(target), "", nil
	}
	text, err := readLine(file)
	if name, ok := strings.CutPrefix(text, "ref:"); ok {
		return strings.TrimSpace(name), "", err
	}
	return "", text, err
}

// folders returns the git folder of the working tree at root, and the one that it shares with others, often the same.
func folders(root string) (gitDir, commonDir string, err error) {
	dot := filepath.Join(root, ".git")
	info, err := os.Stat(dot)
	if err != nil {
		return "", "", err
	}
	gitDir = dot
	if !info.IsDir() {
		if gitDir, err = box.Pointer(dot, "gitdir:"); err != nil {
			return "", "", err
		}
	}
	commonDir, err = box.Pointer(filepath.Join(gitDir, "commondir"), "")
	if errors.Is(err, fs.ErrNotExist) {
		commonDir, err = gitDir, nil
	}
	return gitDir, commonDir, err
}

func readLine(path string) (string, error) {
	data, err := safefile.Read(path, maxSmallFile)
	return strings.TrimSpace(string(data)), err
}

// isHash reports whether s is the name of an object in SHA-1 or SHA-256.
func isHash(s string) bool {
	return (len(s) == 40 || len(s) == 64) && strings.Trim(s, "0123456789abcdef") == ""
}
