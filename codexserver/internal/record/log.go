package record

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/codexmcp/codexmcp/internal/safefile"
)

// Log is an [io.Writer] of lines to the file at a path, as [safefile.Log] writes them. A decision is on the
// disk when Write returns. It is safe for concurrent use.
type Log struct {
	path string
	most int64

	mu   sync.Mutex
	file *safefile.Log // nil before the first line
}

// New returns the log of a path. Its first line makes the file, and its folder. A file that would
// become larger than most bytes is renamed to the name with .1 first; 0 means no limit.
func New(path string, most int64) *Log { return &Log{path: path, most: most} }

// Open makes the file now.
func (l *Log) Open() error {
	_, err := l.open()
	return err
}

func (l *Log) open() (*safefile.Log, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		return l.file, nil
	}
	if err := os.MkdirAll(filepath.Dir(l.path), 0o700); err != nil {
		return nil, err
	}
	var err error
	l.file, err = safefile.OpenLog(l.path, l.most)
	return l.file, err
}

// Write implements [io.Writer] for one line with its end. After an error nothing of it is in the file.
func (l *Log) Write(line []byte) (int, error) {
	file, err := l.open()
	if err != nil {
		return 0, err
	}
	return durable{file}.Write(line)
}

// Close closes the file. Nothing may be written afterwards.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	return l.file.Close()
}

// On returns a writer of lines to a file that is already open.
func On(file *safefile.Log) io.Writer { return durable{file} }

type durable struct{ file *safefile.Log }

var decidedMark = []byte(`{"event":"` + string(Decided) + `"`)

// Write implements [io.Writer].
func (d durable) Write(line []byte) (int, error) {
	if bytes.HasPrefix(line, decidedMark) {
		return d.file.WriteSync(line)
	}
	return d.file.Write(line)
}
