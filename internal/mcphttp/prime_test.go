package mcphttp_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/internal/mcphttp"
)

// first returns the lines of the first event of a stream.
func (v *sse) first() (lines string) {
	v.t.Helper()
	for {
		line, err := v.lines.ReadString('\n')
		if err != nil {
			v.t.Fatalf("the stream ended: %v", err)
		}
		if line == "\n" {
			return lines
		}
		lines += line
	}
}

// TestStreamsBeginWithAnEmptyEvent checks that streams start with an empty event since MCP
// 2025-11-25. With its id a client can resume a stream before the first message.
func TestStreamsBeginWithAnEmptyEvent(t *testing.T) {
	e, began, _ := stuck()
	s := open(t, e, nil, nil)
	for version, begins := range map[string]string{
		"2025-03-26": "", "2025-06-18": "", "2025-11-25": "id: %-0\nretry: 1000\ndata: \n",
	} {
		h := s.initializeAs(version, nil)
		for _, again := range []string{"a second time", "a third time"} { // changes nothing
			s.post(`{"jsonrpc":"2.0","id":"`+again+`","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`, h)
		}
		call := s.stream(http.MethodPost, codex("1", version, `"progressToken":"tok"`), h)
		wait(t, began)
		standing := s.stream(http.MethodGet, "", h)
		if begins == "" {
			if got := call.first(); !strings.Contains(got, "data: {") {
				t.Errorf("%s: the stream of a call begins with %q", version, got)
			}
			continue
		}
		for number, v := range map[string]*sse{"4": call, "0": standing} {
			if got, want := v.first(), strings.Replace(begins, "%", number, 1); got != want {
				t.Errorf("%s: stream %s begins with %q, want %q", version, number, got, want)
			}
		}
		call.close()
		h["Last-Event-ID"] = "4-0"
		again := s.stream(http.MethodGet, "", h)
		if got, want := again.first(), strings.Replace(begins, "%", "4", 1); got != want {
			t.Errorf("%s: the resumed stream begins with %q, want %q", version, got, want)
		}
		if got := again.next(); again.lastID != "4-1" {
			t.Errorf("%s: the resumed stream continues with %s %s", version, again.lastID, got)
		}
	}
}

// TestAnswersWithoutEventIDsAreNotKept checks that answers without an event id do not displace
// events from which a client may resume.
func TestAnswersWithoutEventIDsAreNotKept(t *testing.T) {
	e, began, _ := stuck()
	s := open(t, e, nil, func(o *mcphttp.Options) { o.MaxRetained = 32 << 10 })
	h := s.initialize(nil)
	v := s.stream(http.MethodPost, codex("1", "hello", ""), h)
	wait(t, began)
	v.close()
	for range 10 {
		if got := s.post(`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`, h); got.header.Get("Content-Type") != "application/json" || len(got.body) < 8<<10 {
			t.Fatalf("%+v", got)
		}
	}
	h["Last-Event-ID"] = "2-0"
	if got := s.stream(http.MethodGet, "", h).next(); !strings.Contains(got, "session_configured") {
		t.Errorf("the stream continues with %s", got)
	}
}
