package page

import (
	"net"
	"net/http"
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

// A crowd is the connections that have sent no token. None is refused: if there are too many, a new one replaces
// the oldest. So a program that holds connections does not keep the owner out. While there are too many, new ones are
// accepted slowly, so that a flood cannot replace a connection before its request is read.
type crowd struct {
	mu        sync.Mutex
	strangers []stranger // the oldest first
}

// stranger is a connection to the page.
type stranger struct {
	net.Conn
	since time.Time
}

// follow is [http.Server].ConnState. The server accepts no other connection until it returns for a new one.
func (c *crowd) follow(conn net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		for oldest := c.add(conn); oldest != nil; oldest = c.add(conn) {
			time.Sleep(time.Until(oldest.since.Add(patience)))
			if c.remove(oldest.Conn) {
				_ = oldest.Close()
			}
		}
	case http.StateClosed:
		c.remove(conn)
	}
}

// add adds a stranger, or returns the oldest one if there is no room.
func (c *crowd) add(conn net.Conn) *stranger {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.strangers) == maxStrangers {
		return new(c.strangers[0])
	}
	c.strangers = append(c.strangers, stranger{conn, time.Now()})
	return nil
}

// remove reports whether a connection was a stranger until now.
func (c *crowd) remove(conn net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.strangers, func(s stranger) bool { return s.Conn == conn })
	if i >= 0 {
		c.strangers = slices.Delete(c.strangers, i, i+1)
	}
	return i >= 0
}

// isKnown keeps the connection of a request that had a token. No other open connection has its address.
func (c *crowd) isKnown(r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.strangers = slices.DeleteFunc(c.strangers,
		func(s stranger) bool { return s.RemoteAddr().String() == r.RemoteAddr })
}
