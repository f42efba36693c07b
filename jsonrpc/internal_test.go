package jsonrpc

import (
	"bytes"
	"errors"
	"strconv"
	"testing"

	"github.com/codexmcp/codexmcp/mcptypes"
)

// Stats is what tests see of a peer: what waits and runs, and how many messages were handed to the transport.
type Stats struct {
	Pending, Running, Waiting int
	Sent                      uint64
}

// Stats returns the figures of now.
func (p *Peer) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.out.mu.Lock()
	defer p.out.mu.Unlock()
	return Stats{len(p.calls.pending), p.in.running, p.in.queue.len() + p.in.waiting.len(), p.out.amount.sent}
}

// TestIntern checks that the names of methods that the other side invents take bounded memory.
func TestIntern(t *testing.T) {
	x, _ := Pipe()
	p := NewPeer(x, nil, nil)
	for i := range 1000 {
		name := []byte(strconv.Itoa(i))
		m := p.intern(name)
		if _, kept := p.methods[m]; m != string(name) || kept != (i < 256) {
			t.Errorf("the method %s is %s, kept: %t", name, m, kept)
		}
	}
	x, _ = Pipe()
	p = NewPeer(x, nil, nil)
	for _, n := range []int{64, 65} {
		name := bytes.Repeat([]byte("x"), n)
		if _, kept := p.methods[p.intern(name)]; kept != (n == 64) {
			t.Errorf("a method of %d bytes", n)
		}
	}
}

// TestPipePrompts checks that a full pipe does not block who only tries.
func TestPipePrompts(t *testing.T) {
	x, _ := Pipe()
	for i := range pipeDepth + 1 {
		if sent, err := x.(*pipe).prompt([]byte("x")); sent != (i < pipeDepth) || err != nil {
			t.Errorf("message %d: %t, %v", i, sent, err)
		}
	}
}

// TestPending checks that a call fails if too many wait for an answer.
func TestPending(t *testing.T) {
	x, _ := Pipe()
	p := NewPeer(x, nil, nil)
	for i := range maxPending {
		p.calls.pending[mcptypes.IntID(int64(i))] = nil
	}
	if err := p.Start(t.Context(), "x", nil).Result(nil); !errors.Is(err, ErrFull) {
		t.Errorf("got %v", err)
	}
}
