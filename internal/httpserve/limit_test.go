package httpserve_test

import (
	"errors"
	"net"
	"testing"
	"testing/synctest"

	"github.com/codexmcp/codexmcp/internal/httpserve"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// poor is a listener that first fails some times, as one without descriptors does.
type poor struct {
	net.Listener
	fails int
}

var errPoor = errors.New("too many open files")

// Accept implements [net.Listener].
func (l *poor) Accept() (net.Conn, error) {
	if l.fails--; l.fails >= 0 {
		return nil, errPoor
	}
	conn, _ := net.Pipe()
	return conn, nil
}

// Close implements [net.Listener].
func (l *poor) Close() error { return errPoor }

// TestLimit keeps one connection open at a time. An Accept that failed takes no place, and one that waits ends with the listener.
func TestLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := httpserve.Limit(&poor{fails: 3}, 1)
		for range 3 {
			if _, err := l.Accept(); !errors.Is(err, errPoor) {
				t.Errorf("error %v", err)
			}
		}
		first := must.Get(l.Accept())(t)
		accepted := false
		go func() {
			second, err := l.Accept()
			if err != nil {
				t.Error(err)
				return
			}
			accepted = true
			second.Close()
		}()
		synctest.Wait()
		if accepted {
			t.Error("two connections are open")
		}
		first.Close()
		first.Close() // which frees no second place
		synctest.Wait()
		if !accepted {
			t.Error("a place is not free after the end of its connection")
		}
		must.Get(l.Accept())(t)
		ended := make(chan error, 1)
		go func() {
			_, err := l.Accept()
			ended <- err
		}()
		for range 2 {
			if err := l.Close(); !errors.Is(err, errPoor) {
				t.Errorf("close: %v", err)
			}
		}
		if err := <-ended; !errors.Is(err, net.ErrClosed) {
			t.Errorf("the Accept that waited: %v", err)
		}
	})
}
