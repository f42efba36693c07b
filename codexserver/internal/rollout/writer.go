package rollout

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// timestampLayout is that of the timestamps inside the file.
const timestampLayout = "2006-01-02T15:04:05.000Z"

// Timestamp writes a time as rollouts do.
func Timestamp(t time.Time) string { return t.UTC().Format(timestampLayout) }

// Path is where the conversation id that starts at t, in local time, is kept
// below home.
func Path(home, id string, t time.Time) string {
	return filepath.Join(home, "sessions", t.Format("2006"), t.Format("01"), t.Format("02"),
		"rollout-"+t.Format("2006-01-02T15-04-05")+"-"+id+".jsonl")
}

// Writer appends to a rollout. It is safe for concurrent use. After an error it
// writes nothing more and keeps returning the error.
type Writer struct {
	path string
	mu   sync.Mutex
	file *os.File
	err  error
	buf  []byte
}

// Create begins the rollout at path, which must not exist, with its first line.
func Create(path string, meta protocol.SessionMeta) (*Writer, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("rollout: %w", err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("rollout: %w", err)
	}
	w := &Writer{path: path, file: f}
	if err := w.appendJSON(protocol.RolloutSessionMeta, meta); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

// Open goes on with the rollout at path. A torn last line is cut off.
func Open(path string) (*Writer, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		return nil, fmt.Errorf("rollout: %w", err)
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(fmt.Errorf("rollout: %s is not a regular file", path), err, f.Close())
	}
	if err := cutTornLine(f); err != nil {
		return nil, errors.Join(fmt.Errorf("rollout: %w", err), f.Close())
	}
	return &Writer{path: path, file: f}, nil
}

// cutTornLine ends the file after its last line break.
func cutTornLine(f *os.File) error {
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	size := end
	block := make([]byte, 64<<10)
	for end > 0 {
		n := min(end, int64(len(block)))
		if _, err := f.ReadAt(block[:n], end-n); err != nil {
			return err
		}
		if i := bytes.LastIndexByte(block[:n], '\n'); i >= 0 {
			end += int64(i) + 1 - n
			break
		}
		end -= n
	}
	if end == size {
		return nil
	}
	return f.Truncate(end)
}

// Path is the file's.
func (w *Writer) Path() string { return w.path }

// Item appends an item of the history.
func (w *Writer) Item(item protocol.ResponseItem) error {
	return w.append(protocol.RolloutResponseItem, func(b []byte) ([]byte, error) { return protocol.AppendItem(b, item) })
}

// Event appends an event.
func (w *Writer) Event(m protocol.EventMsg) error {
	return w.append(protocol.RolloutEventMsg, func(b []byte) ([]byte, error) { return protocol.AppendEvent(b, m) })
}

// TurnContext appends what a model request is made under.
func (w *Writer) TurnContext(c protocol.TurnContext) error {
	return w.appendJSON(protocol.RolloutTurnContext, c)
}

// Compacted appends the replacement of all that came before.
func (w *Writer) Compacted(c protocol.Compacted) error {
	return w.appendJSON(protocol.RolloutCompacted, c)
}

// Line appends a line as it was in another rollout.
func (w *Writer) Line(l protocol.RolloutLine) error {
	return w.append(l.Type, func(b []byte) ([]byte, error) { return append(b, l.Payload...), nil })
}

func (w *Writer) appendJSON(t protocol.RolloutType, payload any) error {
	return w.append(t, func(b []byte) ([]byte, error) {
		raw, err := json.Marshal(payload, jsontext.AllowInvalidUTF8(true))
		return append(b, raw...), err
	})
}

// append writes one line with one write.
func (w *Writer) append(t protocol.RolloutType, payload func([]byte) ([]byte, error)) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	b := append(w.buf[:0], `{"timestamp":"`...)
	b = time.Now().UTC().AppendFormat(b, timestampLayout)
	b = append(b, `","type":"`...)
	b = append(b, t...)
	b = append(b, `","payload":`...)
	b, err := payload(b)
	if err != nil {
		return fmt.Errorf("rollout: %w", err) // this line alone is lost
	}
	b = append(b, "}\n"...)
	if _, err := w.file.Write(b); err != nil {
		w.err = fmt.Errorf("rollout: %w", err)
	}
	if w.buf = b; cap(b) > 1<<20 { // one long line is no reason to keep its memory
		w.buf = nil
	}
	return w.err
}

// Close closes the file.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.file == nil {
		return nil
	}
	err := w.file.Close()
	w.file, w.err = nil, os.ErrClosed
	return err
}
