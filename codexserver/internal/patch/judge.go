package patch

import (
	"slices"
	"strings"
)

// Within reports whether every file that the plan writes or removes lies below one of the
// folders, which are absolute. Symbolic links are followed.
func (p *Plan) Within(folders []string) bool {
	roots := resolveAll(folders)
	for _, file := range p.files {
		path := file.place().path
		if !slices.ContainsFunc(roots, func(root string) bool { return path != root && below(path, root) }) {
			return false
		}
	}
	return true
}

// Touches reports whether a file that the plan writes or removes is one of the paths, or
// lies below one. Symbolic links are followed, and letter case is ignored.
func (p *Plan) Touches(paths []string) bool {
	roots := resolveAll(paths)
	for i, root := range roots {
		roots[i] = strings.ToLower(root)
	}
	for _, file := range p.files {
		path := strings.ToLower(file.place().path)
		if slices.ContainsFunc(roots, func(root string) bool { return below(path, root) }) {
			return true
		}
	}
	return false
}
