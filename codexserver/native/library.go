package native

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/rollout"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/google/uuid"
)

var _ engine.Library = (*Engine)(nil)

const defaultPageSize = 25

// List implements [engine.Library]. A conversation in which the user has said
// nothing yet is not in the list.
func (e *Engine) List(
	ctx context.Context, p protocol.ListConversationsParams,
) (*protocol.ListConversationsResult, error) {
	size := defaultPageSize
	if p.PageSize != nil {
		size = *p.PageSize
	}
	if size < 0 {
		return nil, &engine.RefusedError{Err: fmt.Errorf("pageSize: %d is less than 0", size)}
	}
	r := &protocol.ListConversationsResult{Items: []protocol.ConversationSummary{}}
	if size == 0 {
		return r, nil
	}
	if p.Cursor != "" && !isCursor(p.Cursor) {
		return nil, engine.ErrCursor
	}
	paths, err := rollout.Paths(ctx, e.options.CodexHome)
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		here := cursorOf(path)
		if p.Cursor != "" && here >= p.Cursor {
			continue
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		item, err := readHead(path)
		if err != nil {
			e.options.Logger.Debug("a rollout is left out of the list", "path", path, "error", err)
			continue
		}
		if rollout.Claimed(path) != nil {
			item.Holder = "a server where a turn runs"
		}
		r.Items = append(r.Items, item)
		r.NextCursor = &here
		if len(r.Items) == size {
			break
		}
	}
	return r, nil
}

// fileTime is the form of the time in a rollout's name.
const fileTime = "2006-01-02T15-04-05"

// cursorOf returns the cursor of the page that begins after a rollout. Cursors sort as
// their rollouts do.
func cursorOf(path string) string {
	name := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(path), "rollout-"), ".jsonl")
	return name[:len(fileTime)] + "|" + name[len(fileTime)+1:]
}

// isCursor reports whether a client's cursor has the form of [cursorOf].
func isCursor(text string) bool {
	at, id, _ := strings.Cut(text, "|")
	_, err := time.Parse(fileTime, at)
	return err == nil && uuid.Validate(id) == nil
}
