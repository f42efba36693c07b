package safefile

import (
	"context"
	"io"
)

// Mirror keeps what a server writes in its home elsewhere, too, so that another machine can go on with it. It is
// safe for concurrent use. Paths are those of files of the home.
type Mirror interface {
	// Ready fails if the mirror would not take a write now. A server calls it before work begins.
	Ready(ctx context.Context) error
	// Put keeps the content that a file will have. The caller writes the file when Put has returned nil.
	Put(path string, data []byte) error
	// Delete removes what is kept of a file. The caller removes the file.
	Delete(path string) error
	// Sync keeps all whole lines that a file has.
	Sync(path string) error
	// Err returns why the mirror never takes a write again, or nil. Then nothing may be written to the home either.
	Err() error
	// Decisions returns where decisions are kept, a line for each write, or nil. One goroutine at a time may write.
	Decisions() io.Writer
}

// NoMirror is a [Mirror] that keeps nothing: the files are all there is.
type NoMirror struct{}

var _ Mirror = NoMirror{}

// MirrorOf returns m, or [NoMirror] for nil.
func MirrorOf(m Mirror) Mirror {
	if m == nil {
		return NoMirror{}
	}
	return m
}

// Ready implements [Mirror].
func (NoMirror) Ready(context.Context) error { return nil }

// Put implements [Mirror].
func (NoMirror) Put(string, []byte) error { return nil }

// Delete implements [Mirror].
func (NoMirror) Delete(string) error { return nil }

// Sync implements [Mirror].
func (NoMirror) Sync(string) error { return nil }

// Err implements [Mirror].
func (NoMirror) Err() error { return nil }

// Decisions implements [Mirror].
func (NoMirror) Decisions() io.Writer { return nil }
