package main

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/clustertest"
)

// cable carries connections from an address of its own to another one. It is plugged in, or it carries nothing, in both
// directions or in one: what is sent meanwhile arrives later, and nobody is told.
type cable struct {
	address string
	to      string
	inwards bool           // the part is where it leads to; else the part connects by it
	cut     [2]atomic.Bool // from the address, and to it

	ctx     context.Context // ends with the test
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
	l, address := clustertest.Listen(t)
	ctx, cancel := context.WithCancel(context.Background())
	c := &cable{address: address, to: to, inwards: inwards, ctx: ctx}
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
		cancel()
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
	end := func() {
		_ = from.Close()
		_ = to.Close()
	}
	defer context.AfterFunc(c.ctx, end)()
	c.running.Go(func() { c.carry(to, from, &c.cut[0], end) })
	c.carry(from, to, &c.cut[1], end)
}

// carry copies what one side sends while the cable is not cut, until the end of one side.
func (c *cable) carry(to, from net.Conn, cut *atomic.Bool, end func()) {
	defer end()
	for block := make([]byte, 32<<10); ; {
		n, err := from.Read(block)
		for cut.Load() && c.ctx.Err() == nil {
			pause(c.ctx, 10*time.Millisecond)
		}
		if n > 0 {
			_, err = to.Write(block[:n]) // what ends reading ends it the next time, too
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
