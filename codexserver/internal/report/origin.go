package report

import "github.com/codexmcp/codexmcp/codexserver/internal/repo"

// Origin says what of the turn may have made a change. The folder shows only what has changed.
type Origin string

// The origins.
const (
	ByPatch   Origin = "patch"   // a patch of the turn explains the change
	ByCommand Origin = "command" // the turn ran commands or tools
	ByOther   Origin = "other"   // the turn ran none
)

// Change is a change with its origin.
type Change struct {
	repo.Change
	Origin Origin
}

// originOf returns the origin of a change. Said is what the turn's patches say about the file,
// or nil, and ran is true if the turn ran commands or tools.
func originOf(c repo.Change, said *repo.Change, ran bool) Origin {
	switch {
	case said != nil && explains(said, c):
		return ByPatch
	case ran:
		return ByCommand
	}
	return ByOther
}

// explains reports whether patches have changed as many lines as a file shows.
func explains(said *repo.Change, c repo.Change) bool {
	return c.Lines != nil && said.Lines != nil && c.Lines.Added <= said.Lines.Added && c.Lines.Removed <= said.Lines.Removed
}
