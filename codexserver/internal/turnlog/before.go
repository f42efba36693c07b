package turnlog

import (
	"cmp"
	"errors"

	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// errCut is why it is not known what a turn's commands changed that two processes ran.
var errCut = errors.New("the server ended during the turn, and what was there before it is not known any more")

// withEarlier adds the changes of an earlier process to those of this one.
func (t *Turn) withEarlier(now []protocol.Change) []protocol.Change {
	seen := map[string]int{}
	all := make([]protocol.Change, 0, len(t.tree.earlier)+len(now))
	for _, change := range append(append(all, t.tree.earlier...), now...) {
		before, again := seen[cmp.Or(change.From, change.Path)]
		if !again {
			seen[change.Path] = len(all)
			all = append(all, change)
			continue
		}
		if added, removed := all[before].Added, all[before].Removed; change.Added != nil && change.Removed != nil && added != nil && removed != nil {
			change.Added, change.Removed = new(*change.Added+*added), new(*change.Removed+*removed)
		}
		if all[before].Kind == string(git.Add) && change.Kind == string(git.Update) {
			change.Kind = string(git.Add)
		}
		all[before] = change
	}
	return all
}
