package main

import (
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"sync"
	"time"
)

// tls returns the configuration of the files, nil without them.
func (o *httpOptions) tls() (*tls.Config, error) {
	if o.cert == "" {
		return nil, nil
	}
	c := &certificate{cert: o.cert, key: o.key}
	if _, err := c.current(); err != nil {
		return nil, fmt.Errorf("--tls-cert: %w", err)
	}
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.current() },
	}, nil
}

// certificate is one that is read again when its files change.
type certificate struct {
	cert, key string

	mu     sync.Mutex
	looked time.Time
	was    [2]time.Time // when the files were changed
	loaded *tls.Certificate
}

// lookEvery is how often the files are looked at.
const lookEvery = time.Second

// current returns the certificate. One that cannot be read does not replace the one
// before: the two files are seldom written at once.
func (c *certificate) current() (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.loaded != nil && time.Since(c.looked) < lookEvery {
		return c.loaded, nil
	}
	c.looked = time.Now()
	var is [2]time.Time
	for i, file := range []string{c.cert, c.key} {
		info, err := os.Stat(file)
		if err != nil {
			return c.orLoaded(err)
		}
		is[i] = info.ModTime()
	}
	if c.loaded != nil && is == c.was {
		return c.loaded, nil
	}
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return c.orLoaded(err)
	}
	c.loaded, c.was = &pair, is
	return c.loaded, nil
}

func (c *certificate) orLoaded(err error) (*tls.Certificate, error) {
	if c.loaded != nil {
		return c.loaded, nil
	}
	return nil, err
}

// limitListener accepts a connection when fewer than n are open.
func limitListener(l net.Listener, n int) net.Listener {
	return &boundedListener{Listener: l, places: make(chan struct{}, n), closed: make(chan struct{})}
}

type boundedListener struct {
	net.Listener
	places chan struct{}
	once   sync.Once
	closed chan struct{}
}

// Accept implements [net.Listener].
func (l *boundedListener) Accept() (net.Conn, error) {
	select {
	case l.places <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.places
		return nil, err
	}
	return &boundedConn{Conn: c, leave: sync.OnceFunc(func() { <-l.places })}, nil
}

// Close implements [net.Listener].
func (l *boundedListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

type boundedConn struct {
	net.Conn
	leave func()
}

// Close implements [net.Conn].
func (c *boundedConn) Close() error {
	defer c.leave()
	return c.Conn.Close()
}
