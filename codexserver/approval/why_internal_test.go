package approval

import (
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestWhy names the files of a patch that other programs run or obey: by their names, by the names that a move or a link
// gives them, and what the engine says of them.
func TestWhy(t *testing.T) {
	testenv.NeedsUnix(t, testenv.Paths)
	added := protocol.FileChange{Add: &protocol.FileContent{Content: "x\n"}}
	moved := func(to string) protocol.FileChange {
		return protocol.FileChange{Update: &protocol.FileUpdate{MovePath: &to}}
	}
	got := (Patch{
		Cwd: "/w",
		Changes: map[string]protocol.FileChange{
			"/w/src/a": added, "/w/Package.JSON": added, "/w/.github/workflows/x.yml": added, "/w/.git/hooks/x": added,
			"/w/b": moved("/w/sub/Makefile"), "/w/real": added, "/w/c": added,
		},
		Links: map[string]string{"/w/real": "/w/AGENTS.md"},
		Why:   map[string]string{"/w/c": "the engine says so"},
	}).Complete(false).(Patch).Why
	want := map[string]string{
		"/w/Package.JSON": othersStart, "/w/.github/workflows/x.yml": othersStart, "/w/.git/hooks/x": othersRun, "/w/sub/Makefile": othersStart,
		"/w/real": othersStart, "/w/c": "the engine says so",
	}
	must.Equal(t, "the reasons", want, got)
}
