package worker

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/internal/paths"
	"github.com/codexmcp/codexmcp/internal/safefile"
)

// Options are the options of [Open]. Nil is valid.
type Options struct {
	// Timeout bounds each call of the store. 0 or less means 10s.
	Timeout time.Duration
	// Logger logs what was brought from the store and to it. Default: nothing is logged.
	Logger *slog.Logger
}

// Mirror sends what servers write in a home to a [Store]. It is safe for concurrent use. The
// methods of a nil Mirror do nothing: the files are all there is.
type Mirror struct {
	home    string
	real    string // home without symbolic links
	token   string // of this opening of the home
	store   Store
	timeout time.Duration
	log     *slog.Logger
	life    context.Context // ends with Close
	end     context.CancelFunc
	lost    chan struct{} // closed when this writer is fenced

	mu     sync.Mutex
	fenced bool
	paused time.Time // until then nothing is sent, for why
	why    error
	logs   map[string]*log
}

// log is a log as it is in the store.
type log struct {
	mu    sync.Mutex
	sent  int64       // its size there
	info  fs.FileInfo // of the file whose beginning that is; nil before the first Sync
	other bool        // it may be the beginning of another file
}

const (
	defaultTimeout = 10 * time.Second
	// pause is how long calls fail at once after one has timed out, so that a turn that
	// makes many ends soon.
	pause = time.Second
)

// Fenced returns a channel that is closed when another writer has taken over the store. What
// this process still does counts for nobody then, so it should end. For a nil Mirror it is nil.
func (m *Mirror) Fenced() <-chan struct{} {
	if m == nil {
		return nil
	}
	return m.lost
}

// ending is a store of which this process knows when nothing can reach it any more.
type ending interface{ Ended() <-chan struct{} }

// Err returns why the store never takes a write of this process again, or nil: another writer has
// taken over, or the connection to the store has ended, if the store has a method Ended() <-chan
// struct{} that says so. Then nothing may be written to the home either. The next process would
// take it for what happened, and send it.
func (m *Mirror) Err() error {
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fenced {
		return m.why
	}
	if e, ok := m.store.(ending); ok {
		select {
		case <-e.Ended():
			return fmt.Errorf("%w: its connection has ended", ErrUnavailable)
		default:
		}
	}
	return nil
}

// Close ends the calls of the store that are running, and makes others fail. It does not close
// the store.
func (m *Mirror) Close() {
	if m != nil {
		m.end()
	}
}

