package jsonrpc

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"

	"github.com/codexmcp/codexmcp/mcptypes"
	jsonx "github.com/go-json-experiment/json"
)

// The life of a call: start1 chooses its id, registers it under that and sends it. One of
// three ends it: its answer (resolve), its caller (abandon), or the end of the connection
// (fail). Each of them first takes it out of pending, under the lock, so only one of
// them completes it. complete makes it ready, and from then on it belongs to its caller.

// calls holds the outgoing calls without an answer.
type calls struct {
	next    int64
	pending map[int64]*Call // by the number of the id
	// Set together with taking all of pending: a call is either among those or refused.
	err error // no answer will come any more

	// pool holds Calls with a channel of capacity 1 that is used again and
	// again. It is the peer's own, because a channel that was made in a
	// testing/synctest bubble cannot be used in another.
	pool sync.Pool
}

// Call is an outgoing call begun with [Peer.Start].
type Call struct {
	// Until it is ready, raw, errv and err belong to the goroutine that has taken it out of
	// pending. The channel hands them over to the caller, so they need no lock.

	p      *Peer
	id     ID
	number int64 // of the id
	method string
	ready  chan struct{} // closed when done; of capacity 1 and sent to in a pooled call
	pooled bool          // belongs to Peer.Call
	raw    []byte        // the result
	errv   []byte        // the error member
	err    error         // why there is no answer
	log    func(error)   // of the end; nil if nothing logs it
	stop   func() bool   // detaches the caller's context
}

// ID returns the id of the call.
func (c *Call) ID() ID { return c.id }

// Done is closed when the call has ended: answered, cancelled or failed.
func (c *Call) Done() <-chan struct{} { return c.ready }

// Cancel ends the call with [context.Canceled], as its context would.
func (c *Call) Cancel() { c.abandon(context.Canceled, context.Canceled.Error()) }

// Result waits for the end of the call, decodes the result into v as
// [Peer.Call] does, and returns the call's error. It may be called again.
func (c *Call) Result(v any) error {
	<-c.ready
	return c.decode(v)
}

// Call calls a method of the other side and waits for the answer. Params must be an object or
// an array in JSON; nil sends none. The result is decoded strictly into result, a pointer or
// nil. A json.RawMessage is sent unchanged; a *json.RawMessage receives a copy.
//
// An error answer is returned as [*Error]. When ctx ends first, the error is ctx.Err(), the
// cancel notification has the cause of ctx as the reason, and a late answer is dropped. When
// the connection ends, the error is [ErrClosed].
func (p *Peer) Call(ctx context.Context, method string, params, result any) error {
	// A Call never leaves this function, so it and its channel can be used again.
	c, ok := p.calls.pool.Get().(*Call)
	if !ok {
		c = &Call{ready: make(chan struct{}, 1), pooled: true}
	}
	err := p.start1(ctx, c, method, params)
	if err == nil {
		err = p.wait(ctx, c, result)
	}
	// Safe to reuse: either the call was never registered, or its completion was
	// received, after which no other goroutine touches it.
	*c = Call{ready: c.ready, pooled: true}
	p.calls.pool.Put(c)
	return err
}

// wait waits for a pooled call and decodes its result.
func (p *Peer) wait(ctx context.Context, c *Call, result any) error {
	// A context that cannot end needs no select, which is 2 % of a call in memory.
	if ctx.Done() == nil {
		<-c.ready
		return c.decode(result)
	}
	// Waiting here rather than with AfterFunc, as Start does, saves a registration with
	// the context for each call.
	select {
	case <-c.ready:
	case <-ctx.Done():
		c.abandon(ctx.Err(), causeText(ctx))
		// Either abandon has completed the call, or an answer has come first and
		// does. Its result then counts, although the context has ended.
		<-c.ready
	}
	return c.decode(result)
}

