package jsonrpc

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// egress is the queue of messages on their way to the transport.
//
// A sender appends its message under a short lock and continues. The writer, a goroutine
// that waits while nothing is queued, passes everything that has gathered to the
// transport in one Write. When the line is idle, a goroutine that has nothing else to do
// writes its message itself (see writer), which saves waking the writer: with a write for each message
// 64 callers in memory, and a flood, take twice as long; with the writer for each, one call after another takes
// 5 to 15 % longer over pipes and 4 to 9 % between processes.
//
// Messages leave in the order in which senders took mu. Three rules keep that order: only
// the goroutine that has set writing calls the transport; a sender that writes itself writes its own message only if
// nothing is queued, and else begins with what is queued first; and what it cannot write stays at the front of the
// queue if it was there, and else goes to the end.
//
// Nothing here waits for a handler, except that what the reader has gathered waits for inline handlers, which must
// not block. So no cycle of waiting can form.
type egress struct {
	t   Transport
	p   prompter        // t, if it can
	ctx context.Context // ends when the connection does; for Write
	max int             // Options.MaxUnsent

	// broken ends the connection. It takes other locks and calls hooks, so mu must not be
	// held.
	broken func(error)

	// writers counts the writer, and the goroutine that reports a failure. Run waits for
	// them after close, which lets no more start.
	writers sync.WaitGroup

	// mu guards everything below. It is held for a few instructions only, never during a
	// Write, so that no sender waits for the other side.
	mu    sync.Mutex
	queue fifo[chunk]
	// What is queued or being written, and how many messages the transport has taken. Flush compares
	// sent with what it was, so it only ever grows.
	amount struct {
		bytes, messages int
		sent            uint64
	}
	// The goroutine that sets writing is the only one in the transport until it clears it
	// again, without holding the lock in between. The others queue meanwhile.
	writing bool
	open    bool          // start was called; until then everything queues
	started bool          // the writer exists
	drains  bool          // it is at work; it clears this itself, together with its last look at the queue
	wake    sync.Cond     // it waits here for drains, or for the end
	one     [1][]byte     // the message of write1; belongs to the goroutine that set writing
	err     error         // why nothing can be sent any more
	moved   chan struct{} // closed at the next progress; nil if no goroutine waits for it
}

// chunkSize is how much is gathered for one Write: what a pipe holds.
const chunkSize = 64 << 10

// chunk is a run of messages laid end to end in one buffer. The buffer is never grown: msgs
// holds slices of it, which growing would leave pointing to the old array.
type chunk struct {
	buf  []byte
	msgs [][]byte
}

// class says what may happen to a message when the queue is long.
type class uint8

const (
	refusable  class = iota // notifications and calls: refused at the limit
	answer                  // waits for room at the limit, never refused
	regardless              // queued without waiting: sent by the read loop
)

func newEgress(t Transport, most int) *egress {
	p, ok := t.(prompter)
	if ok && !p.prompts() {
		p = nil
	}
	e := &egress{t: t, p: p, max: most}
	e.wake.L = &e.mu
	return e
}

// writer says who may write a message when the line is idle.
//
// Writing it oneself saves a switch of goroutines, and between processes often the waking of
// a thread. But a Write may block until the other side reads. So only a goroutine on which
// nothing depends may take that risk.
//
// In memory a Write always waits for the other side, so callers and the reader wake the writer.
type writer uint8

const (
	// The writer goroutine: for messages that others are likely to follow, because one Write
	// for several is cheaper. While it has not begun, the sender writes what can be written without blocking, each
	// time that enough has gathered.
	byWriter writer = iota
	// The sender, even if that blocks it: for a handler's goroutine, which ends with it.
	bySender
	// The sender, if the transport can do it without blocking: for the reader, which must never block, and for
	// callers, whose contexts must be able to end their waiting. What others send meanwhile still leaves with one
	// write.
	ifPrompt
	// The reader, when more has arrived whose answers may leave with this one. Until the reader waits for input, or has
	// gathered enough, it is queued without the writer.
	gathered
)

// gatherBytes is how much the reader gathers, less than what a transport may take at once.
const gatherBytes = promptBytes / 2

