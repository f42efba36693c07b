package patch

import (
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/internal/paths"
)

// Within reports whether every file that the plan writes or removes lies below one of the
// folders, which are absolute. Symbolic links are followed.
func (p *Plan) Within(folders []string) bool {
	roots := resolveAll(folders)
	for _, file := range p.files {
		path := file.place().path
		if !slices.ContainsFunc(roots, func(root string) bool { return path != root && paths.Below(path, root) }) {
			return false
		}
	}
	return true
}

// Touches reports whether a file that the plan writes or removes is one of the places, or
// lies below one. Symbolic links are followed, and letter case is ignored.
func (p *Plan) Touches(places []string) bool { return len(p.Touched(places)) > 0 }

// Touched returns the files for which [Plan.Touches] is true, by the paths of [Plan.Changes].
func (p *Plan) Touched(places []string) (touched []string) {
	roots := resolveAll(places)
	for i, root := range roots {
		roots[i] = strings.ToLower(root)
	}
	for _, file := range p.files {
		path := strings.ToLower(file.place().path)
		if slices.ContainsFunc(roots, func(root string) bool { return paths.Below(path, root) }) {
			touched = append(touched, file.shown)
		}
	}
	return touched
}
