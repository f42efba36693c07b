package httpserve

import (
	"net"
	"sync"
)

// Limit returns a listener that keeps at most n connections open. Accept waits until one
// closes.
func Limit(l net.Listener, n int) net.Listener {
	return &boundedListener{Listener: l, slots: make(chan struct{}, n), closed: make(chan struct{})}
}

type boundedListener struct {
	net.Listener
	slots  chan struct{} // has one element for each open connection
	once   sync.Once
	closed chan struct{}
}

// Accept implements [net.Listener].
func (l *boundedListener) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	return &boundedConn{Conn: c, release: sync.OnceFunc(func() { <-l.slots })}, nil
}

// Close implements [net.Listener].
func (l *boundedListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

type boundedConn struct {
	net.Conn
	release func()
}

// Close implements [net.Conn].
func (c *boundedConn) Close() error {
	defer c.release()
	return c.Conn.Close()
}
