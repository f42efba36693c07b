//go:build soak

package hosts_test

import (
	"context"
	"io"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestSpeed carries a gibibyte from a host, in at most twice the time that it takes by a connection of this machine.
func TestSpeed(t *testing.T) {
	const size = 1 << 30
	far := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer far.Close()
	go func() {
		for c, err := far.Accept(); err == nil; c, err = far.Accept() {
			for some, left := make([]byte, 256<<10), size; left > 0; left -= len(some) {
				_, _ = c.Write(some)
			}
			c.Close()
		}
	}()
	dial := func() net.Conn { return must.Get(net.Dial("tcp", far.Addr().String()))(t) }
	p := leading("93.184.215.14")
	p.Dial = func(context.Context, string, string) (net.Conn, error) { return dial(), nil }
	n := p.Network(t.Context(), allow)
	defer n.Close()
	sockets := must.Get(net.Listen("unix", filepath.Join(t.TempDir(), "s")))(t)
	defer sockets.Close()
	took := func(c net.Conn, more int64) time.Duration {
		begun := time.Now()
		must.Equal(t, "bytes", size+more, must.Get(io.Copy(io.Discard, c))(t))
		return time.Since(begun)
	}
	direct, through := time.Hour, time.Hour
	for range 3 {
		direct = min(direct, took(dial(), 0))
		near := must.Get(net.Dial("unix", sockets.Addr().String()))(t)
		served := must.Get(sockets.Accept())(t)
		go func() { n.Serve(served); served.Close() }()
		must.Get(io.WriteString(near, connect("one.example.com")))(t)
		through = min(through, took(near, int64(len("HTTP/1.1 "+well+"\r\n\r\n"))))
		near.Close()
	}
	if through > 2*direct {
		t.Errorf("%v, and directly %v", through, direct)
	}
}
