package servertest

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/go-json-experiment/json"
)

// Visitor is a tab of a browser at the approvals page.
type Visitor struct {
	// Origin is that of the page, and Token the tab's.
	Origin, Token string

	t      *testing.T
	client *http.Client
}

// Visit opens the page by a link, as its script does.
func Visit(t *testing.T, link string) *Visitor {
	t.Helper()
	origin, secret, ok := strings.Cut(link, "/#")
	if !ok {
		t.Fatalf("a link without a secret: %q", link)
	}
	v := &Visitor{Origin: origin, t: t, client: &http.Client{Transport: &http.Transport{}}}
	t.Cleanup(v.client.CloseIdleConnections)
	status, body := v.Post("/session", fmt.Sprintf(`{"secret":%q}`, secret))
	var in struct {
		Token string `json:"token"`
	}
	if err := json.Unmarshal([]byte(body), &in); status != http.StatusOK || err != nil || in.Token == "" {
		t.Fatalf("the link did not open the page: %d %s", status, body)
	}
	v.Token = in.Token
	return v
}

// Request returns a request as the page's script sends it.
func (v *Visitor) Request(method, path, body string) *http.Request {
	r := must.Get(http.NewRequestWithContext(context.Background(), method, v.Origin+path, strings.NewReader(body)))(v.t)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	if v.Token != "" {
		r.Header.Set("Authorization", "Bearer "+v.Token)
	}
	if method == http.MethodPost {
		r.Header.Set("Origin", v.Origin)
		r.Header.Set("Content-Type", "application/json")
	}
	return r
}

// Send sends a request and returns the whole answer.
func (v *Visitor) Send(r *http.Request) (*http.Response, string) {
	v.t.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), 20*time.Second)
	defer cancel()
	res := must.Get(v.client.Do(r.WithContext(ctx)))(v.t)
	defer res.Body.Close()
	body := must.Get(io.ReadAll(res.Body))(v.t)
	return res, strings.TrimSpace(string(body))
}

// Post posts a body, and returns the status and the body of the answer.
func (v *Visitor) Post(path, body string) (int, string) {
	v.t.Helper()
	res, text := v.Send(v.Request(http.MethodPost, path, body))
	return res.StatusCode, text
}

// Answer answers a question, which must be open.
func (v *Visitor) Answer(id int, result string) {
	v.t.Helper()
	if status, body := v.Post(fmt.Sprintf("/questions/%d", id), result); status != http.StatusNoContent {
		v.t.Fatalf("the answer was refused: %d %s", status, body)
	}
}

// PageEvents is an open stream of the page.
type PageEvents struct {
	t     *testing.T
	lines *bufio.Reader
}

// PageLine is a line of the stream, with the parts that tests check.
type PageLine struct {
	Questions []PageQuestion `json:"questions"`
	End       string         `json:"end"`
}

// PageQuestion is a question as a browser gets it.
type PageQuestion struct {
	ID       int `json:"id"`
	Question struct {
		Command  string `json:"command"`
		State    string `json:"state"`
		Decision string `json:"decision"`
		By       string `json:"by"`
	} `json:"question"`
}

// Events opens the stream, until the test ends.
func (v *Visitor) Events() *PageEvents {
	v.t.Helper()
	res := must.Get(v.client.Do(v.Request(http.MethodGet, "/events", "")))(v.t)
	v.t.Cleanup(func() { res.Body.Close() })
	if res.StatusCode != http.StatusOK {
		v.t.Fatalf("events: %s", res.Status)
	}
	return &PageEvents{v.t, bufio.NewReader(res.Body)}
}

// Next returns the next line other than a heartbeat, or false at the end.
func (e *PageEvents) Next() (line PageLine, ok bool) {
	e.t.Helper()
	for {
		text, err := e.lines.ReadBytes('\n')
		if err != nil {
			return line, false
		}
		if text = bytes.TrimSpace(text); len(text) == 0 {
			continue
		}
		if err := json.Unmarshal(text, &line); err != nil {
			e.t.Errorf("not JSON: %s", text)
			return line, false
		}
		return line, true
	}
}

// Question waits for a question in a state and returns it.
func (e *PageEvents) Question(state string) PageQuestion {
	e.t.Helper()
	for {
		line, ok := e.Next()
		if !ok {
			e.t.Fatalf("the stream ended before a question was %s", state)
		}
		for _, q := range line.Questions {
			if q.Question.State == state {
				return q
			}
		}
	}
}
