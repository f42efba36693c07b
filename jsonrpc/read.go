package jsonrpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// reading decides which goroutine reads, and what a request that arrives alone costs.
//
// Between processes a call is dominated by the waking of threads. A goroutine for the
// handler of a lone request wakes one, while the reader goes to sleep. So the reader runs
// that handler itself, if its method has proved to be quick, and then continues to read:
// a call needs one goroutine and no hand-over. Meanwhile the reading is lent, and the
// first to take it back is the reader from then on:
//
//   - the goroutine itself, when its handler has returned;
//   - a call, whose answer has to be read, see Call.await;
//   - the watch, when the handler has kept the reading for one to two
//     patiences.
//
// In the latter two cases nothing was saved, and the method has to prove itself for
// longer. So has one with a handler that took longer than a millisecond, because others
// waited for it.
//
// A handler that calls the other side back need not hand the reading over either: its call
// borrows it, and reads until its own answer is there, see borrow.
//
// Only transports over descriptors lend: in memory there is no thread to wake, and under
// testing/synctest messages are to be read without time passing.
type reading struct {
	drained func() bool   // nothing more has been read from the descriptor; nil if reading is never lent
	over    chan struct{} // closed by the last reader; nil if the transport pushes

	// For a transport that pushes: nothing reads then, and the goroutines that call pushed
	// take turns. This lock is the outermost. The others of the peer are taken under it,
	// and inline handlers and hooks run under it, as they run on the reader's goroutine
	// otherwise. So nothing but pushed may take it.
	push struct {
		sync.Mutex
		ended bool // nothing is accepted any more
	}

	// The reading has one owner at any time. It changes only by a compare and swap of this, so
	// that of several goroutines only one becomes the reader.
	owner    atomic.Int32
	stop     interrupter   // the transport; nil if its Read cannot be interrupted
	lendings atomic.Uint64 // how often it was lent; shows the watch whether anything has moved
	method   *method       // of the lent reading; belongs to the goroutine that takes it back

	// The watch is one timer that runs while there is something to lend. Arming one for
	// each request would wake a thread too, and a timer that is due soon slows down every
	// wait for a descriptor: a patience of 1 ms saves nothing.
	watch    *time.Timer
	watching atomic.Bool
	seen     uint64 // lendings at the last look
}

// The values of reading.owner.
const (
	held     = iota // by the reader
	lent            // the reader is in a handler, and nothing reads
	borrowed        // the reader is in a handler, and a call of that handler reads
)

const (
	quick    = 100 * time.Microsecond // what a handler may take on the reader's goroutine
	slow     = time.Millisecond       // a handler that takes more loses its method's place there
	proof    = 16                     // quick requests after which the reader handles a method; a slow one takes away as many
	longer   = 1024                   // more of them after a handler that lost its place
	patience = 10 * time.Millisecond
)

// method is what a peer remembers of a method.
type method struct {
	name string
	// Quick requests, less proof for each that was not; less than 0 after the method has lost its
	// place on the reader.
	streak atomic.Int32
}

// took notes how long a handler computed. On a busy machine a quick one may take a little longer
// now and then; it is still better handled by the reader. A slow one delays what comes behind it,
// and a method that is slow once in a hundred requests would do so for good: it gets its place
// back only after many requests without a slow one. Requests of the same method may do so at the same
// time; an update that is lost only delays or hastens the proof by one.
func (m *method) took(d time.Duration) {
	switch n := m.streak.Load(); {
	case d > slow:
		m.streak.Store(-longer)
	case d <= quick && n < 4*proof:
		m.streak.Add(1)
	case d > quick && n > 0:
		m.streak.Add(-min(n, proof))
	}
}

// drainer is a transport over a descriptor. Only there does lending save anything, and only
// the transport can see that a message is the last of those that were read together.
type drainer interface {
	// drained reports whether everything read from the descriptor has been
	// returned by Read.
	drained() bool
}

// interrupter is a drainer whose Read can be interrupted. Otherwise no call could borrow the
// reading: it could not return when its context ends.
type interrupter interface {
	// interrupt makes Read return errInterrupted until resume is called. It reports whether
	// it can, which does not change.
	interrupt() bool
	resume()
}

