package tools

import (
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/internal/text"
)

// maxArgumentName is how many bytes of an unknown name an error repeats.
const maxArgumentName = 100

// nearest returns the name that was likely meant, or "". It prefers a name that differs
// only in case and separators, then one that begins with the other (sandbox_mode and
// sandbox), then one that ends with the other (reasoning_effort and effort), then the one
// with the fewest edits.
func nearest(name string, names []string) string {
	given := letters(name)
	for _, alike := range []func(want string) bool{
		func(want string) bool { return given == want },
		func(want string) bool {
			return len(given) >= 3 && (strings.HasPrefix(given, want) || strings.HasPrefix(want, given))
		},
		func(want string) bool {
			return min(len(given), len(want)) >= 5 && (strings.HasSuffix(given, want) || strings.HasSuffix(want, given))
		},
	} {
		if i := slices.IndexFunc(names, func(name string) bool { return alike(letters(name)) }); i >= 0 {
			return names[i]
		}
	}
	near := text.Nearest(given, func(yield func(string) bool) {
		for _, name := range names {
			if !yield(letters(name)) {
				return
			}
		}
	})
	if i := slices.IndexFunc(names, func(name string) bool { return letters(name) == near }); near != "" && i >= 0 {
		return names[i]
	}
	return ""
}

// letters drops case and separators.
func letters(s string) string {
	return strings.NewReplacer("-", "", "_", "", ".", "", " ", "").Replace(strings.ToLower(s))
}
