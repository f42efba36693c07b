package jsonrpc

import (
	"bytes"
	"context"
	"io"
	"sync"
)

// Pipe returns two transports connected in memory, which block on channels only, as testing/synctest
// needs. After one is closed the other reads the rest, then io.EOF.
func Pipe() (Transport, Transport) {
	ab, ba := make(chan [][]byte, pipeDepth), make(chan [][]byte, pipeDepth)
	a := &pipe{in: ba, out: ab, closed: make(chan struct{})}
	b := &pipe{in: ab, out: ba, closed: make(chan struct{})}
	a.other, b.other = b.closed, a.closed
	return a, b
}

// pipeDepth is how many writes a pipe holds before the next one waits.
const pipeDepth = 16

// pipe is one end. Each end has a channel of its own that it closes, and sees the other's. The
// channels with messages are never closed, because a writer could not know.
type pipe struct {
	in     <-chan [][]byte
	out    chan<- [][]byte
	rest   [][]byte // of the last write received
	waits  func()   // see beforeWait
	once   sync.Once
	closed chan struct{} // this end's
	other  <-chan struct{}
}

// Read returns what was written before the other end was closed, also if this end was closed
// meanwhile: what is there already comes first.
func (t *pipe) Read(context.Context) ([]byte, error) {
	for len(t.rest) == 0 {
		// First without waiting: of several ready cases a select chooses any, and messages come
		// before the end.
		select {
		case t.rest = <-t.in:
			continue
		default:
		}
		if t.waits != nil {
			t.waits()
		}
		select {
		case t.rest = <-t.in:
		case <-t.closed:
			return nil, io.ErrClosedPipe
		case <-t.other:
			select {
			case t.rest = <-t.in: // written before the end
			default:
				return nil, io.EOF
			}
		}
	}
	// Read is called by one goroutine at a time, so rest needs no lock.
	m := t.rest[0]
	t.rest[0] = nil // an idle pipe must not hold it
	t.rest = t.rest[1:]
	return m, nil
}

// Write hands all messages over as one, and waits if the pipe is full. It copies them, since the
// slices are only lent.
func (t *pipe) Write(_ context.Context, messages [][]byte) error {
	batch := make([][]byte, len(messages))
	for i, m := range messages {
		batch[i] = bytes.Clone(m)
	}
	// Looked at first, because a select with several ready cases chooses any of them: a write
	// after Close must fail even if there is room.
	select {
	case <-t.closed:
		return io.ErrClosedPipe
	case <-t.other:
		return io.ErrClosedPipe
	default:
	}
	select {
	case t.out <- batch:
		return nil
	case <-t.closed:
	case <-t.other:
	}
	return io.ErrClosedPipe
}

// more implements looker.
func (t *pipe) more() bool { return len(t.rest) > 0 || len(t.in) > 0 }

func (t *pipe) beforeWait(f func()) { t.waits = f }

// prompts implements prompter.
func (t *pipe) prompts() bool { return true }

// prompt implements prompter. There is room unless another goroutine writes.
func (t *pipe) prompt(messages [][]byte) (int, error) {
	if len(t.out) == cap(t.out) {
		return 0, nil
	}
	return len(messages), t.Write(context.Background(), messages)
}

func (t *pipe) Close() error {
	t.once.Do(func() { close(t.closed) })
	return nil
}
