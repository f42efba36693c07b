package workers

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestMetricsTimeout checks that workers that do not answer, stop in the middle or cannot
// be reached delay the metrics of the others by two seconds only.
func TestMetricsTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &Pool{log: slog.New(slog.DiscardHandler), slots: map[string]*slot{}}
		for name, serve := range map[string]func(net.Conn){
			"ann": func(conn net.Conn) {
				<-time.After(metricsTimeout - time.Millisecond)
				_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\na 1\n")
			},
			"silent":      func(net.Conn) {},
			"stopped":     func(conn net.Conn) { _, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\na") },
			"unreachable": nil,
		} {
			p.slots[name] = &slot{worker: &worker{exited: make(chan struct{}), dial: func(ctx context.Context) (net.Conn, error) {
				if serve == nil {
					<-ctx.Done()
					return nil, ctx.Err()
				}
				ours, theirs := net.Pipe()
				go func() {
					if _, err := http.ReadRequest(bufio.NewReader(theirs)); err == nil {
						serve(theirs)
					}
				}()
				return ours, nil
			}}}
		}
		began := time.Now()
		if diff := cmp.Diff(map[string]string{"ann": "a 1\n"}, p.Metrics(t.Context())); diff != "" {
			t.Errorf("metrics (-want +got):\n%s", diff)
		}
		if took := time.Since(began); took != metricsTimeout {
			t.Errorf("it took %v", took)
		}
	})
}
