package page_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/page"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// visitor is a browser's tab, played by the test.
type visitor struct {
	t      *testing.T
	client *http.Client
	origin string
	token  string
}

// visit opens the page by a new link.
func visit(t *testing.T, p *page.Page) *visitor {
	t.Helper()
	_, secret, ok := strings.Cut(p.Link(), "/#")
	if !ok {
		t.Fatal("a link without a secret")
	}
	v := &visitor{t: t, origin: p.Address(), client: &http.Client{Transport: &http.Transport{}}}
	t.Cleanup(v.client.CloseIdleConnections)
	status, body := v.post("/session", fmt.Sprintf(`{"secret":%q}`, secret))
	var in struct{ Token string }
	if err := json.Unmarshal([]byte(body), &in); status != http.StatusOK || err != nil || in.Token == "" {
		t.Fatalf("not let in: %d %s", status, body)
	}
	v.token = in.Token
	return v
}

// request returns a request as the page's script sends it.
func (v *visitor) request(method, path, body string) *http.Request {
	r, err := http.NewRequestWithContext(context.Background(), method, v.origin+path, strings.NewReader(body))
	if err != nil {
		v.t.Fatal(err)
	}
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	if v.token != "" {
		r.Header.Set("Authorization", "Bearer "+v.token)
	}
	if method == http.MethodPost {
		r.Header.Set("Origin", v.origin)
		r.Header.Set("Content-Type", "application/json")
	}
	return r
}

// send sends a request and returns the whole answer.
func (v *visitor) send(r *http.Request) (*http.Response, string) {
	v.t.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), 20*time.Second)
	defer cancel()
	res, err := v.client.Do(r.WithContext(ctx))
	if err != nil {
		v.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	return res, strings.TrimSpace(string(body))
}

func (v *visitor) post(path, body string) (int, string) {
	v.t.Helper()
	res, text := v.send(v.request(http.MethodPost, path, body))
	return res.StatusCode, text
}

// line is a line of the stream, with the parts that the tests check.
type line struct {
	Questions []shown `json:"questions"`
	End       string  `json:"end"`
}

// shown is a question as a browser gets it.
type shown struct {
	ID       int
	Question struct {
		Kind, Command, State, Decision, By, Reason, Feedback string
		Session                                              bool
	}
}

// events is an open stream.
type events struct {
	t     *testing.T
	body  io.ReadCloser
	lines *bufio.Reader
}

func (v *visitor) events() *events {
	v.t.Helper()
	res, err := v.client.Do(v.request(http.MethodGet, "/events", ""))
	if err != nil {
		v.t.Fatal(err)
	}
	v.t.Cleanup(func() { res.Body.Close() })
	if res.StatusCode != http.StatusOK {
		v.t.Fatalf("events: %s", res.Status)
	}
	return &events{v.t, res.Body, bufio.NewReader(res.Body)}
}

// next returns the next line other than a heartbeat, or false at the end.
func (e *events) next() (line, bool) {
	e.t.Helper()
	for {
		text, err := e.lines.ReadBytes('\n')
		if err != nil {
			return line{}, false
		}
		if text = bytes.TrimSpace(text); len(text) == 0 {
			continue
		}
		var l line
		if err := json.Unmarshal(text, &l); err != nil {
			e.t.Errorf("not JSON: %s", text)
			return line{}, false
		}
		return l, true
	}
}

// question waits for a question in a state and returns it.
func (e *events) question(state string) shown {
	e.t.Helper()
	for {
		l, ok := e.next()
		if !ok {
			e.t.Fatalf("the stream ended before a question was %s", state)
		}
		for _, q := range l.Questions {
			if q.Question.State == state {
				return q
			}
		}
	}
}

