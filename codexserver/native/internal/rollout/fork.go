package rollout

import (
	"errors"
	"fmt"
	"os"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/safefile"
)

// Fork makes the rollout at path, which must not exist, with the lines of the one at from.
// Meta replaces the first line. Another program may write to from: a part of a line at its end
// is left out, and so are lines that are too long. If Fork fails it leaves no file.
func Fork(from, path string, meta protocol.SessionMeta) (err error) {
	src, err := safefile.Open(from)
	if err != nil {
		return fmt.Errorf("rollout: %w", err)
	}
	defer src.Close()
	w, err := Create(path, meta, nil)
	if err != nil {
		return err
	}
	var failed error
	err = eachLine(src, func(line []byte) {
		if kind, _, ok := split(line); failed != nil || !ok || kind == protocol.RolloutSessionMeta {
			return
		}
		if w.lines = append(append(w.lines, line...), '\n'); len(w.lines) > 1<<20 {
			failed = w.Flush()
		}
	}, func() {}, func() {})
	if err = errors.Join(err, failed, w.Flush(), w.Close()); err != nil {
		return fmt.Errorf("rollout: %w", errors.Join(err, os.Remove(path)))
	}
	return nil
}
