package turnlog

import (
	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// changes are what a turn has changed.
type changes struct {
	from    protocol.ChangesSource
	list    []protocol.Change // sorted by path
	omitted int               // how many the log dropped
	unknown []protocol.Unknown
	untold  bool   // commands may have changed files, and the list does not show it
	diff    string // of a turn that has ended
}

// changed returns a change for the result.
func changed(c git.Change, by protocol.ChangeOrigin) protocol.Change {
	one := protocol.Change{Path: showPath(c.Path), Kind: string(c.Kind), By: by}
	if c.From != "" {
		one.From = showPath(c.From)
	}
	if c.Lines != nil {
		one.Added, one.Removed = new(c.Lines.Added), new(c.Lines.Removed)
	}
	return one
}

// unknown returns gaps for the result.
func unknown(gaps ...git.Gap) (list []protocol.Unknown) {
	for _, gap := range gaps {
		list = append(list, protocol.Unknown{Path: showPath(gap.Path), Why: Show(gap.Why, MaxWords)})
	}
	return list
}