// send queues the message in b, or has the sender write it. It takes b over.
func (e *egress) send(ctx context.Context, b *bytes.Buffer, c class, w writer) error {
	n := b.Len()
	e.mu.Lock()
	// A message longer than the limit passes when nothing else is queued, or it
	// would wait forever.
	//
	// Senders that wait here are not in a queue of their own: which of them gets the room is
	// left to the lock. One goroutine's messages keep their order, since it waits for each.
	for e.err == nil && c != regardless && e.amount.bytes+n > e.max && e.amount.bytes > 0 {
		err := ErrFull
		if c != refusable {
			err = e.await(ctx)
		}
		if err != nil {
			e.mu.Unlock()
			putBuffer(b)
			return err
		}
		// Others may have taken the room meanwhile, or closed the queue: look again.
	}
	// The reader must not wait, and memory must not grow without end: only closing is
	// left.
	if e.err == nil && c == regardless && e.amount.bytes+n > 2*e.max {
		e.fail(ErrFull)
		defer e.broken(ErrFull) // the writer is in Write and cannot report it
	}
	if e.err != nil {
		err := e.refusal()
		e.mu.Unlock()
		putBuffer(b)
		return err
	}
	e.amount.bytes += n
	e.amount.messages++
	var err error
	switch {
	case w == gathered && e.amount.bytes < gatherBytes:
		e.append(b)
	case e.queue.len() == 0 && e.may(w):
		err = e.write1(b, w)
	default:
		e.append(b)
		if w == byWriter && e.overdue(n) {
			err = e.writeChunk(ifPrompt)
		}
		err = cmp.Or(err, e.leave(w))
	}
	e.mu.Unlock()
	return err
}

// overdue reports whether with the last message, of n bytes, as much has gathered as a transport takes at once, and the
// writer has not begun. On one core it may get no time before the sender's is over: with GOMAXPROCS=1 a flood
// between processes takes a third to a half longer without this. The lock is held.
func (e *egress) overdue(n int) bool {
	return e.p != nil && e.open && !e.writing && e.amount.bytes/promptBytes > (e.amount.bytes-n)/promptBytes
}

// letGo lets what the reader has gathered leave.
func (e *egress) letGo() {
	e.mu.Lock()
	defer e.mu.Unlock()
	_ = e.leave(gathered)
}

// may reports whether the calling goroutine may write now, in place of the writer. What is queued then is only what the
// reader has gathered. The lock is held.
func (e *egress) may(w writer) bool {
	return e.open && !e.writing && !e.drains && (w == bySender || w >= ifPrompt && e.p != nil)
}

// leave lets what is queued leave: written by the goroutine that calls it, if that may, and else by the writer. The
// lock is held. It fails as send does if the last message is lost.
func (e *egress) leave(w writer) (lost error) {
	if e.queue.len() == 1 && e.may(w) {
		lost = e.writeChunk(w)
	}
	// Without effect until here, because writing was set: what was queued meanwhile still
	// needs the writer.
	e.signal()
	return lost
}

// append puts the message on the queue; a long one keeps its own buffer.
func (e *egress) append(b *bytes.Buffer) {
	m := b.Bytes()
	// Copying a long message costs more than a Write of its own. Its chunk has no buffer, so
	// nothing is added to it.
	if len(m) > chunkSize/2 {
		e.queue.push(&chunk{msgs: [][]byte{m}})
		return
	}
	// The last chunk may be extended while it is queued. The writer takes it off
	// before it writes it, so that it never grows under a Write.
	c := e.queue.last()
	if c == nil || cap(c.buf)-len(c.buf) < len(m) {
		c = chunks.Get().(*chunk)
		e.queue.push(c)
	}
	at := len(c.buf)
	c.buf = append(c.buf, m...)
	c.msgs = append(c.msgs, c.buf[at:len(c.buf):len(c.buf)])
	putBuffer(b)
}

// chunks holds chunks for all peers: a burst needs several, an idle peer none. Without it one call after another in
// memory takes 3.5 to 4 times as long.
var chunks = sync.Pool{New: func() any { return &chunk{buf: make([]byte, 0, chunkSize)} }}

// recycle puts a written chunk back. The transport has returned the slices, see Transport.
func (c *chunk) recycle() {
	// A long message has its own buffer, which the pool of buffers would not keep either.
	if c.buf == nil {
		return
	}
	clear(c.msgs)
	c.buf, c.msgs = c.buf[:0], c.msgs[:0]
	chunks.Put(c)
}

// start lets messages leave. Before Run the transport may not be ready, so messages only
// queue, in the order in which they will leave.
func (e *egress) start() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.open = true
	e.signal()
}

// signal sets the writer to work if there is something that it may write. The lock is held.
//
// It is called after each change that could be the last reason not to: a message was queued, a
// sender has finished writing, or Run has begun. drains is set here and not by the writer, so
// that no other sender writes before it.
func (e *egress) signal() {
	if !e.open || e.drains || e.writing || e.queue.len() == 0 {
		return
	}
	e.drains = true
	// Not before it is needed: many peers never need it.
	if !e.started {
		e.started = true
		e.writers.Go(e.drain)
	}
	e.wake.Signal()
}

