package appserver

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/codexmcp/codexmcp/codexserver/internal/box"
)

// ownName is a part of what codex-mcp --version prints, even under another file name.
const ownName = "codex-mcp"

// errOwn means that the program codex is a link to codex-mcp, a copy of it or a script
// around it. Users make those for clients that always start codex.
var errOwn = errors.New("is codex-mcp itself, and not Codex")

// own returns errOwn with the program's path.
func own(path string) error { return fmt.Errorf("%s %w", path, errOwn) }

// Find returns the path of the codex program. It takes path, or $CODEX_BIN if that is
// empty, else the name codex. It searches for a name without a folder in the PATH, but not
// in folders for temporary files, and skips links to the running program. The error is a
// [*NotFoundError].
func Find(path string) (string, error) {
	return findFirst(&box.Programs{}, path)
}

func findFirst(programs *box.Programs, path string) (string, error) {
	paths, err := find(programs, path)
	if err != nil {
		return "", err
	}
	return paths[0], nil
}

// find returns all candidates of Find, in the order of the PATH, that no command can write.
func find(programs *box.Programs, path string) ([]string, error) {
	path = cmp.Or(path, os.Getenv("CODEX_BIN"), "codex")
	dir, err := os.Getwd()
	if err != nil && !filepath.IsAbs(path) {
		return nil, &NotFoundError{Path: path, Err: err}
	}
	programs.Given(dir) // where a repository may have brought a Codex along
	all, err := programs.FindAll(path, dir, os.Getenv("PATH"))
	var refused *box.ProgramError
	if errors.As(err, &refused) && isOwn(refused.Path) && filepath.Base(path) == path {
		err = own(refused.Path)
	}
	if err != nil {
		return nil, &NotFoundError{Path: path, Err: err}
	}
	if filepath.Base(path) != path {
		return all, nil
	}
	others := slices.DeleteFunc(slices.Clone(all), isOwn)
	if len(others) == 0 {
		return nil, &NotFoundError{Path: path, Err: own(all[len(all)-1])}
	}
	return others, nil
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
