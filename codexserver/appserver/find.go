package appserver

import (
	"cmp"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
)

// ownName is a part of what codex-mcp --version prints, even under another file name.
const ownName = "codex-mcp"

// errOwn means that the program codex is a link to codex-mcp, a copy of it or a script
// around it. Users make those for clients that always start codex.
var errOwn = errors.New("is codex-mcp itself, and not Codex")

// Find returns the path of the codex program. It takes path, or $CODEX_BIN if that is
// empty, else the name codex. It searches for a name without a folder in the PATH and
// skips links to the running program. The error is a [*NotFoundError].
func Find(path string) (string, error) {
	paths, err := find(path)
	if err != nil {
		return "", err
	}
	return paths[0], nil
}

// find returns all candidates of Find, in the order of the PATH.
func find(path string) ([]string, error) {
	path = cmp.Or(path, os.Getenv("CODEX_BIN"), "codex")
	if filepath.Base(path) != path {
		found, err := exec.LookPath(path)
		if err == nil {
			found, err = filepath.Abs(found)
		}
		if err != nil {
			return nil, &NotFoundError{Path: path, Err: err}
		}
		return []string{found}, nil
	}
	var all []string
	var own error
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if !filepath.IsAbs(dir) { // it depends on the working folder, which may be a repository
			continue
		}
		found, err := exec.LookPath(filepath.Join(dir, path))
		switch {
		case err != nil:
		case isOwn(found):
			own = &os.PathError{Op: "start", Path: found, Err: errOwn}
		default:
			all = append(all, found)
		}
	}
	if len(all) == 0 {
		return nil, &NotFoundError{Path: path, Err: cmp.Or(own, error(&exec.Error{Name: path, Err: exec.ErrNotFound}))}
	}
	return all, nil
}

// isOwn reports whether path is the running program, by any link.
func isOwn(path string) bool {
	self, err := os.Executable()
	if err != nil {
		return false
	}
	a, err := os.Stat(self)
	if err != nil {
		return false
	}
	b, err := os.Stat(path)
	return err == nil && os.SameFile(a, b)
}
