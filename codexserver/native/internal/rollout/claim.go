package rollout

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/codexmcp/codexmcp/internal/claim"
	"github.com/codexmcp/codexmcp/internal/safefile"
)

// ErrClaimed reports a rollout that another writer has claimed, or that another program has locked. That needs no more
// than a command in the sandbox may do, which is to read the file. The two cannot be told apart for certain.
var ErrClaimed = errors.New("a turn of this conversation is running elsewhere, or a program holds its file")

// claimed returns [ErrClaimed] with the process that has locked a file, if the system tells.
func claimed(file fs.FileInfo) error {
	return fmt.Errorf("%w%s; it can continue here when that has ended", ErrClaimed, holder(file))
}

// patience is how long [Writer.Claim] waits for somebody who only looks, see [Claimed].
const patience = 50 * time.Millisecond

// Claim opens the file and locks it, until [Writer.Release] or the end of the process. It fails with
// [ErrClaimed] while another writer has it, of any process. After any other error it works without a lock, such as
// on a file system that has none. A file that cannot be opened is reported by the next write.
func (w *Writer) Claim() error {
	f, info, err := w.reopen()
	if err != nil {
		return nil
	}
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	err = claim.Wait(ctx, f)
	switch {
	case err == nil:
		w.held, w.heldInfo = f, info
		return nil
	case errors.Is(err, safefile.ErrLocked):
		err = claimed(info)
	default:
		err = fmt.Errorf("locking the conversation: %w", err)
	}
	return errors.Join(err, f.Close())
}

// Release ends a claim. It does nothing without one. An error means that lines may be lost.
func (w *Writer) Release() error {
	if w.held == nil {
		return nil
	}
	err := safefile.Unlock(w.held) // a process that is about to start may have a copy of the descriptor for a moment
	err = errors.Join(err, w.held.Close())
	w.held = nil
	return err
}

// Claimed returns [ErrClaimed] if a writer has claimed the rollout at path, otherwise nil.
func Claimed(path string) error {
	f, err := safefile.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close() // which unlocks it
	if errors.Is(safefile.Share(f), safefile.ErrLocked) {
		return claimed(f.Info())
	}
	return nil
}
