package native

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/rollout"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/google/uuid"
)

// Fork implements [engine.Resumer]. The copy has what is in the file. If a turn is running
// there, the calls of that turn count as unfinished.
func (e *Engine) Fork(ctx context.Context, rolloutPath string, cfg protocol.Config, host engine.Host) (engine.Conversation, error) {
	old, err := load(rolloutPath)
	if err != nil {
		return nil, err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return nil, err
	}
	now := time.Now()
	meta := old.Meta
	meta.ID, meta.Timestamp, meta.ForkedFrom = id.String(), rollout.Timestamp(now), old.Meta.ID
	path := rollout.Path(e.options.CodexHome, meta.ID, now)
	if err := rollout.Fork(rolloutPath, path, meta); err != nil {
		return nil, err
	}
	c, err := e.Resume(ctx, path, cfg, host)
	if err != nil {
		return nil, errors.Join(err, os.Remove(path))
	}
	return c, nil
}