// Start begins a call and does not wait for its answer. When ctx ends before
// the answer comes, the call is cancelled as in [Peer.Call].
func (p *Peer) Start(ctx context.Context, method string, params any) *Call {
	c := &Call{ready: make(chan struct{})}
	if err := p.start1(ctx, c, method, params); err != nil {
		c.err = err
		close(c.ready)
		return c
	}
	// A context that cannot end needs no goroutine to watch it.
	if ctx.Done() != nil {
		stop := context.AfterFunc(ctx, func() { c.abandon(ctx.Err(), causeText(ctx)) })
		// The call may have ended already, before complete could see stop. While it is
		// pending nothing completes it: that begins with the lock taken here.
		p.mu.Lock()
		waits := p.calls.pending[c.number] == c
		if waits {
			c.stop = stop
		}
		p.mu.Unlock()
		if !waits {
			stop()
		}
	}
	return c
}

// start1 registers the call, then sends it. When it fails the call is not
// registered and never becomes ready.
func (p *Peer) start1(ctx context.Context, c *Call, method string, params any) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c.p, c.method = p, method
	cs := &p.calls
	p.mu.Lock()
	switch {
	case cs.err != nil:
		defer p.mu.Unlock()
		return cs.err
	// Checked before the params are encoded, and so not exactly: calls that are encoding at the
	// same time may pass the limit by their number.
	case len(cs.pending) >= maxPending:
		defer p.mu.Unlock()
		return ErrFull
	}
	// The id is used up even if the call fails below. Nothing needs them without gaps.
	c.id, c.number = mcptypes.IntID(cs.next), cs.next
	cs.next++
	p.mu.Unlock() // encoding the params may run code that calls the peer

	b := getBuffer()
	if err := p.writeCall(b, c.id, method, params); err != nil {
		putBuffer(b)
		return err
	}
	c.log = p.began(ctx, method, c.id)
	p.mu.Lock()
	// The connection may have ended while params were encoded. fail has taken the pending
	// calls by then, so a call registered now would wait forever.
	if err := cs.err; err != nil {
		p.mu.Unlock()
		putBuffer(b)
		c.ended(err)
		return err
	}
	// Registered before it is sent: the answer may be read before send returns.
	cs.pending[c.number] = c
	p.mu.Unlock()
	err := p.send(ctx, b, refusable, ifPrompt)
	// If retire reports false, the end of the connection has completed the call with its
	// own error.
	if err != nil && p.retire(c) {
		c.ended(err)
		return err
	}
	return nil // sent, or already failed by the end of the connection
}

// ended logs the end, once. Without a lock: a logger's handler is code of others.
func (c *Call) ended(err error) {
	if c.log != nil {
		c.log(err)
		c.log = nil
	}
}

// retire removes a call from the pending ones and reports whether it was there. The
// goroutine that gets true completes the call.
func (p *Peer) retire(c *Call) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.calls.pending[c.number] != c {
		return false
	}
	delete(p.calls.pending, c.number)
	return true
}

// complete makes a retired call ready. The goroutine that has taken it out of pending calls it,
// without a lock.
func (c *Call) complete() {
	if c.stop != nil {
		c.stop()
	}
	// Before ready: when Call returns, the end is logged.
	if c.log != nil {
		c.ended(c.outcome())
	}
	// Last, since from here on a pooled Call belongs to its caller and may be reused.
	if c.pooled {
		c.ready <- struct{}{}
	} else {
		close(c.ready)
	}
}

// causeText returns the text of the context's cause, "" if Error panics: the
// callback of Start runs on a goroutine where nothing else would recover.
func causeText(ctx context.Context) (text string) {
	defer func() { _ = recover() }()
	return context.Cause(ctx).Error()
}

// abandon ends a call from this side. The caller is released first, and then the other side
// is notified: its silence may be why the caller gives up.
func (c *Call) abandon(err error, reason string) {
	// The id does not come back: an answer that crosses the cancellation finds no call, and
	// cannot be taken for that of another one.
	if c.p == nil || !c.p.retire(c) {
		return
	}
	c.err = err
	p, id, method := c.p, c.id, c.method // a pooled call belongs to its caller once it is ready
	c.complete()
	profile := p.cancel
	if !profile.covers(method) || profile.Inbound {
		return
	}
	// regardless: when the queue is full, the cancellation is what may relieve the other side.
	b := getBuffer()
	if e := p.writeCall(b, ID{}, profile.Method, profile.encode(id, reason)); e == nil {
		_ = p.send(p.ctx.live, b, regardless, byWriter) // fails only when the connection has ended
	}
}

