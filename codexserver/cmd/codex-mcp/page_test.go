package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/elicit"
)

// visitor is a browser at the approvals page.
type visitor struct {
	t             *testing.T
	origin, token string
	lines         *bufio.Reader // of the stream
}

// visit opens a link as the page's script does.
func visit(t *testing.T, link string) *visitor {
	t.Helper()
	origin, secret, ok := strings.Cut(link, "/#")
	if !ok {
		t.Fatalf("no link: %q", link)
	}
	v := &visitor{t: t, origin: origin}
	var admitted struct{ Token string }
	r := v.do(http.MethodPost, "/session", map[string]string{"secret": secret})
	if err := json.NewDecoder(r.Body).Decode(&admitted); err != nil || r.StatusCode != http.StatusOK {
		t.Fatalf("the link did not open the page: %s, %v", r.Status, err)
	}
	v.token = admitted.Token
	v.lines = bufio.NewReader(v.do(http.MethodGet, "/events", nil).Body)
	return v
}

func (v *visitor) do(method, path string, body any) *http.Response {
	v.t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		v.t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(v.t.Context(), method, v.origin+path, bytes.NewReader(raw))
	if err != nil {
		v.t.Fatal(err)
	}
	r.Header.Set("Origin", v.origin)
	r.Header.Set("Content-Type", "application/json")
	if v.token != "" {
		r.Header.Set("Authorization", "Bearer "+v.token)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		v.t.Fatal(err)
	}
	v.t.Cleanup(func() { answer.Body.Close() })
	return answer
}

// pageQuestion is a question on the page.
type pageQuestion struct {
	ID       int
	Question struct{ Command, State, Decision, By string }
}

// await reads the stream until a question has a state.
func (v *visitor) await(state string) pageQuestion {
	v.t.Helper()
	for {
		line, err := v.lines.ReadString('\n')
		if err != nil {
			v.t.Fatalf("no question became %s: %v", state, err)
		}
		var update struct{ Questions []pageQuestion }
		if strings.TrimSpace(line) == "" {
			continue
		}
		if err := json.Unmarshal([]byte(line), &update); err != nil {
			v.t.Fatal(err)
		}
		for _, q := range update.Questions {
			if q.Question.State == state {
				return q
			}
		}
	}
}

func (v *visitor) answer(id int, result string) {
	v.t.Helper()
	if r := v.do(http.MethodPost, fmt.Sprintf("/questions/%d", id), json.RawMessage(result)); r.StatusCode != http.StatusNoContent {
		v.t.Fatalf("the answer was refused: %s", r.Status)
	}
}

// announced opens a page, and returns a function that asks a question, which is withdrawn, and one that closes the page.
func announced(t *testing.T, stderr *deaf, when announcing) (ask, end func()) {
	t.Helper()
	c := &configuration{
		home: t.TempDir(), log: slog.New(slog.DiscardHandler),
		settings: &config.Settings{Approvals: config.ApprovalSettings{Asking: setting.Asking{Where: setting.WhereBoth}}},
	}
	var o codexserver.Options
	closePage, err := c.openPage(&o, stderr, when)
	if err != nil {
		t.Fatal(err)
	}
	withdrawn, withdraw := context.WithCancel(t.Context())
	withdraw()
	ask = func() {
		_, _ = o.Desk.Ask(withdrawn, &approval.Request{Event: protocol.RawEvent{}, Question: &elicit.Question{}})
	}
	return ask, func() {
		if err := closePage(); err != nil {
			t.Error(err)
		}
	}
}

// TestPageWithBlockedStderr checks that a client which does not read stderr does not delay a
// question.
func TestPageWithBlockedStderr(t *testing.T) {
	stderr := &deaf{released: make(chan struct{})}
	ask, end := announced(t, stderr, linkAgain)
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		for range 10 {
			ask()
		}
	}()
	select {
	case <-asked:
	case <-time.After(30 * time.Second):
		t.Error("a question waits for stderr")
	}
	close(stderr.released)
	end()
	<-asked
}

// TestLinksArePrintedAgain checks that the link is printed again for a question, unless a
// terminal shows the question.
func TestLinksArePrintedAgain(t *testing.T) {
	for when, want := range map[announcing]int{linkOnce: 1, linkAgain: 2, linkNever: 2} {
		stderr := &deaf{released: make(chan struct{}), wrote: make(chan struct{}, 8)}
		close(stderr.released)
		ask, end := announced(t, stderr, when)
		ask()
		for range want {
			<-stderr.wrote
		}
		end()
		if stderr.lines != want || stderr.links != (when != linkNever) {
			t.Errorf("%d: %d lines printed, want %d; with links: %t", when, stderr.lines, want, stderr.links)
		}
	}
}

// deaf is a writer that accepts one line, and blocks at the next until it is released.
type deaf struct {
	lines    int
	links    bool // a line has a link
	released chan struct{}
	wrote    chan struct{} // nil if nothing waits
}

func (d *deaf) Write(b []byte) (int, error) {
	if d.lines++; d.lines > 1 {
		<-d.released
	}
	d.links = d.links || bytes.Contains(b, []byte("/#"))
	if d.wrote != nil {
		d.wrote <- struct{}{}
	}
	return len(b), nil
}
