package page

import (
	"context"
	"net"
	"slices"
	"sync"
	"time"
)

const (
	// maxStrangers bounds what other users and programs of the machine can use up, who can
	// connect too: connections that have sent no token.
	maxStrangers = 256
	// patience is how long such a connection is kept at least: long enough for a busy
	// machine to read its request.
	patience = 200 * time.Millisecond
)

// A crowd is a listener that many may use at the same time. It never refuses a connection: if
// there are too many without a token, a new one replaces the oldest. So a program that holds
// connections does not keep the owner out. While there are too many, it accepts new ones
// slowly, so that a flood cannot replace a connection before its request is read.
type crowd struct {
	net.Listener

	mu        sync.Mutex
	strangers []*guest // the oldest first
}

// guest is a connection to the page.
type guest struct {
	net.Conn
	crowd *crowd
	since time.Time
}

// Accept implements [net.Listener].
func (c *crowd) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	for oldest := c.surplus(); oldest != nil; oldest = c.surplus() {
		time.Sleep(time.Until(oldest.since.Add(patience)))
		if c.remove(oldest) {
			_ = oldest.Conn.Close()
		}
	}
	g := &guest{Conn: conn, crowd: c, since: time.Now()}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.strangers = append(c.strangers, g)
	return g, nil
}

// surplus returns the oldest stranger if there is no room for another one.
func (c *crowd) surplus() *guest {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.strangers) < maxStrangers {
		return nil
	}
	return c.strangers[0]
}

// remove reports whether the guest was a stranger until now.
func (c *crowd) remove(g *guest) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.Index(c.strangers, g)
	if i >= 0 {
		c.strangers = slices.Delete(c.strangers, i, i+1)
	}
	return i >= 0
}

// Close implements [net.Conn].
func (g *guest) Close() error {
	g.crowd.remove(g)
	return g.Conn.Close()
}

// guestKey is the key of a request's *guest in its context.
type guestKey struct{}

func withGuest(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, guestKey{}, c)
}

// isKnown keeps the connection of a request that had a token.
func isKnown(ctx context.Context) {
	if g, ok := ctx.Value(guestKey{}).(*guest); ok {
		g.crowd.remove(g)
	}
}