var errInterrupted = errors.New("read interrupted")

// start prepares lending, if the transport is over a descriptor. It is called before the first
// reader starts.
func (g *reading) start(t Transport, takeOver func()) {
	if d, ok := t.(drainer); ok {
		g.drained = d.drained
		if i, ok := t.(interrupter); ok {
			if i.interrupt() {
				g.stop = i
			}
			i.resume()
		}
		g.watch = time.AfterFunc(time.Hour, func() { g.look(takeOver) })
		g.watch.Stop()
	}
}

// end ends the watch. A look that is running finds nothing lent.
func (g *reading) end() {
	if g.watch != nil {
		g.watch.Stop()
	}
}

// lend lets others read while the reader handles a request of m.
func (g *reading) lend(m *method) {
	// Before owner is set: the goroutine that takes the reading back reads method.
	g.method = m
	g.lendings.Add(1)
	g.owner.Store(lent)
	g.watched()
}

// watched lets the watch run.
func (g *reading) watched() {
	// After owner is set, because look reads the two in the opposite order: at least one side
	// sees what the other has done.
	if !g.watching.Load() {
		g.watching.Store(true)
		g.watch.Reset(patience)
	}
}

// takeBack makes the caller the reader if it reports true.
// The load first, because it is cheaper than a swap that fails, and mostly nothing is
// lent.
func (g *reading) takeBack() bool {
	return g.owner.Load() == lent && g.owner.CompareAndSwap(lent, held)
}

// regain is takeBack for the goroutine that has lent the reading. A borrower keeps it.
func (g *reading) regain() bool {
	for o := g.owner.Load(); o != held; o = g.owner.Load() {
		if g.owner.CompareAndSwap(o, held) {
			return o == lent
		}
	}
	return false
}

// look is the watch. While a handler keeps the reading nothing is lent again, so lendings
// that does not change shows it.
func (g *reading) look(takeOver func()) {
	if n := g.lendings.Load(); n != g.seen {
		g.seen = n
		g.watch.Reset(patience)
		return
	}
	// No lending for a whole patience: either one handler keeps the reading, or the peer
	// is idle and takeOver does nothing.
	g.watching.Store(false)
	takeOver()
}

// takeOver starts another reader if the current one is handling a request. It is called before
// that request's handler can wait for something that must be read: the answer to a call, or
// the end of the connection.
func (p *Peer) takeOver() {
	if p.reading.takeBack() {
		// A method that kept the reading once may do so again, so its streak starts far
		// below zero.
		p.reading.method.streak.Store(-longer)
		go p.read()
	}
}

// read is the goroutine that reads, until the input ends or another has taken
// over.
func (p *Peer) read() {
	away, returned := false, false
	defer func() {
		// A handler has ended this goroutine, as testing.T.FailNow does. If this
		// goroutine still was the reader, another continues.
		if !returned && (!away || p.reading.regain()) {
			go p.read()
		}
	}()
	for {
		// This goroutine is the reader here, and reading is not lent.
		r, goOn, err := p.took(p.t.Read(&p.ctx.conn))
		switch {
		case !goOn:
			returned = true
			p.inputEnded(err)
			// Last: finish waits for it, and then nothing of the reader runs any more.
			close(p.reading.over)
			return
		case r == nil:
			continue
		}
		p.reading.lend(r.method)
		away = true
		// While this runs, takeOver may start another reader. takeBack decides which of
		// the two continues.
		p.serve(r)
		if !p.reading.regain() {
			returned = true
			return
		}
		away = false
	}
}

