package turnlog

import (
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/internal/git"
)

// showPath returns the path of a file whole, on one line. Git's quotes are around one with
// characters that a person would not see, or that begins with a quote, so that programs can
// read every path.
func showPath(path string) string {
	switch {
	case len(path) > MaxLooked:
		return Show(path, MaxPath)
	case strings.HasPrefix(path, `"`), Show(path, MaxLooked) != path:
		return git.Quote(path)
	}
	return path
}
