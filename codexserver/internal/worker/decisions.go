package worker

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"
)

// Decisions returns a writer of the log of decisions. Each write is a line, which is in the
// store when the write has returned nil. One goroutine at a time may write. It is nil for a nil
// Mirror.
func (m *Mirror) Decisions() io.Writer {
	if m == nil {
		return nil
	}
	return decisions{m}
}

type decisions struct{ m *Mirror }

// Write implements [io.Writer].
func (d decisions) Write(line []byte) (int, error) {
	path := filepath.Join(d.m.home, filepath.FromSlash(decisionFolder),
		time.Now().UTC().Format(time.DateOnly)+"-"+d.m.token+".jsonl")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return 0, err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return 0, err
	}
	n, err := f.Write(line)
	if err = errors.Join(err, f.Close()); err == nil {
		err = d.m.Sync(path)
	}
	return n, err
}
