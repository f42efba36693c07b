package link

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"sync"
	"time"
)

// end is one side of an exchange.
type end struct {
	exchange string
	send     func(frame []byte) error // to the other side
	client   bool                     // this is the side of the client

	in     chan frame    // heads, parts and ends; has room for all that the other side may send
	done   chan struct{} // closed when err is set
	credit chan struct{} // holds a token for each part that may be sent

	mu       sync.Mutex
	sent     uint64 // the number of the next frame to send
	expected uint64 // the number of the next frame to receive
	heard    time.Time
	whole    bool // the server has sent everything, and forgets the exchange
	err      error

	// Only the reader uses these.
	part   []byte // the rest of the part that is read
	passed uint64 // parts that were passed on, and not acknowledged
	ended  error  // what read returns after the last part; nil before
}

var (
	// ErrLost means that the other side has ended, or cannot be reached. It may have
	// carried out the request.
	ErrLost = errors.New("the other side of the exchange was lost")
	// ErrGap means that a frame was lost, came twice, or came out of order.
	ErrGap = errors.New("frames of the exchange are missing")
	// ErrClosed means that this side was closed.
	ErrClosed = errors.New("the exchange was closed")

	errOverrun = errors.New("the other side sent more than it may")
	errLeft    = errors.New("the client has left")
)

func newEnd(exchange string, now time.Time, send func([]byte) error) *end {
	e := &end{
		exchange: exchange, send: send, heard: now,
		in: make(chan frame, window+4), done: make(chan struct{}), credit: make(chan struct{}, window),
	}
	for range window {
		e.credit <- struct{}{}
	}
	return e
}

// write sends a frame. After a failure it sends only those that end the exchange for the other
// side too.
func (e *end) write(k kind, payload []byte) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err != nil && k != kindEnd && k != kindCancel {
		return e.err
	}
	b := frame{k, e.sent, payload}.append(make([]byte, 0, frameHeader+len(payload)))
	if err := e.send(b); err != nil {
		return err
	}
	e.sent++
	return nil
}

// writeBody sends data as parts, and waits while the window is full.
func (e *end) writeBody(ctx context.Context, data []byte) (n int, err error) {
	for len(data) > 0 {
		select {
		case <-e.credit:
		case <-e.done:
			return n, e.failure()
		case <-ctx.Done():
			return n, context.Cause(ctx)
		}
		part := data[:min(len(data), maxChunk)]
		if err := e.write(kindBody, part); err != nil {
			return n, err
		}
		n, data = n+len(part), data[len(part):]
	}
	return n, nil
}

// writeEnd sends the end of the body. reason says why the body is not complete.
func (e *end) writeEnd(reason string) error {
	return e.write(kindEnd, []byte(reason[:min(len(reason), maxReason)]))
}

// receive handles a frame. It does not wait.
func (e *end) receive(data []byte, now time.Time) {
	f, err := parseFrame(data)
	if err != nil {
		e.fail(err)
		return
	}
	e.mu.Lock()
	late := f.number != e.expected
	e.expected++
	e.heard = now
	e.whole = e.client && f.kind == kindEnd
	e.mu.Unlock()
	if late {
		e.fail(ErrGap)
		return
	}
	switch f.kind {
	case kindAlive:
	case kindCancel:
		e.fail(errLeft)
	case kindAck:
		for range min(binary.BigEndian.Uint64(f.payload), window) {
			select {
			case e.credit <- struct{}{}:
			default:
				e.fail(errOverrun)
				return
			}
		}
	default:
		select {
		case e.in <- f:
		default:
			e.fail(errOverrun)
		}
	}
}

// next returns the next frame that has content.
func (e *end) next(ctx context.Context) (frame, error) {
	select { // what has arrived comes before a failure
	case f := <-e.in:
		return f, nil
	default:
	}
	select {
	case f := <-e.in:
		return f, nil
	case <-e.done:
		return frame{}, e.failure()
	case <-ctx.Done():
		return frame{}, context.Cause(ctx)
	}
}

