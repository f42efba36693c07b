package config

import (
	"errors"
	"fmt"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/setting"
)

// Keep says how much is kept in files, and for how long.
type Keep struct {
	setting.Keep
	// Log is the size, in bytes, at which the log of approvals or a trace is renamed and begun
	// again. 0 means no limit.
	Log int64 `json:"log"`
}

// The defaults of the table keep.
var defaultKeep = Keep{setting.Keep{Worktrees: 30 * 24 * time.Hour, MaxWorktrees: 128}, 16 << 20}

// minLog is the least size of a log that is renamed: some lines fit.
const minLog = 4096

func (k Keep) check() error {
	switch {
	case k.Log < 0 || k.Log > 0 && k.Log < minLog:
		return fmt.Errorf("keep.log: want 0 or at least %d", minLog)
	case k.Worktrees > 0 && k.Worktrees < time.Hour:
		return errors.New("keep.worktrees: want 0 or at least 1h")
	case k.MaxWorktrees < 0:
		return errors.New("keep.max_worktrees: want 0 or more")
	}
	return nil
}
