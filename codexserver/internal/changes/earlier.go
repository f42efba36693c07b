package changes

import (
	"cmp"

	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// withEarlier adds the changes of an earlier process to those of this one.
func withEarlier(earlier, now []protocol.Change) []protocol.Change {
	seen := map[string]int{}
	all := make([]protocol.Change, 0, len(earlier)+len(now))
	for _, change := range append(append(all, earlier...), now...) {
		before, again := seen[cmp.Or(change.From, change.Path)]
		if !again {
			seen[change.Path] = len(all)
			all = append(all, change)
			continue
		}
		if added, removed := all[before].Added, all[before].Removed; change.Added != nil && change.Removed != nil &&
			added != nil && removed != nil {
			change.Added, change.Removed = new(*change.Added+*added), new(*change.Removed+*removed)
		}
		if all[before].Kind == string(git.Add) && change.Kind == string(git.Update) {
			change.Kind = string(git.Add)
		}
		all[before] = change
	}
	return all
}
