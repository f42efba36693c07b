package httpserve

import (
	"crypto/tls"
	"fmt"
	"net"
	"os"
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

// certificate is a certificate that is read again when its files change.
type certificate struct {
	cert, key string // the files

	mu       sync.Mutex
	checked  time.Time    // when the files were last checked
	modified [2]time.Time // the modification times of the files that were loaded
	loaded   *tls.Certificate
}

// checkInterval is the shortest time between two checks of the files.
const checkInterval = time.Second

// current returns the certificate. If the files changed but cannot be read, it returns the
// one from before: a program that replaces both files writes one after the other.
func (c *certificate) current() (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.loaded != nil && time.Since(c.checked) < checkInterval {
		return c.loaded, nil
	}
	c.checked = time.Now()
	var modified [2]time.Time
	for i, file := range []string{c.cert, c.key} {
		info, err := os.Stat(file)
		if err != nil {
			return c.orLoaded(err)
		}
		modified[i] = info.ModTime()
	}
	if c.loaded != nil && modified == c.modified {
		return c.loaded, nil
	}
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return c.orLoaded(err)
	}
	c.loaded, c.modified = &pair, modified
	return c.loaded, nil
}

// orLoaded returns the loaded certificate, or err if none is loaded.
func (c *certificate) orLoaded(err error) (*tls.Certificate, error) {
	if c.loaded != nil {
		return c.loaded, nil
	}
	return nil, err
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
