package changes

import (
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/internal/plain"
)

// maxShown is the length of the longest path that is shown whole, in bytes.
const maxShown = 8 << 10

// shown returns the path of a file whole, on one line. Git's quotes are around one with
// characters that a person would not see, or that begins with a quote, so that programs can
// read every path.
func shown(path string) string {
	switch {
	case len(path) > maxShown:
		return plain.Short(path, plain.MaxPath)
	case strings.HasPrefix(path, `"`), plain.Short(path, maxShown) != path:
		return git.Quote(path)
	}
	return path
}
