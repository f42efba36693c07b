package workers

import (
	"bufio"
	"context"
	"io"
	"net"
	"sync/atomic"
	"time"
)

const (
	// maxKept limits the connections to a worker that no request uses.
	maxKept = 4
	// keepTime is how long they last after the latest request. The worker does not close them before.
	keepTime = 10 * time.Second
)

// connections are those to a worker that no request uses. A request over one of them does not wait until the
// worker accepts another one.
type connections struct {
	dial  func(context.Context) (net.Conn, error)
	kept  chan *connection
	timer *time.Timer // closes them
	ended atomic.Bool // the worker has ended
}

func newConnections() *connections {
	s := &connections{kept: make(chan *connection, maxKept)}
	s.timer = time.AfterFunc(keepTime, s.close)
	return s
}

// connection is a connection to a worker.
type connection struct {
	net.Conn
	of      *connections
	limited *io.LimitedReader // of in
	in      *bufio.Reader
	out     *bufio.Writer
	wrote   bool // a part of the latest request was written
}

// Write implements [io.Writer].
func (c *connection) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.wrote = c.wrote || n > 0
	return n, err
}

// take returns a connection for a request: one that is kept and that the worker has not closed, or a new one.
func (s *connections) take(ctx context.Context) (*connection, error) {
	for {
		select {
		case c := <-s.kept:
			if silent(c.Conn) {
				return c, nil
			}
			c.Close()
			continue
		default:
		}
		conn, err := s.dial(ctx)
		if err != nil {
			return nil, err
		}
		c := &connection{Conn: conn, of: s, limited: &io.LimitedReader{R: conn}}
		c.in, c.out = bufio.NewReader(c.limited), bufio.NewWriter(c)
		return c, nil
	}
}

// keep keeps the connection for another request. It closes the connection if there are enough, or if the worker has sent
// more than its answer or has ended.
func (c *connection) keep() error {
	if c.in.Buffered() > 0 {
		return c.Close()
	}
	select {
	case c.of.kept <- c:
	default:
		return c.Close()
	}
	c.of.timer.Reset(keepTime)
	if c.of.ended.Load() { // end may not have seen the connection
		c.of.end()
	}
	return nil
}

// close closes the connections that are kept.
func (s *connections) close() {
	for {
		select {
		case c := <-s.kept:
			c.Close()
		default:
			return
		}
	}
}

// end closes the connections of a worker that has ended. None is kept any more.
func (s *connections) end() {
	s.ended.Store(true)
	s.timer.Stop()
	s.close()
}
