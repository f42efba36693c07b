package patch

import (
	"slices"
	"strings"
)

// Within reports whether everything that the plan writes or removes lies below
// one of the folders, symbolic links followed. The folders are absolute.
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

// Touches reports whether something that the plan writes or removes is, or lies
// below, one of the paths, symbolic links followed and letter case ignored.
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
