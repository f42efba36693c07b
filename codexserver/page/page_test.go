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
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/page"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// visit opens the page by a new link, on this machine.
func visit(t *testing.T, p *page.Page) *servertest.Visitor {
	t.Helper()
	_, secret, _ := strings.Cut(p.Link(), "/#")
	return servertest.Visit(t, p.Address()+"/#"+secret)
}

func listen(t *testing.T, o *page.Options) *page.Page {
	t.Helper()
	p := must.Get(page.Listen(o))(t)
	t.Cleanup(func() { must.Check(t, p.Close()) })
	return p
}

func thread(id string) approval.Thread { return approval.Thread{ID: id, Stop: func() {}} }

func exec(id string, argv ...string) *approval.Request {
	r := approval.Command{Command: argv, Cwd: "/work"}
	return &approval.Request{Thread: thread(id), Subject: r, Question: r.Question("", "")}
}

// pendingQuestion is what Ask returns.
type reply struct {
	answer string
	err    error
}

// ask asks a question on the page.
func ask(ctx context.Context, p *page.Page, r *approval.Request) <-chan reply {
	back := make(chan reply, 1)
	go func() {
		raw, err := p.Ask(ctx, r)
		back <- reply{string(raw), err}
	}()
	return back
}

func get[T any](t *testing.T, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(time.Minute):
		t.Fatal("nothing came")
		panic("unreachable")
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	p := listen(t, nil)
	v := visit(t, p)
	stream := v.Events()
	for _, answer := range []string{
		`{"action":"accept"}`,
		`{"action":"accept","content":null}`,
		`{"action":"accept","content":{"decision":"approved_for_session"}}`,
		`{"action":"decline","content":{"feedback":"use \u0000 <b>make</b>"}}`,
		` { "action" : "cancel" } `,
	} {
		r := exec("1", "git", "push")
		back := ask(t.Context(), p, r)
		id := stream.Question("open").ID
		path := fmt.Sprintf("/questions/%d", id)
		if status, body := v.Post(path, answer); status != http.StatusNoContent {
			t.Errorf("%s: %d %s", answer, status, body)
		}
		if got := get(t, back); got.err != nil || got.answer != answer {
			t.Errorf("Ask returned %q, %v; want %q", got.answer, got.err, answer)
		}
		if status, body := v.Post(path, answer); status != http.StatusConflict || body != `{"state":"answered"}` {
			t.Errorf("%s: the second answer got %d %s", answer, status, body)
		}
		p.Decided(r, approval.Decision{Outcome: r.Question.Read([]byte(answer), nil), By: approval.ByPage})
		if e := stream.Question("decided"); e.ID != id || e.Question.By != "page" {
			t.Errorf("%s: shown as %+v", answer, e.Question)
		}
		if status, body := v.Post(path, answer); status != http.StatusConflict || !strings.Contains(body, `"by":"page"`) {
			t.Errorf("%s: the third answer got %d %s", answer, status, body)
		}
	}
}

func TestAnsweredElsewhere(t *testing.T) {
	p := listen(t, nil)
	v := visit(t, p)
	stream := v.Events()
	r := exec("1", "git", "push")
	ctx, withdraw := context.WithCancel(t.Context())
	back := ask(ctx, p, r)
	id := stream.Question("open").ID
	withdraw()
	if got := get(t, back); got.err == nil {
		t.Errorf("Ask returned %q", got.answer)
	}
	if status, body := v.Post(fmt.Sprintf("/questions/%d", id), `{"action":"accept"}`); status != http.StatusConflict || body != `{"state":"withdrawn"}` {
		t.Errorf("an answer too late got %d %s", status, body)
	}
	p.Decided(r, approval.Decision{Outcome: elicit.Outcome{Decision: elicit.Denied, Reason: elicit.ReasonDeclined}, By: approval.ByClient})
	if e := stream.Question("decided"); e.Question.By != "client" || e.Question.Decision != "denied" {
		t.Errorf("shown as %+v", e.Question)
	}
	status, body := v.Post(fmt.Sprintf("/questions/%d", id), `{"action":"accept"}`)
	if want := `{"state":"decided","decision":"denied","by":"client","reason":"declined"}`; status != http.StatusConflict || body != want {
		t.Errorf("an answer too late got %d %s, want %s", status, body, want)
	}
}

func TestStop(t *testing.T) {
	p := listen(t, nil)
	v := visit(t, p)
	stopped := make(chan string, 1)
	id := "a"
	p.Event(approval.Thread{ID: id, Stop: func() { stopped <- id }}, protocol.UserMessage{Message: "go"})
	if status, body := v.Post("/conversations/1/stop", `{}`); status != http.StatusNoContent {
		t.Fatalf("stop: %d %s", status, body)
	}
	must.Equal(t, "stopped", id, get(t, stopped))
	if status, _ := v.Post("/conversations/9/stop", `{}`); status != http.StatusNotFound {
		t.Errorf("another conversation: %d", status)
	}
}

func TestClose(t *testing.T) {
	told := 0
	p := listen(t, &page.Options{Announce: func(string) { told++ }})
	v := visit(t, p)
	stream := v.Events()
	back := ask(t.Context(), p, exec("1", "true"))
	stream.Question("open")
	must.Check(t, p.Close())
	if got := get(t, back); got.err == nil {
		t.Errorf("Ask returned %q", got.answer)
	}
	said := ""
	for more := true; more; {
		var l servertest.PageLine
		if l, more = stream.Next(); more {
			said = l.End
		}
	}
	if said != "closed" {
		t.Errorf("the browser learned %q", said)
	}
	if p.Watched() {
		t.Error("still watched")
	}
	if _, err := p.Ask(t.Context(), exec("1", "true")); err == nil {
		t.Error("Ask after Close had an answer")
	}
	if told != 1 {
		t.Errorf("announced %d links, of which one works", told)
	}
	must.Check(t, p.Close())
}

func TestAnnounce(t *testing.T) {
	var told []string
	p := listen(t, &page.Options{Announce: func(link string) { told = append(told, link) }})
	ended, end := context.WithCancel(t.Context())
	end()
	unseen := func() { _, _ = p.Ask(ended, exec("1", "true")) }
	unseen()
	if len(told) != 2 || told[0] != told[1] {
		t.Fatalf("announced %q, want one link twice", told)
	}
	servertest.Visit(t, told[0])
	unseen()
	if len(told) != 3 || told[2] == told[0] {
		t.Errorf("announced %q, want a new link after the first was used", told)
	}
	stream := visit(t, p).Events()
	stream.Next()
	unseen()
	if len(told) != 3 {
		t.Errorf("announced %q although the page is open", told)
	}
}

func TestOldestPageIsReplaced(t *testing.T) {
	p := listen(t, nil)
	v := visit(t, p)
	var open []*servertest.PageEvents
	for range 5 {
		e := v.Events()
		e.Next()
		open = append(open, e)
	}
	if l, ok := open[0].Next(); !ok || l.End != "replaced" {
		t.Errorf("the oldest stream ended with %+v", l)
	}
}

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