// await returns when something was written or the queue failed, or with the error of ctx. The lock is
// held at the look before and at that after, and not while waiting.
func (e *egress) await(ctx context.Context) error {
	// Taken before the lock is released: progress made in between closes this channel.
	if e.moved == nil {
		e.moved = make(chan struct{})
	}
	moved := e.moved
	e.signal() // what the reader has gathered must not wait for the reader
	e.mu.Unlock()
	defer e.mu.Lock()
	select {
	case <-moved:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (e *egress) progress() {
	if e.moved != nil {
		close(e.moved)
		e.moved = nil
	}
}

// write1 writes one message, which goes behind what others queue meanwhile if it would wait for the other side and may not.
// The lock is held, but not while writing.
func (e *egress) write1(b *bytes.Buffer, w writer) error {
	e.one[0] = b.Bytes()
	n, lost := e.write(e.one[:], w)
	e.one[0] = nil
	if n > 0 {
		putBuffer(b)
	} else {
		e.append(b)
	}
	e.signal()
	return lost
}

// writeChunk is write1 for the first chunk. What is left of it stays the first.
func (e *egress) writeChunk(w writer) error {
	// Off the queue before it is written: append extends the last chunk of the queue.
	c := e.queue.pop()
	n, lost := e.write(c.msgs, w)
	if n == len(c.msgs) {
		c.recycle()
	} else {
		c.msgs = slices.Delete(c.msgs, 0, n)
		e.queue.unpop(c)
	}
	return lost
}

// write writes messages, and returns how many are written or lost. The lock is held, but not while writing.
func (e *egress) write(messages [][]byte, w writer) (n int, lost error) {
	// Until it is cleared, writing keeps all other goroutines out of Write and prompt.
	e.writing = true
	e.mu.Unlock()
	n = len(messages)
	var err error
	if w >= ifPrompt {
		n, err = e.p.prompt(messages)
	} else {
		err = e.t.Write(e.ctx, messages)
	}
	e.mu.Lock()
	e.writing = false
	if err != nil {
		e.failed(err)
	} else if e.wrote(messages[:n]); n == len(messages) {
		return n, nil
	}
	if e.err != nil { // closed meanwhile, or by the failure
		n = len(messages)
	}
	return n, e.refusal()
}

// wrote accounts for a Write that has succeeded. The lock is held.
func (e *egress) wrote(messages [][]byte) {
	for _, m := range messages {
		e.amount.bytes -= len(m)
	}
	e.amount.messages -= len(messages)
	e.amount.sent += uint64(len(messages))
	e.progress()
}

// failed ends the connection after a Write that has failed. It may have left half a message on the wire. Nothing can follow
// it. The lock is held.
func (e *egress) failed(err error) {
	if e.err == nil {
		e.fail(fmt.Errorf("jsonrpc: write: %w", err))
		// On a goroutine of its own: broken must run without the lock, and the caller
		// still holds it. Only the first failure gets here, so close, which also sets
		// err, starts none.
		e.writers.Go(func() { e.broken(e.err) })
	}
}

// drain is the writer, which ends when the queue has failed.
//
// A sender may be writing in its place, see overdue. It then waits for that sender's signal.
func (e *egress) drain() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for e.err == nil {
		if e.queue.len() > 0 && !e.writing {
			_ = e.writeChunk(byWriter)
			continue
		}
		// In one step with the look at the queue: a message that is queued after this sets
		// it to work again.
		e.drains = false
		e.wake.Wait()
	}
}

// flush waits until everything queued before now is written, or the queue has failed. It is
// woken at each progress and looks again, as flushes are rare.
func (e *egress) flush(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	// Counted, not compared with an empty queue: other goroutines may continue to send.
	for until := e.amount.sent + uint64(e.amount.messages); e.err == nil && e.amount.sent < until; {
		if err := e.await(ctx); err != nil {
			return err
		}
	}
	return e.refusal()
}

// refusal is what senders get once the queue has failed, nil before. It always is ErrClosed,
// so that callers have one error to check for, and wraps the reason if there is another.
func (e *egress) refusal() error {
	if e.err == nil || errors.Is(e.err, ErrClosed) {
		return e.err
	}
	return fmt.Errorf("%w: %w", ErrClosed, e.err)
}

// closed is refusal without the lock held.
func (e *egress) closed() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.refusal()
}

// close makes every further send fail with err. It drops what is queued, so the writer ends
// after its current Write, which the transport's Close unblocks.
func (e *egress) close(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.fail(err)
}

// fail is close with the lock held. The first reason stays: later ones mostly follow from it.
func (e *egress) fail(err error) {
	if e.err != nil {
		return
	}
	e.err = err
	// Dropped: nothing more can be written, and flush and the senders get the error.
	e.queue = fifo[chunk]{}
	e.progress() // senders and flushers that wait see err
	e.wake.Signal()
}
