package native

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/rollout"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// Last is the newest conversation for [NamesOf].
const Last = "last"

// NamesOf returns what is known of a conversation in a home, of any engine, from its file, whoever wrote it: its id, what
// the user said first, and the names with which it ran. They choose nothing by themselves. The error wraps
// [engine.ErrNotFound] if there is no such conversation.
func NamesOf(ctx context.Context, home, id string) (about protocol.ConversationSummary, names protocol.Names, err error) {
	about.ConversationID = strings.ToLower(id)
	about.Path, err = rollout.Find(ctx, home, about.ConversationID)
	if id == Last {
		var all []string
		all, err = rollout.Paths(ctx, home)
		for i := 0; i < len(all) && (i == 0 || err != nil); i++ {
			about, err = readHead(all[i]) // an error if the user has said nothing in it
		}
	}
	r, unread := rollout.Load(about.Path)
	if err = cmp.Or(err, unread); errors.Is(err, fs.ErrNotExist) {
		err = engine.ErrNotFound
	}
	if err != nil {
		return about, names, fmt.Errorf("conversation %s: %w", id, err)
	}
	if r.Meta.Kept != nil {
		names = r.Meta.Kept.Names
	}
	names.Provider = cmp.Or(names.Provider, r.Meta.ModelProvider)
	if last := r.Context; last != nil {
		names.Model, names.Effort = cmp.Or(names.Model, last.Model), cmp.Or(names.Effort, last.Effort)
	}
	return about, names, nil
}
