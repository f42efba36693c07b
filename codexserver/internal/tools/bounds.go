package tools

import (
	"fmt"
	"path/filepath"

	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/internal/paths"
)

// bounds are the folders in which the paths of calls must lie. Nil allows all paths.
type bounds []string

// boundsError reports a path outside the bounds.
type boundsError struct{ path string }

func (e *boundsError) Error() string {
	return e.path + " does not lie in one of the folders that the server's configuration allows you"
}

// resolve returns the real path of path, free of symbolic links, and the folder of the
// bounds that contains it. Without bounds it returns path unchanged. The error for a path
// outside the bounds does not reveal whether it exists.
func (b bounds) resolve(path string) (real, folder string, err error) {
	if b == nil {
		return path, "", nil
	}
	real, err = filepath.EvalSymlinks(path)
	if err != nil && !b.names(path) {
		return "", "", &boundsError{path}
	}
	if err != nil {
		return "", "", err
	}
	for _, folder := range b {
		if folder, err = filepath.EvalSymlinks(folder); err == nil && paths.Below(real, folder) {
			return real, folder, nil
		}
	}
	return "", "", &boundsError{path}
}

// names reports whether a path lies in one of the folders by its name.
func (b bounds) names(path string) bool {
	for _, folder := range b {
		if paths.Below(path, folder) {
			return true
		}
	}
	return false
}

// repository refuses a folder whose git repository has its top outside the bounds.
func (b bounds) repository(dir string) error {
	if b == nil {
		return nil
	}
	root := git.Root(dir)
	if root == "" {
		return nil
	}
	if _, _, err := b.resolve(root); err != nil {
		return fmt.Errorf("its git repository: %w", err)
	}
	return nil
}

// all resolves each path of an argument.
func (b bounds) all(argument string, paths []string) ([]string, error) {
	for i, path := range paths {
		real, _, err := b.resolve(path)
		if err != nil {
			return nil, fmt.Errorf("argument /%s/%d: %w", argument, i, err)
		}
		paths[i] = real
	}
	return paths, nil
}

// read reads a regular file in the bounds, even if the path is changed meanwhile.
func (b bounds) read(path string, most int64) ([]byte, error) {
	real, folder, err := b.resolve(path)
	if err != nil {
		return nil, err
	}
	rel, err := filepath.Rel(folder, real)
	if err != nil {
		return nil, err
	}
	return readIn(folder, rel, most)
}