func listen(t *testing.T, o *page.Options) *page.Page {
	t.Helper()
	p, err := page.Listen(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func thread(id string) approval.Thread { return approval.Thread{ID: id, Stop: func() {}} }

func exec(id string, argv ...string) *approval.Request {
	r := protocol.ExecApprovalRequest{Command: argv, Cwd: "/work"}
	return &approval.Request{Thread: thread(id), Event: r, Question: approval.ExecQuestion(r, "", "")}
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
	stream := v.events()
	for _, answer := range []string{
		`{"action":"accept"}`,
		`{"action":"accept","content":null}`,
		`{"action":"accept","content":{"decision":"approved_for_session"}}`,
		`{"action":"decline","content":{"feedback":"use \u0000 <b>make</b>"}}`,
		` { "action" : "cancel" } `,
	} {
		r := exec("1", "git", "push")
		back := ask(t.Context(), p, r)
		id := stream.question("open").ID
		path := fmt.Sprintf("/questions/%d", id)
		if status, body := v.post(path, answer); status != http.StatusNoContent {
			t.Errorf("%s: %d %s", answer, status, body)
		}
		if got := get(t, back); got.err != nil || got.answer != answer {
			t.Errorf("Ask returned %q, %v; want %q", got.answer, got.err, answer)
		}
		if status, body := v.post(path, answer); status != http.StatusConflict || body != `{"state":"answered"}` {
			t.Errorf("%s: the second answer got %d %s", answer, status, body)
		}
		p.Decided(r, approval.Decision{Outcome: r.Question.Read([]byte(answer), nil), By: approval.ByPage})
		if e := stream.question("decided"); e.ID != id || e.Question.By != "page" {
			t.Errorf("%s: shown as %+v", answer, e.Question)
		}
		if status, body := v.post(path, answer); status != http.StatusConflict || !strings.Contains(body, `"by":"page"`) {
			t.Errorf("%s: the third answer got %d %s", answer, status, body)
		}
	}
}

func TestAnsweredElsewhere(t *testing.T) {
	p := listen(t, nil)
	v := visit(t, p)
	stream := v.events()
	r := exec("1", "git", "push")
	ctx, withdraw := context.WithCancel(t.Context())
	back := ask(ctx, p, r)
	id := stream.question("open").ID
	withdraw()
	if got := get(t, back); got.err == nil {
		t.Errorf("Ask returned %q", got.answer)
	}
	if status, body := v.post(fmt.Sprintf("/questions/%d", id), `{"action":"accept"}`); status != http.StatusConflict || body != `{"state":"withdrawn"}` {
		t.Errorf("an answer too late got %d %s", status, body)
	}
	p.Decided(r, approval.Decision{Outcome: elicit.Outcome{Decision: elicit.Denied, Reason: elicit.ReasonDeclined}, By: approval.ByClient})
	if e := stream.question("decided"); e.Question.By != "client" || e.Question.Decision != "denied" {
		t.Errorf("shown as %+v", e.Question)
	}
	status, body := v.post(fmt.Sprintf("/questions/%d", id), `{"action":"accept"}`)
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
	if status, body := v.post("/conversations/1/stop", `{}`); status != http.StatusNoContent {
		t.Fatalf("stop: %d %s", status, body)
	}
	if got := get(t, stopped); got != id {
		t.Errorf("stopped %q", got)
	}
	if status, _ := v.post("/conversations/9/stop", `{}`); status != http.StatusNotFound {
		t.Errorf("another conversation: %d", status)
	}
}

func TestClose(t *testing.T) {
	told := 0
	p := listen(t, &page.Options{Announce: func(string) { told++ }})
	v := visit(t, p)
	stream := v.events()
	back := ask(t.Context(), p, exec("1", "true"))
	stream.question("open")
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if got := get(t, back); got.err == nil {
		t.Errorf("Ask returned %q", got.answer)
	}
	said := ""
	for more := true; more; {
		var l line
		if l, more = stream.next(); more {
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
	if err := p.Close(); err != nil {
		t.Error(err)
	}
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
	origin, secret, _ := strings.Cut(told[0], "/#")
	v := &visitor{t: t, origin: origin, client: http.DefaultClient}
	if status, body := v.post("/session", fmt.Sprintf(`{"secret":%q}`, secret)); status != http.StatusOK {
		t.Fatalf("the link does not work: %d %s", status, body)
	}
	unseen()
	if len(told) != 3 || told[2] == told[0] {
		t.Errorf("announced %q, want a new link after the first was used", told)
	}
	stream := visit(t, p).events()
	stream.next()
	unseen()
	if len(told) != 3 {
		t.Errorf("announced %q although the page is open", told)
	}
}

func TestOldestPageIsReplaced(t *testing.T) {
	p := listen(t, nil)
	v := visit(t, p)
	var open []*events
	for range 5 {
		e := v.events()
		e.next()
		open = append(open, e)
	}
	if l, ok := open[0].next(); !ok || l.End != "replaced" {
		t.Errorf("the oldest stream ended with %+v", l)
	}
}
