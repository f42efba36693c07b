package report

import (
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/internal/repo"
	"github.com/codexmcp/codexmcp/codexserver/internal/turnlog"
)

// showPath returns the path of a file whole, on one line. Git's quotes are around one with
// characters that a person would not see, or that begins with a quote, so that programs can
// read every path.
func showPath(path string) string {
	switch {
	case len(path) > turnlog.MaxLooked:
		return turnlog.Show(path, turnlog.MaxPath)
	case strings.HasPrefix(path, `"`), turnlog.Show(path, turnlog.MaxLooked) != path:
		return repo.Quote(path)
	}
	return path
}
