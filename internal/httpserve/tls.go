package httpserve

import (
	"crypto/tls"
	"fmt"
	"net"
	"sync"
	"time"
)

// config returns the TLS configuration for --tls-cert and --tls-key, or nil without them.
func (f *Flags) config() (*tls.Config, error) {
	if f.Cert == "" {
		return nil, nil
	}
	c := &certificate{cert: f.Cert, key: f.Key}
	if _, err := c.current(); err != nil {
		return nil, fmt.Errorf("--tls-cert: %w", err)
	}
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.current() },
	}, nil
}

// certificate is a certificate whose files are read again, since they may change.
type certificate struct {
	cert, key string // the files

	mu     sync.Mutex
	read   time.Time // when the files were last read
	loaded *tls.Certificate
}

// readInterval is the shortest time between two reads of the files.
const readInterval = time.Second

// current returns the certificate. If the files cannot be read, it returns the one from
// before: a program that replaces both files writes one after the other.
func (c *certificate) current() (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.loaded != nil && time.Since(c.read) < readInterval {
		return c.loaded, nil
	}
	c.read = time.Now()
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err == nil {
		c.loaded = &pair
	} else if c.loaded == nil {
		return nil, err
	}
	return c.loaded, nil
}

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
