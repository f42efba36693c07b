package rollout

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/safefile"
)

// Path returns the path, below home, of the conversation id that starts at t. The folders
// and the name use local time.
func Path(home, id string, t time.Time) string {
	return filepath.Join(home, "sessions", t.Format("2006"), t.Format("01"), t.Format("02"),
		"rollout-"+t.Format("2006-01-02T15-04-05")+"-"+id+".jsonl")
}

// ErrGone reports that a rollout was removed, or has lost lines, since its writer last
// wrote to it.
var ErrGone = errors.New("the conversation's file was removed or cut")

// ErrChanged reports that another program has written to a rollout.
var ErrChanged = errors.New("another program has written to the conversation's file")

// Writer appends to a rollout. Its methods must not run at the same time: a conversation has one
// writer and calls it under the locks of its turn.
//
// It keeps the file open while it has claimed it, which is during a turn, and otherwise opens it for each
// write: an idle conversation holds no descriptor. It keeps the lines that it cannot write, and writes them
// before the next line.
type Writer struct {
	path  string
	store safefile.Mirror // nil for files alone

	counted bool  // next is known
	next    int64 // the number of the next line, 0 for a file without numbers

	held     *os.File    // the open file of a claim, or nil
	heldInfo fs.FileInfo // tells whether the path still leads to it

	lines  [][]byte    // not yet in the file
	info   fs.FileInfo // of the file
	size   int64       // of the file after the last write
	torn   bool        // that write may have left a part of a line
	other  bool        // another program has written to the file
	closed bool
	behind bool // the last Sync failed
}

// Create makes the rollout at path, which must not exist, with its first line, and claims it. If it fails
// it leaves no file. S also keeps the rollout, from the first Sync on; nil means that nothing
// else does.
func Create(path string, meta protocol.SessionMeta, s safefile.Mirror) (*Writer, error) {
	line, err := lineOf(protocol.RolloutSessionMeta, meta)
	if err != nil {
		return nil, fmt.Errorf("rollout: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("rollout: %w", err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("rollout: %w", err)
	}
	w := &Writer{path: path, store: s, counted: true, size: int64(len(line)), held: f}
	if w.heldInfo, err = f.Stat(); err == nil {
		_, err = f.Write(line)
	}
	if err != nil {
		return nil, fmt.Errorf("rollout: %w", errors.Join(err, f.Close(), os.Remove(path)))
	}
	_ = safefile.Lock(f) // a turn says it if the file system has no locks
	w.info = w.heldInfo
	return w, nil
}

// At returns a writer for the rollout at path. It does not touch the file: [Writer.Take] must come before the
// first line. S is that of [Create].
func At(path string, s safefile.Mirror) *Writer { return &Writer{path: path, store: s, torn: true} }

// Take continues a file that another writer has written: it cuts off a torn last line, and calls read. Unless
// read fails, the file counts as known up to where it ended before that.
func (w *Writer) Take(read func() error) error {
	var failed error
	err := w.open(func(_ *os.File, size int64) error {
		if failed = read(); failed == nil {
			w.size, w.other = size, false
		}
		return nil
	})
	return errors.Join(failed, err)
}

// open opens the file, unless it is claimed, cuts off a torn line, and calls do with the file's size.
func (w *Writer) open(do func(f *os.File, size int64) error) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("rollout: %w", err)
		}
	}()
	f, info := w.held, w.heldInfo
	if now, failed := os.Stat(w.path); f == nil || failed != nil || !os.SameFile(now, info) {
		if f, info, err = w.reopen(); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, f.Close()) }()
	} else {
		info = now
	}
	size, err := w.look(f, info)
	if err != nil {
		return err
	}
	return do(f, size)
}

// reopen opens the file that the path leads to now.
func (w *Writer) reopen() (f *os.File, info fs.FileInfo, err error) {
	if info, err = os.Stat(w.path); err == nil && info.Mode().IsRegular() { // opening a device can have effects
		if f, err = os.OpenFile(w.path, os.O_RDWR|os.O_APPEND, 0); err == nil {
			info, err = f.Stat()
		}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist) && w.size > 0:
		err = ErrGone
	case err == nil && !info.Mode().IsRegular():
		err = fmt.Errorf("%s is not a regular file", w.path)
	case err == nil:
		return f, info, nil
	}
	if f != nil {
		err = errors.Join(err, f.Close())
	}
	return nil, nil, err
}

// look compares the file with what it was after the last write.
func (w *Writer) look(f *os.File, info fs.FileInfo) (size int64, err error) {
	if size = info.Size(); w.torn {
		from, err := lineBefore(f, size)
		if err == nil && from < size {
			size, err = w.mend(f, from, size)
		}
		if err != nil {
			return 0, err
		}
		w.torn = false
	}
	if size < w.size {
		return 0, ErrGone
	}
	w.other = w.other || size > w.size || w.info != nil && !os.SameFile(w.info, info)
	w.info = info
	return size, nil
}

