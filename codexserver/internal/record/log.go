package record

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/codexmcp/codexmcp/internal/claim"
	"github.com/codexmcp/codexmcp/internal/safefile"
)

// Log is an [io.Writer] of lines to the file at a path, as [safefile.Log] writes them. A decision is on the
// disk when Write returns. One goroutine at a time may use it before its first line is written.
type Log struct {
	path string
	most int64
	file *safefile.Log // nil before the first line

	server string       // the id of the [Record] that writes here, a line at a time; "" without one
	alive  *claim.Owner // says that it lives; nil if that could not be said yet
	failed atomic.Bool  // a line could not be written
}

// New returns the log of a path. Its first line makes the file, and its folder. A file that would
// become larger than most bytes is renamed to the name with .1 first; 0 means no limit.
func New(path string, most int64) *Log { return &Log{path: path, most: most} }

// On returns the log in a file that is already open.
func On(file *safefile.Log) *Log { return &Log{file: file} }

// Open makes the file now.
func (l *Log) Open() error {
	if l.file != nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(l.path), 0o700); err != nil {
		return err
	}
	file, err := safefile.OpenLog(l.path, l.most)
	if err == nil {
		l.file = file
	}
	return err
}

var decidedMark = []byte(`{"event":"` + string(Decided) + `"`)

// Write implements [io.Writer] for one line with its end. After an error nothing of it is in the file.
func (l *Log) Write(line []byte) (int, error) {
	if err := l.Open(); err != nil {
		return 0, err
	}
	if l.server != "" && l.alive == nil {
		l.lives()
	}
	if bytes.HasPrefix(line, decidedMark) {
		return l.file.WriteSync(line)
	}
	n, err := l.file.Write(line)
	if err != nil {
		l.failed.Store(true)
	}
	return n, err
}

// Close closes the file, after it has ended what servers have left that do not live. Nothing may be written afterwards.
func (l *Log) Close() error {
	if l.file == nil {
		return nil
	}
	var err error
	if l.alive != nil {
		err = l.dies()
	}
	return errors.Join(err, l.file.Close())
}