// resolve hands an answer to the call that waits for it, if there is one. The reader calls it and
// does not decode the result: that is left to the caller's goroutine, and may be slow.
func (p *Peer) resolve(m *message) bool {
	cs := &p.calls
	p.mu.Lock()
	// Looked up and removed under one lock: a second answer with the same id finds no
	// call.
	var c *Call
	n, ok := m.id.Int()
	if text, is := m.id.Str(); is && p.o.TextIDs {
		var err error
		n, err = strconv.ParseInt(text, 10, 64)
		ok = err == nil && strconv.FormatInt(n, 10) == text // not "+1" or "01"
	}
	if ok {
		c = cs.pending[n]
		delete(cs.pending, n)
	}
	p.mu.Unlock()
	if c == nil {
		return false
	}
	c.raw, c.errv = m.result, m.errv
	if m.fault != nil {
		c.err = fmt.Errorf("jsonrpc: answer to %s: %w", c.method, m.fault)
	}
	c.complete()
	return true
}

// failCalls ends every pending call, and every later one, with err.
func (p *Peer) failCalls(err error) {
	cs := &p.calls
	p.mu.Lock()
	if cs.err != nil {
		p.mu.Unlock()
		return
	}
	cs.err = err // start1 looks at it under the lock: no call is registered after this
	pending := cs.pending
	cs.pending = nil
	p.mu.Unlock()
	// Outside the lock: completing logs, and wakes callers, which may call again.
	// Nothing else can complete them, since they are no longer in pending.
	for _, c := range pending {
		c.err = err
		c.complete()
	}
}

// outcome returns the call's error, without decoding a result.
func (c *Call) outcome() error {
	switch {
	case c.err != nil:
		return c.err
	case c.errv != nil:
		return decodeError(c.method, c.errv, c.p != nil && c.p.d.answers)
	}
	return nil
}

// decode reads the result into v, on the caller's goroutine. The result stays as it came, so
// Result may be called with several types.
func (c *Call) decode(v any) error {
	if err := c.outcome(); err != nil {
		return err
	}
	// The call itself has succeeded: the handler on the other side has run.
	if err := decode(c.raw, v); err != nil {
		return fmt.Errorf("jsonrpc: result of %s: %w", c.method, err)
	}
	return nil
}

var errNoCode = errors.New("error member has no code")

// decodeError reads the error member of an answer. Members that JSON-RPC does not have are
// ignored; without a code it is not an error that a program could act on.
func decodeError(method string, raw []byte, lenient bool) error {
	var w struct {
		Code    *int64          `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	}
	err := jsonx.Unmarshal(raw, &w)
	if lenient && (err != nil || w.Code == nil || w.Message == "") {
		if said := looseError(raw); said != nil {
			return said
		}
	}
	if err == nil && w.Code == nil {
		err = errNoCode
	}
	if err != nil {
		return fmt.Errorf("jsonrpc: error answer to %s cannot be read: %w", method, err)
	}
	return &Error{Code: Code(*w.Code), Message: w.Message, Data: w.Data}
}

// looseError reads an error member whose code is a text or a fraction, or whose words are in its data, or that is nothing but
// words. It returns nil if there are no words.
func looseError(raw []byte) *Error {
	type member struct {
		Code    json.RawMessage `json:"code"`
		Message json.RawMessage `json:"message"`
		Data    json.RawMessage `json:"data"`
	}
	var w, inside member
	_ = jsonx.Unmarshal(raw, &w) // what has another type has no words
	_ = jsonx.Unmarshal(w.Data, &inside)
	words := func(raw []byte) (text string) {
		_ = jsonx.Unmarshal(raw, &text)
		return text
	}
	e := &Error{Code: CodeInternalError, Data: w.Data}
	if n, err := strconv.ParseFloat(strings.Trim(string(w.Code), `"`), 64); err == nil && n == math.Trunc(n) &&
		math.Abs(n) < 1<<31 {
		e.Code, w.Code = Code(n), nil
	}
	if e.Message = cmp.Or(words(raw), words(w.Message), words(w.Data), words(inside.Message),
		words(w.Code)); e.Message == "" {
		return nil
	}
	return e
}
