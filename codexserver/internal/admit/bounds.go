package admit

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/internal/paths"
)

// Bounds are the folders in which the paths of calls must lie. Nil allows all paths.
type Bounds []string

// ErrOutside is in the error of a path outside the bounds.
var ErrOutside = errors.New("does not lie in one of the folders that the server's configuration allows you")

// Resolve returns the real path of path, free of symbolic links, and the folder of the
// bounds that contains it. Without bounds it returns path unchanged. The error for a path
// outside the bounds, with [ErrOutside], does not reveal whether it exists.
func (b Bounds) Resolve(path string) (real, folder string, err error) {
	if b == nil {
		return path, "", nil
	}
	real, err = filepath.EvalSymlinks(path)
	if err != nil && slices.ContainsFunc(b, func(folder string) bool { return paths.Below(path, folder) }) {
		return "", "", err
	}
	for _, folder := range b {
		if folder, failed := filepath.EvalSymlinks(folder); err == nil && failed == nil && paths.Below(real, folder) {
			return real, folder, nil
		}
	}
	return "", "", fmt.Errorf("%s %w", path, ErrOutside)
}

// Folder returns the working folder of a call, an absolute path, without the links on its way, so that none can lead
// elsewhere later.
func (r *Rules) Folder(cwd string) (string, error) {
	cwd, _, err := r.Bounds.Resolve(cwd)
	if err != nil {
		return "", fmt.Errorf("argument /cwd: %w", err)
	}
	return paths.Real(cwd), nil
}

// Repository refuses a working folder whose git repository has its top or its git folder outside the bounds.
func (r *Rules) Repository(dir string) error {
	if r.Bounds == nil {
		return nil
	}
	for _, path := range []string{git.Root(dir), git.CommonDir(dir)} {
		if _, _, err := r.Bounds.Resolve(path); path != "" && err != nil {
			return fmt.Errorf("argument /cwd: its git repository: %w", err)
		}
	}
	return nil
}

// Resumed refuses the working folder of a conversation that lies neither in the bounds nor in a worktree of a
// repository there. The conversation may be that of a user who could name other folders.
func (r *Rules) Resumed(dir string) error {
	if r.Bounds == nil {
		return nil
	}
	real, err := filepath.EvalSymlinks(dir)
	trees, none := filepath.EvalSymlinks(r.worktrees)
	if err == nil && none == nil && r.worktrees != "" && paths.Below(real, trees) {
		dir = git.CommonDir(real)
	}
	if _, _, err := r.Bounds.Resolve(dir); err != nil {
		return fmt.Errorf("argument /threadId: its folder: %w", err)
	}
	return nil
}