// mend ends the last line, which begins at from and has no line end. It cuts off one that is torn, and one of this writer, who
// writes it again.
func (w *Writer) mend(f *os.File, from, size int64) (int64, error) {
	if w.size == 0 && size-from <= maxLine {
		line := make([]byte, size-from)
		if _, err := f.ReadAt(line, from); err != nil {
			return 0, err
		}
		if whole(line) {
			n, err := f.Write([]byte{'\n'})
			return size + int64(n), err
		}
	}
	return from, f.Truncate(from)
}

// lineBefore returns where the line begins that has the byte before end.
func lineBefore(f io.ReaderAt, end int64) (int64, error) {
	block := make([]byte, 64<<10)
	for end > 0 {
		from := max(end-int64(len(block)), 0)
		part := block[:end-from]
		if _, err := f.ReadAt(part, from); err != nil {
			return 0, err
		}
		if i := bytes.LastIndexByte(part, '\n'); i >= 0 {
			return from + int64(i) + 1, nil
		}
		end = from
	}
	return 0, nil
}

// Path returns the path of the file.
func (w *Writer) Path() string {
	return w.path
}

// Item appends an item of the history.
func (w *Writer) Item(item protocol.ResponseItem) error {
	return w.append(protocol.RolloutResponseItem, item)
}

// Event appends an event.
func (w *Writer) Event(m protocol.EventMsg) error {
	return w.append(protocol.RolloutEventMsg, m)
}

// TurnContext appends the context of a request to the model.
func (w *Writer) TurnContext(c protocol.TurnContext) error {
	return w.append(protocol.RolloutTurnContext, c)
}

// Compacted appends the items that replace the history so far.
func (w *Writer) Compacted(c protocol.Compacted) error {
	return w.append(protocol.RolloutCompacted, c)
}

// append adds one line, and writes it with the lines that are not yet written.
func (w *Writer) append(t protocol.RolloutType, payload any) error {
	if w.closed {
		return fmt.Errorf("rollout: %w", os.ErrClosed)
	}
	line, err := lineOf(t, payload)
	if err != nil {
		return fmt.Errorf("rollout: %s: %w", t, err)
	}
	w.lines = append(w.lines, line)
	if w.behind { // otherwise a success would mean that the missing lines are there
		return w.Sync()
	}
	return w.flush()
}

// Sync writes the lines that could not be written before, and returns nil when the store has all
// lines. What depends on a line must not happen before.
func (w *Writer) Sync() error {
	if err := w.flush(); err != nil || w.store == nil {
		return err
	}
	err := w.store.Err() // also if there is nothing to write: the next server may have the conversation
	if err == nil {
		err = w.store.Sync(w.path)
	}
	if w.behind = err != nil; errors.Is(err, fs.ErrNotExist) {
		err = ErrGone
	}
	if err != nil {
		return fmt.Errorf("rollout: %w", err)
	}
	return nil
}

// flush writes all lines with one write.
func (w *Writer) flush() error {
	if len(w.lines) == 0 {
		return nil
	}
	if err := safefile.MirrorOf(w.store).Err(); err != nil { // the next server continues from what the store has
		return fmt.Errorf("rollout: %w", err)
	}
	return w.open(func(f *os.File, size int64) error {
		out, err := w.number(f, size)
		n := 0
		if err == nil {
			n, err = f.Write(out)
		}
		if n < len(out) && n > 0 { // such as on a disk that became full
			w.torn = true
			n = bytes.LastIndexByte(out[:n], '\n') + 1
		}
		w.size = size + int64(n)
		w.wrote(out, n)
		return err
	})
}

// Durable writes the lines that could not be written before, and returns nil when they survive a crash
// of the system, and the store has them.
func (w *Writer) Durable() error {
	if err := w.Sync(); err != nil {
		return err
	}
	return w.open(func(f *os.File, _ int64) error { return f.Sync() })
}

// Check writes the missing lines and compares the file with the last write. It returns nil
// when the file is unchanged and complete, [ErrGone], [ErrChanged], or the error of the
// write.
func (w *Writer) Check() error {
	if err := w.Sync(); err != nil {
		return err
	}
	err := w.open(func(*os.File, int64) error { return nil })
	if err == nil && w.other {
		err = ErrChanged
	}
	return err
}

// Close writes the missing lines, and ends a claim. An error means that they are lost.
func (w *Writer) Close() error {
	if w.closed {
		return nil
	}
	err := errors.Join(w.Sync(), w.Release())
	w.closed, w.lines = true, nil
	return err
}
