package native

import (
	"cmp"
	"context"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/native/internal/rollout"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// Last is the newest conversation for [NamesOf].
const Last = "last"

// NamesOf returns what is known of a conversation in a home, of any engine, from its file, whoever wrote it: its id, its
// folder, what the user said first, and the names with which it ran. They choose nothing by themselves. The error wraps
// [engine.ErrNotFound] if there is no such conversation.
func NamesOf(
	ctx context.Context, home, id string,
) (about protocol.ConversationSummary, names protocol.Names, err error) {
	about.ConversationID = strings.ToLower(id)
	about.Path, err = rollout.Find(ctx, home, about.ConversationID)
	if id == Last {
		all, unread := rollout.Paths(ctx, home)
		for err = cmp.Or(unread, err); len(all) > 0 && err != nil; all = all[1:] {
			about, err = readHead(all[0]) // an error if the user has said nothing in it
		}
	}
	var r *rollout.Rollout
	if err == nil {
		r, err = load(about.Path)
	}
	if err != nil {
		return about, names, missing("conversation "+id, err)
	}
	if r.Meta.Kept != nil {
		names = r.Meta.Kept.Names
	}
	about.Cwd = r.Meta.Cwd
	names.Provider = cmp.Or(names.Provider, r.Meta.ModelProvider)
	if last := r.Context; last != nil {
		names.Model, names.Effort = cmp.Or(names.Model, last.Model), cmp.Or(names.Effort, last.Effort)
	}
	return about, names, nil
}
