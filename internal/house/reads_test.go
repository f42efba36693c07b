package house_test

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// readers are packages that may open files directly, because the files are their own or the
// kernel's. All other packages below codexserver use safefile.
var readers = []string{
	"internal/safefile/",
	"codexserver/internal/history/",                 // what a test's server has left
	"codexserver/internal/run/",                     // what /proc says of processes, folders as descriptors
	"codexserver/internal/box/",                     // folders as descriptors, what /proc says
	"codexserver/internal/mcp/process_linux.go",     // what /proc says of a process
	"codexserver/internal/servertest/",              // what tests look at
	"codexserver/cmd/codex-mcp/logfile.go",          // files that the user's flags name, for writing
	"codexserver/cmd/codex-mcp/internal/shared/",    // files in its own folder, what /proc says
	"codexserver/internal/git/mirror.go",            // folders and indexes of its own, for locking and writing
	"codexserver/internal/worker/decisions.go",      // a file of its own, for writing
	"codexserver/native/internal/rollout/writer.go", // conversations, for writing
	"codexserver/native/internal/rollout/lock.go",   // files of its own, for locking
}

// opening are the functions that can block or read without end.
var opening = map[string][]string{
	"os":     {"Open", "OpenFile", "ReadFile", "DirFS"},
	"ioutil": {"ReadFile"},
}

// A file whose name comes from a workspace, a configuration or a client can be a named pipe,
// a device or endless.
func TestFilesAreReadByOneReader(t *testing.T) {
	for _, s := range sources(t) {
		if s.test || !strings.HasPrefix(s.pkg+"/", "codexserver/") {
			continue
		}
		ast.Inspect(s.syntax, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			x, ok := sel.X.(*ast.Ident)
			if !ok || !slices.Contains(opening[x.Name], sel.Sel.Name) {
				return true
			}
			free := slices.ContainsFunc(readers, func(reader string) bool { return strings.HasPrefix(s.file, reader) })
			if !free || s.file == "codexserver/internal/box/protect.go" {
				t.Errorf("%s calls %s.%s: use package safefile", s.file, x.Name, sel.Sel.Name)
			}
			return true
		})
	}
}
