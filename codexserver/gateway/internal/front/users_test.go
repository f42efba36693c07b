package front_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/settings"
)

// TestReload replaces the users while requests are open. Those of a token that is revoked and of a user
// who is removed end at once; others go on.
func TestReload(t *testing.T) {
	s := start(t, nil)
	s.revoked.Store(new(string))
	n := s.join("a")
	begun, release := make(chan bool), make(chan struct{})
	n.set(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "begun")
		_ = http.NewResponseController(w).Flush()
		begun <- true
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	ended := map[string]chan answer{}
	for _, token := range []string{"ann:codex:read", "ann", "bob", "eve"} {
		ended[token] = make(chan answer, 1)
		go func() { ended[token] <- s.send(http.MethodPost, token, "{}") }()
		<-begun
	}
	gone := "ann:codex:read"
	s.revoked.Store(&gone)
	s.front.Reload(t.Context(), map[string]settings.Principal{"ann": {}, "eve": {}})
	for _, token := range []string{gone, "bob"} {
		// It may end before the front has handed on what the node began with.
		if got := <-ended[token]; !errors.Is(got.Err, io.ErrUnexpectedEOF) && !strings.Contains(got.Body, "ended your access") {
			t.Errorf("%s: the request goes on, or ends as if it were whole: %s", token, got.Body)
		}
	}
	close(release)
	for _, token := range []string{"ann", "eve"} {
		if got := <-ended[token]; got.Err != nil {
			t.Errorf("%s: the request ends: %v", token, got.Err)
		}
	}
	n.set(nil)
	s.post("bob", 403, "not configured")
	s.post("ann", 200, "a: ann")
}

// TestReloadMeanwhile replaces the users after the guard has admitted a request, and before the front has
// noted it. It must not go on.
func TestReloadMeanwhile(t *testing.T) {
	s := start(t, nil)
	n := s.join("a")
	s.revoked.Store(new(string))
	s.admitting = func(ctx context.Context) {
		gone := "ann"
		s.revoked.Store(&gone)
		s.front.Reload(ctx, map[string]settings.Principal{"ann": {}})
	}
	s.post("ann", 403, "ended your access")
	if served, _ := n.count(); served != 0 {
		t.Error("the node has carried it out")
	}
	s.admitting = nil
	s.post("ann:codex:read", 200, "a: ann")
}