// Ready fails if the store would not take a write now. A server calls it before work begins.
func (m *Mirror) Ready(ctx context.Context) error {
	if m == nil {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return m.call(func(ctx context.Context) error { return m.store.Put(ctx, tokenName, []byte(m.token)) })
}

// call calls the store.
func (m *Mirror) call(f func(context.Context) error) error {
	m.mu.Lock()
	why := m.why
	if !m.fenced && time.Now().After(m.paused) {
		why = nil
	}
	m.mu.Unlock()
	if why != nil {
		return why
	}
	ctx, cancel := context.WithTimeout(m.life, m.timeout)
	defer cancel()
	err := f(ctx)
	if err == nil {
		return nil
	}
	late := ctx.Err() != nil
	if late && !errors.Is(err, ErrUnavailable) {
		err = fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case errors.Is(err, ErrFenced) && !m.fenced:
		m.fenced, m.why = true, err
		close(m.lost)
	case late && !m.fenced:
		m.paused, m.why = time.Now().Add(pause), err
	}
	return err
}

// name returns the name of a file of the home.
func (m *Mirror) name(path string) (string, error) {
	for _, home := range []string{m.home, m.real} {
		if rel, ok := paths.Within(path, home); ok {
			name := filepath.ToSlash(rel)
			return name, CheckName(name)
		}
	}
	return "", fmt.Errorf("%s is not in %s, and only files there are in the store", path, m.home)
}

// Put puts the record whose file will have some content. The caller writes the file when Put
// has returned nil.
func (m *Mirror) Put(path string, data []byte) error {
	if m == nil {
		return nil
	}
	name, err := m.name(path)
	if err != nil {
		return err
	}
	return m.call(func(ctx context.Context) error { return m.store.Put(ctx, name, data) })
}

// Delete removes a log or record from the store. The caller removes its file.
func (m *Mirror) Delete(path string) error {
	if m == nil {
		return nil
	}
	name, err := m.name(path)
	if err != nil {
		return err
	}
	m.mu.Lock()
	delete(m.logs, name)
	m.mu.Unlock()
	return m.call(func(ctx context.Context) error { return m.store.Delete(ctx, name) })
}

// Sync sends the lines of a log's file that the store lacks, with one call for each [MaxData].
// When it returns nil, the store has all whole lines that were in the file at the call. Another
// program may write to the file too.
func (m *Mirror) Sync(path string) error {
	if m == nil {
		return nil
	}
	return m.sync(path, path)
}

// logOf returns the log with a name.
func (m *Mirror) logOf(name string) *log {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.logs[name]
	if l == nil {
		l = &log{}
		m.logs[name] = l
	}
	return l
}

func (m *Mirror) sync(file, path string) error {
	name, err := m.name(path)
	if err != nil {
		return err
	}
	l := m.logOf(name)
	l.mu.Lock()
	defer l.mu.Unlock()
	f, err := safefile.Open(file)
	if err != nil {
		return err
	}
	err = m.send(l, name, f)
	return errors.Join(err, f.Close())
}

// send sends what the store lacks of a log. The caller holds l.mu.
func (m *Mirror) send(l *log, name string, f *safefile.File) error {
	info := f.Info()
	end, err := lineEnd(f, info.Size())
	if err != nil {
		return err
	}
	l.other = l.other || l.info != nil && !os.SameFile(l.info, info) || end < l.sent
	l.info = info
	if l.other {
		if err := m.putWhole(l, name, f, end); err != nil {
			return err
		}
	}
	for l.sent < end {
		data, err := readAt(f, l.sent, min(end-l.sent, MaxData))
		if err != nil {
			return err
		}
		err = m.call(func(ctx context.Context) error { return m.store.Append(ctx, name, l.sent, data) })
		switch {
		case errors.Is(err, ErrOrder):
			if err := m.compare(l, name, f, end); err != nil {
				return err
			}
		case err != nil:
			return err
		default:
			l.sent += int64(len(data))
		}
	}
	return nil
}

// compare finds out how much of a log is in the store, after an append of which it is not known
// whether it happened. A log that differs from the file is replaced.
func (m *Mirror) compare(l *log, name string, f *safefile.File, end int64) error {
	for same := l.sent; ; {
		var there []byte
		err := m.call(func(ctx context.Context) (err error) {
			there, err = m.store.Read(ctx, name, same, MaxData)
			return err
		})
		if err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
		if len(there) == 0 && same > l.sent {
			l.sent = same
			return nil
		}
		here, err := readAt(f, same, int64(len(there)))
		if len(there) == 0 || err != nil || !bytes.Equal(there, here) || same+int64(len(there)) > end {
			return m.putWhole(l, name, f, end)
		}
		same += int64(len(there))
	}
}

// putWhole replaces a log by the beginning of its file, which is the whole of most files.
func (m *Mirror) putWhole(l *log, name string, f *safefile.File, end int64) error {
	data, err := readAt(f, 0, min(end, MaxValue))
	if err != nil {
		return err
	}
	if err := m.call(func(ctx context.Context) error { return m.store.Put(ctx, name, data) }); err != nil {
		return err
	}
	l.sent, l.other = int64(len(data)), false
	return nil
}

func readAt(f *safefile.File, at, size int64) ([]byte, error) {
	data := make([]byte, size)
	n, err := f.ReadAt(data, at)
	if errors.Is(err, io.EOF) && n < len(data) {
		err = errors.New("the file became shorter while it was read")
	} else if n == len(data) {
		err = nil
	}
	return data, err
}

// lineEnd returns where the last whole line of a file ends.
func lineEnd(f *safefile.File, size int64) (int64, error) {
	block := make([]byte, 4<<10)
	for size > 0 {
		n := min(size, int64(len(block)))
		if _, err := f.ReadAt(block[:n], size-n); err != nil {
			return 0, err
		}
		if i := bytes.LastIndexByte(block[:n], '\n'); i >= 0 {
			return size - n + int64(i) + 1, nil
		}
		size -= n
	}
	return 0, nil
}

// newToken returns the token of an opening of a home.
func newToken() string { return strings.ToLower(rand.Text()) }