// read reads the body. Parts are acknowledged when the next one is asked for, because the
// caller has passed them on by then.
func (e *end) read(ctx context.Context, p []byte) (int, error) {
	if len(e.part) == 0 {
		if e.ended != nil {
			return 0, e.ended
		}
		e.acknowledge()
		f, err := e.next(ctx)
		if err != nil {
			return 0, err
		}
		switch {
		case f.kind == kindBody:
			e.part = f.payload
			e.passed++
		case f.kind == kindEnd && len(f.payload) == 0:
			e.ended = io.EOF
			return 0, io.EOF
		case f.kind == kindEnd:
			e.ended = &IncompleteError{string(f.payload)}
			return 0, e.ended
		default:
			e.fail(errFrame)
			return 0, errFrame
		}
	}
	n := copy(p, e.part)
	e.part = e.part[n:]
	return n, nil
}

// acknowledge reports the parts that were passed on, if they are half of the window.
func (e *end) acknowledge() {
	if e.passed < window/2 {
		return
	}
	n := binary.BigEndian.AppendUint64(nil, e.passed)
	e.passed = 0
	_ = e.write(kindAck, n) // fails if the exchange has ended, whose last parts can still be read
}

// fail ends the exchange on this side. Only the first error counts.
func (e *end) fail(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err == nil {
		e.err = err
		close(e.done)
	}
}

func (e *end) failure() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.err
}

// beat sends a frame, or fails if the other side has been silent since before.
func (e *end) beat(before time.Time) {
	e.mu.Lock()
	silent, whole := e.heard.Before(before), e.whole
	e.mu.Unlock()
	if whole {
		return
	}
	if silent {
		e.fail(ErrLost)
		return
	}
	_ = e.write(kindAlive, nil) // an error of the connection ends the exchange by the silence
}

// IncompleteError means that a body is not complete.
type IncompleteError struct{ Reason string }

// Error implements error.
func (e *IncompleteError) Error() string { return "the body is not complete: " + e.Reason }

// ends are the open ends of a client or a server, by exchange.
type ends struct {
	mu     sync.Mutex
	open   map[string]*end
	closed bool
	empty  chan struct{} // closed when no end is open; nil unless somebody waits
}

// add adds an end. It fails if the exchange exists, or if there are too many.
func (o *ends) add(e *end, limit int) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed || o.open[e.exchange] != nil || len(o.open) >= limit {
		return false
	}
	if o.open == nil {
		o.open = map[string]*end{}
	}
	o.open[e.exchange] = e
	return true
}

func (o *ends) find(exchange string) *end {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.open[exchange]
}

func (o *ends) remove(e *end) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.open, e.exchange)
	if len(o.open) == 0 && o.empty != nil {
		close(o.empty)
		o.empty = nil
	}
}

// wait waits until no end is open, or until ctx ends.
func (o *ends) wait(ctx context.Context) error {
	for {
		o.mu.Lock()
		if len(o.open) == 0 {
			o.mu.Unlock()
			return nil
		}
		if o.empty == nil {
			o.empty = make(chan struct{})
		}
		empty := o.empty
		o.mu.Unlock()
		select {
		case <-empty:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// all returns the open ends.
func (o *ends) all() (open []*end) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, e := range o.open {
		open = append(open, e)
	}
	return open
}

// close makes add fail, and ends the open ends.
func (o *ends) close() {
	o.mu.Lock()
	o.closed = true
	o.mu.Unlock()
	for _, e := range o.all() {
		e.fail(ErrClosed)
	}
}

// beat sends heartbeats until ctx ends.
func (o *ends) beat(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	last := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			now := time.Now()
			o.beatAll(now, last, every)
			last = now
		}
	}
}

// beatAll sends a heartbeat to each other side, or gives it up if it has been silent for three of
// them. For as long as this process did not run since the last time, it has heard nobody.
func (o *ends) beatAll(now, last time.Time, every time.Duration) {
	held := max(now.Sub(last)-every, 0)
	for _, e := range o.all() {
		e.beat(now.Add(-3*every - held))
	}
}
