package main

import (
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// cable carries connections from an address of its own to another one. It is plugged in, or it carries nothing, in both
// directions or in one: what is sent meanwhile arrives later, and nobody is told.
type cable struct {
	address string
	to      string
	inwards bool           // the part is where it leads to; else the part connects by it
	cut     [2]atomic.Bool // from the address, and to it

	ctx     <-chan struct{} // closed at the end of the test
	running sync.WaitGroup
}

// way says in which direction nothing passes. It is part of the name of a fault.
type way string

const (
	bothWays way = ""
	toIt     way = " and is still heard"
	fromIt   way = " and still hears"
)

// newCable leads to an address until the end of the test.
func newCable(t *testing.T, to string, inwards bool) *cable {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	end := make(chan struct{})
	c := &cable{address: l.Addr().String(), to: to, inwards: inwards, ctx: end}
	c.running.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			c.running.Go(func() { c.connect(conn) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		close(end)
		c.running.Wait()
	})
	return c
}

// connect carries a connection until one of its sides ends.
func (c *cable) connect(from net.Conn) {
	defer from.Close()
	to, err := net.Dial("tcp", c.to)
	if err != nil {
		return
	}
	defer to.Close()
	over := make(chan struct{}, 2)
	c.running.Go(func() { c.carry(to, from, &c.cut[0]); over <- struct{}{} })
	c.running.Go(func() { c.carry(from, to, &c.cut[1]); over <- struct{}{} })
	select {
	case <-over:
	case <-c.ctx:
	}
}

// carry copies what one side sends while the cable is not cut.
func (c *cable) carry(to, from net.Conn, cut *atomic.Bool) {
	for block := make([]byte, 32<<10); ; {
		n, err := from.Read(block)
		for cut.Load() {
			select {
			case <-time.After(10 * time.Millisecond):
			case <-c.ctx:
				return
			}
		}
		if n > 0 {
			if _, err := to.Write(block[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// pull pulls out the cable, or plugs it in.
func (c *cable) pull(out bool, w way) {
	towards := map[bool]int{true: 0, false: 1}[c.inwards]
	if w != fromIt {
		c.cut[towards].Store(out)
	}
	if w != toIt {
		c.cut[1-towards].Store(out)
	}
}
