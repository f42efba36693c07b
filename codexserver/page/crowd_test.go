package page_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/page"
)

// crowd plays a local program without a token: it opens n connections, says something on each, and opens a new
// one whenever one ends, until the test ends.
func crowd(t *testing.T, p *page.Page, n int, say string) {
	t.Helper()
	address := strings.TrimPrefix(p.Address(), "http://")
	ctx, end := context.WithCancel(t.Context())
	var all, opened sync.WaitGroup
	opened.Add(n)
	for range n {
		all.Go(func() {
			first := sync.OnceFunc(opened.Done)
			for ctx.Err() == nil {
				conn, err := net.Dial("tcp4", address)
				if err != nil {
					continue
				}
				_, _ = io.WriteString(conn, strings.ReplaceAll(say, "HOST", address))
				first()
				stop := context.AfterFunc(ctx, func() { conn.Close() })
				_, _ = io.Copy(io.Discard, conn)
				stop()
				conn.Close()
			}
		})
	}
	opened.Wait()
	t.Cleanup(func() {
		end()
		all.Wait()
	})
}

// TestCrowd checks that the owner gets in, stays in and can answer while a neighbour holds as many connections as it can.
func TestCrowd(t *testing.T) {
	t.Parallel()
	for name, say := range map[string]string{
		"nothing":      "",
		"slow headers": "GET / HTTP/1.1\r\nHost: HOST\r\nX-Slow: ",
		"slow body":    "POST /session HTTP/1.1\r\nHost: HOST\r\nOrigin: http://HOST\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{",
		"kept alive":   "GET / HTTP/1.1\r\nHost: HOST\r\n\r\n",
		"wrong token":  "GET /events HTTP/1.1\r\nHost: HOST\r\nAuthorization: Bearer x\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := listen(t, nil)
			crowd(t, p, 300, say)
			v := visit(t, p)
			for _, path := range []string{"/", "/page.css", "/page.js"} {
				if res, body := v.Send(v.Request(http.MethodGet, path, "")); res.StatusCode != http.StatusOK || body == "" {
					t.Errorf("%s: %s", path, res.Status)
				}
			}
			stream := v.Events()
			if _, ok := stream.Next(); !ok {
				t.Fatal("the stream ended")
			}
			crowd(t, p, 100, say)
			answer := ask(t.Context(), p, exec("1", "git", "init"))
			open := stream.Question("open")
			if status, body := v.Post(fmt.Sprintf("/questions/%d", open.ID), `{"action":"decline"}`); status != http.StatusNoContent {
				t.Errorf("an answer: %d %s", status, body)
			}
			if got := <-answer; got.err != nil {
				t.Error(got.err)
			}
		})
	}
}
