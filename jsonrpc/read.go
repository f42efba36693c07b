package jsonrpc

import (
	"errors"
	"fmt"
	"io"
)

// read is the goroutine that reads, until the input ends, or until it has a request to handle and nothing more
// has arrived: then another goroutine reads on. So the handler begins at once, and not after a read that finds
// nothing, with which one call after another between processes on one core takes a third longer.
func (p *Peer) read() {
	returned := false
	defer func() {
		if !returned { // an inline handler has ended this goroutine, as testing.T.FailNow does
			go p.read()
		}
	}()
	for {
		goOn, err := p.took(p.t.Read(p.ctx.conn))
		switch r := p.mine; {
		case !goOn:
			returned = true
			p.inputEnded(err)
			close(p.turn)
			// Last: finish waits for it, and then nothing of the reader runs any more.
			close(p.unread)
			return
		case r != nil:
			p.mine = nil
			returned = true // a handler that ends this goroutine ends no reader
			if !p.handOver(r) {
				return
			}
			returned = false
		}
	}
}

// handOver handles a request while another goroutine reads on, and reports whether this one is then to read on.
func (p *Peer) handOver(r *Request) bool {
	defer p.handlers.Done()
	if p.waits.CompareAndSwap(true, false) {
		p.turn <- struct{}{}
	} else {
		go p.read()
	}
	p.serve(r)
	// One waits for its turn, so that one call after another needs no new goroutines. The stacks of these two are
	// large enough after some calls; that of a new one would have to grow for most handlers.
	if !p.waits.CompareAndSwap(false, true) {
		return false
	}
	_, more := <-p.turn
	return more
}

// letGo lets the answers leave that the reader has gathered. The reader calls it before it waits.
func (p *Peer) letGo() {
	if p.gathers {
		p.gathers = false
		p.out.letGo()
	}
}

// inputEnded records that nothing more will be read. err is nil if the other side has ended its
// input in good order. It is called once.
func (p *Peer) inputEnded(err error) {
	if h := p.o.Hooks; h != nil && h.InputEnd != nil {
		h.InputEnd(err)
	}
	// After the hook, so that it has run when handlers see the end.
	p.mu.Lock()
	p.life.inputEnd = true
	p.mu.Unlock()
	p.wake()
}

// took acts on what Read has returned. goOn is false at the end of the input, with a nil error if
// that is a clean one.
func (p *Peer) took(line []byte, err error) (goOn bool, _ error) {
	// Read has returned a message although the transport was closed. Nothing may be handled
	// after the end.
	if p.ctx.conn.Err() != nil {
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
		p.receive(line)
		return true, nil
	}
	return p.readFailed(err)
}

// readFailed decides what an error of Read means: the end, one broken message, or a broken
// connection.
func (p *Peer) readFailed(err error) (goOn bool, _ error) {
	var one *Error
	var long *overlong
	switch {
	case errors.Is(err, io.EOF):
		// Calls can get no answer any more. Handlers may still finish and answer.
		p.failCalls(fmt.Errorf("%w: the other side has ended its input", ErrClosed))
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
