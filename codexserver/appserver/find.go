package appserver

import (
	"cmp"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
)

// ownName is in what codex-mcp --version prints, by whatever name it was started.
const ownName = "codex-mcp"

// errOwn says that a program called codex is codex-mcp, by a link, a copy or a
// script: clients whose command line cannot be changed are served that way.
var errOwn = errors.New("is codex-mcp itself, and not Codex")

// Find returns the path of the codex program: path itself, or $CODEX_BIN when it
// is empty, or else codex; a name without a folder is looked for in the PATH,
// where links to the running program are passed over. The error is a
// [*NotFoundError].
func Find(path string) (string, error) {
	paths, err := find(path)
	if err != nil {
		return "", err
	}
	return paths[0], nil
}

// find returns all programs that Find may mean, the first of the PATH first.
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
		if !filepath.IsAbs(dir) { // what it holds depends on where the server was started
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
