package jsonrpc

import (
	"bytes"
	"context"
	"sync"
	"sync/atomic"
)

// Peer is one end of a connection. Its methods may be used from any goroutine, before Run too:
// what is sent then waits for Run. Values may be changed when the call that sends them has returned.
type Peer struct {
	// A message in: the reader has it from Transport.Read (read.go).
	// message.parse scans it (message.go). dispatch decides: an answer goes to its call
	// (call.go), a request or notification is admitted by inbound and handled on a goroutine
	// (dispatch.go).
	//
	// A message out: a call, a notification or an answer is encoded on the goroutine that sends
	// it (encode.go), and egress hands it to Transport.Write in order (egress.go). When the queue
	// is empty, the goroutine that sends also writes: a handler its answer, and a caller its
	// request if that does not make the caller wait.
	//
	// The end: every reason for it calls wake, after which Run calls finish (run.go).

	t      Transport
	h      Handler
	o      Options // with defaults; never changed
	d      dialect
	cancel *CancelProfile // nil if nothing is cancelled over the wire

	out *egress // has a lock of its own, which no goroutine takes while it holds mu

	// mu guards the calls, what came in with the flags of its requests, and the life. No handler,
	// hook, encoder or transport runs under it, so these may call the peer.
	mu    sync.Mutex
	in    inbound
	calls calls
	life  life
	held  int // bytes of answers that wait for others of their batches

	// These belong to the goroutine that reads.
	method  string        // that of the last request or notification
	mine    *Request      // the request that this goroutine handles, while another one reads on
	turn    chan struct{} // lets the one that waits for it read on; closed when nothing more is read
	unread  chan struct{} // closed when the last such goroutine has returned
	more    func() bool   // of the transport; nil if it cannot tell
	gathers bool          // answers wait for it

	waits atomic.Bool // a goroutine waits for its turn to read

	ctx contexts
	// finish waits for them, after endInbound has let no more start. For that reason a
	// goroutine is counted under mu, or by one that is counted itself.
	handlers sync.WaitGroup
}

// contexts are three, because the end has an order: first the waiting for more work stops,
// then handlers return, then the transport is closed.
type contexts struct {
	live context.Context // ends when the end begins
	conn context.Context // of the transport's Read and Write; ends after its Close
	base context.Context // of handlers; descends from that of Run

	endLive, endConn context.CancelFunc
	endBase          context.CancelCauseFunc
}

// life is how far a peer is between the begin of Run and its end. Every way to end comes here first. The
// first reason counts: a Close makes the transport fail, and that failure explains nothing.
type life struct {
	running  bool
	inputEnd bool  // nothing more is read
	shutdown bool  // Shutdown was called
	ending   bool  // errors of the transport are from now on of our own making
	wanted   bool  // Close or Shutdown was called
	err      error // why the connection broke

	wakeOnce sync.Once
	woken    chan struct{} // closed at the first reason to end
	// Close may be called from any goroutine, several times, also at once.
	closeOnce sync.Once
	closeErr  error // of the transport
	done      chan struct{}
	result    error // of Run; valid once done
}

// NewPeer returns a peer that speaks over t and handles what it is asked with
// h; a nil h knows no method. It starts nothing: see [Peer.Run].
func NewPeer(t Transport, h Handler, o *Options) *Peer {
	p := &Peer{
		t: t, o: o.withDefaults(),
		turn: make(chan struct{}, 1), unread: make(chan struct{}),
		life: life{woken: make(chan struct{}), done: make(chan struct{})},
	}
	if p.o.Cancellation != nil {
		p.cancel = p.o.Cancellation.profile()
	}
	if h == nil {
		h = HandlerFunc(notFound)
	}
	if p.o.Logger != nil {
		h = logged(p.o.Logger, h)
	}
	p.h = h
	p.d = dialect{depth: maxDepth, lenient: p.o.LenientVersion, answers: p.o.LenientAnswers}
	p.ctx.live, p.ctx.endLive = context.WithCancel(context.Background())
	p.ctx.conn, p.ctx.endConn = context.WithCancel(context.Background())
	p.in.inflight, p.calls.pending = map[ID]*Request{}, map[int64]*Call{}
	p.out = newEgress(t, p.o.MaxUnsent)
	p.out.ctx = p.ctx.conn
	p.out.broken = p.broke
	if l, ok := t.(looker); ok {
		p.more = l.more
		l.beforeWait(p.letGo)
	}
	// Before the first Read. A message beyond the limit is then never in memory as a
	// whole.
	if l, ok := t.(limiter); ok {
		l.SetReadLimit(p.o.MaxMessage)
	}
	return p
}

func notFound(_ context.Context, r *Request) (any, error) {
	return nil, Errorf(CodeMethodNotFound, "method not found: %s", r.Method)
}

// Notify queues a notification, in order with all else that is sent. It fails with [ErrFull] beyond
// [Options].MaxUnsent.
func (p *Peer) Notify(ctx context.Context, method string, params any) error {
	b := getBuffer()
	if err := p.writeCall(b, ID{}, method, params); err != nil {
		putBuffer(b)
		return err
	}
	return p.send(ctx, b, refusable, byWriter)
}

// send hands a message to the egress queue.
func (p *Peer) send(ctx context.Context, b *bytes.Buffer, c class, w writer) error {
	if h := p.o.Hooks; h != nil && h.Sent != nil {
		h.Sent(b.Bytes())
	}
	return p.out.send(ctx, b, c, w)
}

// Flush waits until everything sent before it is handed to the wire.
func (p *Peer) Flush(ctx context.Context) error { return p.out.flush(ctx) }

// Done is closed when the peer has ended.
func (p *Peer) Done() <-chan struct{} { return p.life.done }

// Err returns what Run returned, nil before [Peer.Done].
func (p *Peer) Err() error {
	select {
	case <-p.life.done:
		return p.life.result
	default:
		return nil
	}
}

// Unsent returns how many bytes wait for the other side to read.
func (p *Peer) Unsent() int {
	p.out.mu.Lock()
	defer p.out.mu.Unlock()
	return p.out.amount.bytes
}
