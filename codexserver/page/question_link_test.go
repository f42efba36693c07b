package page_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/page"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// linkTo returns a link to a question that is asked already, or about to be.
func linkTo(t *testing.T, p *page.Page, r *approval.Request) string {
	t.Helper()
	link, err := p.QuestionLink(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return link
}

// follow posts the secret of a link as the page does in a new tab, which it returns if the link opens
// it.
func follow(t *testing.T, link string) (*visitor, int) {
	t.Helper()
	origin, secret, _ := strings.Cut(link, "/#")
	v := &visitor{t: t, origin: origin, client: &http.Client{Transport: &http.Transport{}}}
	t.Cleanup(v.client.CloseIdleConnections)
	status, body := v.post("/session", fmt.Sprintf(`{"secret":%q}`, secret))
	var in struct {
		Token string
		One   bool
	}
	if status == http.StatusOK && (json.Unmarshal([]byte(body), &in) != nil || in.Token == "" || !in.One) {
		t.Errorf("a tab for one question got %s", body)
	}
	v.token = in.Token
	return v, status
}

// TestQuestionLink uses the links of two questions of two conversations as others would, and as the
// person does.
func TestQuestionLink(t *testing.T) {
	p := listen(t, nil)
	stopped := func() { t.Error("the tab of a question stopped the turn") }
	p.Event(approval.Thread{ID: "1", Stop: stopped}, protocol.UserMessage{Message: "words of before"})
	mine, other := exec("1", "git", "push"), exec("2", "rm", "-rf", "/")
	mine.Thread.Stop, other.Thread.Stop = stopped, stopped
	back, others := ask(t.Context(), p, mine), ask(t.Context(), p, other)
	link, spare, elsewhere := linkTo(t, p, mine), linkTo(t, p, mine), linkTo(t, p, other)
	origin, secret, _ := strings.Cut(link, "/#")
	stranger := &visitor{t: t, origin: origin, client: http.DefaultClient}
	body := fmt.Sprintf(`{"secret":%q}`, secret)

	for _, tt := range []struct {
		name, method, path, body, header, value string
		want                                    int
	}{
		{"GET, as a preview does", "GET", "/", "", "", "", 200},
		{"HEAD", "HEAD", "/", "", "", "", 405},
		{"a prefetch", "GET", "/", "", "Sec-Purpose", "prefetch", 200},
		{"the secret in the query", "GET", "/?" + secret, "", "", "", 200},
		{"the secret in the path", "GET", "/" + secret, "", "", "", 404},
		{"GET of the session", "GET", "/session", body, "", "", 405},
		{"HEAD of the session", "HEAD", "/session", "", "", "", 405},
		{"another site", "POST", "/session", body, "Origin", "http://evil.example", 403},
		{"another site, by a link", "POST", "/session", body, "Sec-Fetch-Site", "cross-site", 403},
		{"a form", "POST", "/session", body, "Content-Type", "text/plain", 400},
		{"no secret", "POST", "/session", `{"secret":""}`, "", "", 403},
		{"a guess", "POST", "/session", fmt.Sprintf(`{"secret":%q}`, strings.Repeat("A", len(secret))), "", "", 403},
		{"a shorter secret", "POST", "/session", fmt.Sprintf(`{"secret":%q}`, secret[1:]), "", "", 403},
		{"a longer secret", "POST", "/session", fmt.Sprintf(`{"secret":%q}`, secret+"A"), "", "", 403},
		{"the secret as a token", "GET", "/events", "", "Authorization", "Bearer " + secret, 401},
	} {
		r := stranger.request(tt.method, tt.path, tt.body)
		if tt.header != "" {
			r.Header.Set(tt.header, tt.value)
		}
		if res, text := stranger.send(r); res.StatusCode != tt.want || strings.Contains(text, "git push") {
			t.Errorf("%s: %s, want %d: %s", tt.name, res.Status, tt.want, text)
		}
	}

	v, status := follow(t, link)
	if status != http.StatusOK {
		t.Fatalf("the link was used up: %d", status)
	}
	if _, status := follow(t, link); status != http.StatusForbidden {
		t.Errorf("another browser with the same link: %d", status)
	}
	stream := v.events()
	first, _ := stream.next()
	if len(first.Conversations) != 1 || len(first.Conversations[0].Entries) != 1 || first.Conversations[0].Entries[0].Question.Command != "git push" {
		t.Errorf("the tab of one question sees %+v", first)
	}
	if p.Watched() || p.Invite() == "" {
		t.Error("the tab of one question passes for the page")
	}
	id := first.Conversations[0].Entries[0].ID
	for _, header := range []string{v.token, "Basic " + v.token, "Bearer " + v.token + "A", "Bearer "} {
		r := v.request("GET", "/events", "")
		r.Header.Set("Authorization", header)
		if res, _ := v.send(r); res.StatusCode != http.StatusUnauthorized {
			t.Errorf("the token in another form: %s", res.Status)
		}
	}
	for _, tt := range []struct {
		path string
		want int
	}{
		{fmt.Sprint("/questions/", id+1), 403}, {fmt.Sprint("/questions/", id-1), 403}, {"/questions/0", 403},
		{"/conversations/1/stop", 401}, {"/conversations/2/stop", 401},
	} {
		if status, text := v.post(tt.path, `{"action":"accept"}`); status != tt.want {
			t.Errorf("%s: %d, want %d: %s", tt.path, status, tt.want, text)
		}
	}
	select {
	case got := <-back:
		t.Fatalf("the question was answered: %+v", got)
	case got := <-others:
		t.Fatalf("the other question was answered: %+v", got)
	default:
	}

	if status, text := v.post(fmt.Sprint("/questions/", id), `{"action":"decline"}`); status != http.StatusNoContent {
		t.Errorf("the answer: %d %s", status, text)
	}
	if got := get(t, back); got.answer != `{"action":"decline"}` {
		t.Errorf("Ask returned %+v", got)
	}
	if _, status := follow(t, spare); status != http.StatusForbidden {
		t.Errorf("a link after the answer: %d", status)
	}
	p.Decided(mine, approval.Decision{Outcome: elicit.Outcome{Decision: elicit.Denied, Reason: elicit.ReasonDeclined}, By: approval.ByDesk})
	last := first
	for l, ok := stream.next(); ok; l, ok = stream.next() {
		for _, c := range l.Conversations {
			if c.ID != "1" || len(c.Entries) != 1 {
				t.Errorf("the tab of one question sees %+v", c)
			}
		}
		last = l
	}
	if last.End != "decided" {
		t.Errorf("the stream ended with %+v", last)
	}
	if v, status := follow(t, elsewhere); status != http.StatusOK {
		t.Errorf("the link to the other question: %d", status)
	} else if e := v.events().question("open"); e.ID == id {
		t.Error("it opens the first question")
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if link, err := p.QuestionLink(ended, mine); !errors.Is(err, context.Canceled) {
		t.Errorf("a link to a decided question: %s, %v", link, err)
	}
}

// TestQuestionLinkBounds asks for too many links, and for links to what the page does not show.
func TestQuestionLinkBounds(t *testing.T) {
	t.Parallel()
	p := listen(t, nil)
	r := exec("1", "git", "push")
	ctx, withdraw := context.WithCancel(t.Context())
	back := ask(ctx, p, r)
	var links []string
	for range 9 {
		links = append(links, linkTo(t, p, r))
	}
	for i, want := range map[int]int{0: http.StatusForbidden, 1: http.StatusOK, 8: http.StatusOK} {
		if _, status := follow(t, links[i]); status != want {
			t.Errorf("link %d of 9: %d, want %d", i+1, status, want)
		}
	}
	withdraw()
	get(t, back)
	if _, status := follow(t, links[2]); status != http.StatusForbidden {
		t.Errorf("a link to a withdrawn question: %d", status)
	}

	long := exec("1", strings.Repeat("x", 5<<20))
	unshown := ask(t.Context(), p, long)
	if link, err := p.QuestionLink(t.Context(), long); err == nil || err != get(t, unshown).err {
		t.Errorf("a link to a question that is too long: %s, %v", link, err)
	}
	p.Decided(long, approval.Decision{})
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if link, err := p.QuestionLink(t.Context(), long); err == nil {
		t.Errorf("a link of a closed page: %s", link)
	}
}