// borrow reads until c has ended, if the reading is lent. ctx is that of a handler. When it
// returns, c has ended, or ctx has, or another goroutine reads.
//
// So a handler that calls back costs no more hand-overs than one that does not. Otherwise the
// answer would be read by another goroutine, and each switch between the two wakes a thread.
func (p *Peer) borrow(ctx context.Context, c *Call) {
	g := &p.reading
	if !g.owner.CompareAndSwap(lent, borrowed) {
		return // another goroutine reads
	}
	interrupted := make(chan struct{})
	unwatch := context.AfterFunc(ctx, func() {
		g.stop.interrupt()
		close(interrupted)
	})
	over := false
	defer func() {
		// Waited for, so that an interrupt that comes late cannot hit the next reader.
		if !unwatch() {
			<-interrupted
			g.stop.resume()
		}
		p.giveBack(over)
	}()
	for len(c.ready) == 0 && ctx.Err() == nil {
		line, err := p.t.Read(&p.ctx.conn)
		if errors.Is(err, errInterrupted) {
			continue
		}
		r, goOn, err := p.took(line, err)
		if !goOn {
			over = true
			p.inputEnded(err)
			close(g.over)
			return
		}
		// The handler that has lent the reading has returned, and another goroutine that it
		// has started is in this call.
		if r != nil {
			go p.serve(r)
		}
	}
}

// giveBack ends a borrowing.
func (p *Peer) giveBack(over bool) {
	g := &p.reading
	switch {
	case over:
		g.owner.Store(held) // by no goroutine: nothing is left to read
	case g.owner.CompareAndSwap(borrowed, lent):
		g.watched()
		// Calls that have begun meanwhile count on a reader, and so does the end. Those that
		// begin from now on find the reading lent.
		if p.awaits() || p.ctx.live.ended() {
			p.takeOver()
		}
	default: // the handler has returned, and left the reading to this goroutine
		go p.read()
	}
}

// pushed acts on what a transport pushes. Any goroutine may call it, at any time: before the
// end of Begin, at the same time as others, and after the end of the peer, when it ignores the
// message.
func (p *Peer) pushed(line []byte, err error) {
	g := &p.reading
	// Held while the message is accepted: the next one must not overtake it, and Run
	// returns after that.
	g.push.Lock()
	defer g.push.Unlock()
	if g.push.ended {
		return
	}
	if _, goOn, err := p.took(line, err); !goOn {
		g.push.ended = true
		p.inputEnded(err)
	}
}

// inputEnded records that nothing more will be read. err is nil if the other side has ended its
// input in good order. It is called once.
func (p *Peer) inputEnded(err error) {
	if h := p.o.Hooks; h != nil && h.InputEnd != nil {
		h.InputEnd(err)
	}
	// After the hook, so that it has run when handlers see the end.
	p.life.mu.Lock()
	p.life.inputEnd = true
	p.life.mu.Unlock()
	p.wake()
}

// took acts on what Read has returned. It returns the request if the reader should handle it
// itself. goOn is false at the end of the input, with a nil error if that is a clean one.
func (p *Peer) took(line []byte, err error) (r *Request, goOn bool, _ error) {
	// Read has returned a message although the transport was closed. Nothing may be handled
	// after the end.
	if p.ctx.conn.ended() {
		line, err = nil, ErrClosed
	}
	// The transport has no limit of its own. The message is in memory already, but its handler
	// would keep it there, and the limit should mean the same for each transport.
	if err == nil && len(line) > p.o.MaxMessage {
		var s skimmer
		_, _ = s.Write(line) // never fails
		err = s.tooLong(p.o.MaxMessage)
	}
	if err == nil {
		return p.receive(line), true, nil
	}
	if goOn, err = p.readFailed(err); goOn {
		return nil, true, nil
	}
	return nil, false, err
}

// readFailed decides what an error of Read means: the end, one broken message, or a broken
// connection.
func (p *Peer) readFailed(err error) (goOn bool, _ error) {
	var one *Error
	var long *overlong
	switch {
	case errors.Is(err, io.EOF):
		// Calls can get no answer any more. Handlers may still finish and answer.
		p.calls.fail(fmt.Errorf("%w: the other side has ended its input", ErrClosed))
		return false, nil
	// Before the next case, because it is an *Error too. It knows the id of the message, so
	// dispatch can refuse the request or fail the call.
	case errors.As(err, &long):
		p.dispatch(&long.message, nil, nil)
		return true, nil
	case errors.As(err, &one):
		p.problem(one, nil)
		p.refuse(nil, ID{}, one)
		return true, nil
	}
	// Not a clean end, so nothing is waited for: the other side may be unable to read, too.
	err = fmt.Errorf("jsonrpc: read: %w", err)
	p.broke(err)
	return false, err
}
