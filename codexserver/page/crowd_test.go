package page_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/page"
)

// neighbour is a local program without a token. It holds many connections and opens a new one
// whenever one ends.
type neighbour struct {
	address string
	say     string // what it sends first
	done    chan struct{}
	all     sync.WaitGroup
	opened  chan struct{}
}

// crowd opens n connections and keeps that many open until the test ends.
func crowd(t *testing.T, p *page.Page, n int, say string) *neighbour {
	t.Helper()
	origin, _, _ := strings.Cut(p.Link(), "/#")
	c := &neighbour{address: strings.TrimPrefix(origin, "http://"), say: say, done: make(chan struct{}), opened: make(chan struct{}, n)}
	for range n {
		c.all.Add(1)
		go c.hold()
	}
	for range n {
		<-c.opened
	}
	t.Cleanup(func() {
		close(c.done)
		c.all.Wait()
	})
	return c
}

func (c *neighbour) hold() {
	defer c.all.Done()
	for {
		conn, err := net.Dial("tcp4", c.address)
		if err == nil {
			_, _ = io.WriteString(conn, strings.ReplaceAll(c.say, "HOST", c.address))
			select {
			case c.opened <- struct{}{}:
			default:
			}
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				_, _ = io.Copy(io.Discard, conn)
			}()
			select {
			case <-ended:
			case <-c.done:
			}
			conn.Close()
			<-ended
		}
		select {
		case <-c.done:
			return
		default:
		}
	}
}

// TestCrowd checks that the owner gets in, stays in and can answer while a neighbour holds as
// many connections as it can.
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
				if res, body := v.send(v.request(http.MethodGet, path, "")); res.StatusCode != http.StatusOK || body == "" {
					t.Errorf("%s: %s", path, res.Status)
				}
			}
			stream := v.events()
			if _, ok := stream.next(); !ok {
				t.Fatal("the stream ended")
			}
			crowd(t, p, 100, say)
			answer := ask(t.Context(), p, exec("1", "git", "init"))
			open := stream.question("open")
			if status, body := v.post(fmt.Sprintf("/questions/%d", open.ID), `{"action":"decline"}`); status != http.StatusNoContent {
				t.Errorf("an answer: %d %s", status, body)
			}
			if got := <-answer; got.err != nil {
				t.Error(got.err)
			}
		})
	}
}
