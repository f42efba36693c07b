package native

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/internal/paths"
	"github.com/codexmcp/codexmcp/internal/safefile"
)

// A repository can hold a symbolic link to a file with secrets, and instructions go to the
// model's provider. So links in a repository are followed only within it.

// openWithin opens the regular file at path. With symbolic links resolved, the file must
// be in the folder bound and outside of its git folder.
func openWithin(bound, path string) (*safefile.File, error) {
	if _, err := os.Lstat(path); err != nil { // most of the files that are looked for do not exist
		return nil, err
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, err
	}
	if bound, err = filepath.EvalSymlinks(bound); err != nil {
		return nil, err
	}
	rel, ok := paths.Within(real, bound)
	if !ok {
		return nil, fmt.Errorf("%s leads out of %s", path, bound)
	}
	if slices.ContainsFunc(strings.Split(rel, string(filepath.Separator)),
		func(name string) bool { return strings.EqualFold(name, ".git") }) {
		return nil, fmt.Errorf("%s leads into a git folder", path)
	}
	return openIn(bound, rel)
}

// openHere opens the regular file at path, which must not be a symbolic link.
func openHere(path string) (*safefile.File, error) {
	return openIn(filepath.Dir(path), filepath.Base(path))
}

func openIn(dir, rel string) (*safefile.File, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return safefile.OpenIn(root, rel, os.O_RDONLY)
}

// below reports whether path is the folder or in it, with symbolic links resolved. It is
// false when folder is "".
func below(path, folder string) bool {
	return folder != "" && paths.Below(paths.Real(path), paths.Real(folder))
}
