package turnlog

import (
	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// originOf returns the origin of a change. Said is what the turn's patches say about the file,
// or nil, and ran is true if the turn ran commands or tools.
func originOf(c git.Change, said *git.Change, ran bool) protocol.ChangeOrigin {
	switch {
	case said != nil && explains(said, c):
		return protocol.ByPatch
	case ran:
		return protocol.ByCommand
	}
	return protocol.ByOther
}

// explains reports whether patches have changed as many lines as a file shows.
func explains(said *git.Change, c git.Change) bool {
	return c.Lines != nil && said.Lines != nil && c.Lines.Added <= said.Lines.Added && c.Lines.Removed <= said.Lines.Removed
}
