package front_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/clustertest"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/settings"
)

// TestReload replaces the users while requests are open. Those of a token that is revoked and of a user
// who is removed end at once; others go on.
func TestReload(t *testing.T) {
	s := start(t)
	s.revoked.Store(new(string))
	n := s.join("a")
	release := make(chan struct{})
	defer close(release)
	n.set(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "begun\n")
		if http.NewResponseController(w).Flush() != nil {
			return
		}
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	ended := map[string]chan error{}
	for name, token := range map[string]string{
		"a token that goes": "ann:codex:read", "a token that stays": "ann", "a user who goes": "bob", "another user": "eve",
	} {
		answer, err := http.DefaultClient.Do(s.request(t.Context(), http.MethodPost, token, "{}"))
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		body := bufio.NewReader(answer.Body)
		if line, err := body.ReadString('\n'); line != "begun\n" {
			t.Fatalf("%s: %q, %v", name, line, err)
		}
		ended[name] = make(chan error, 1)
		go func() {
			_, err := body.ReadByte()
			ended[name] <- err
		}()
	}
	gone := "ann:codex:read"
	s.revoked.Store(&gone)
	s.front.Reload(t.Context(), map[string]settings.Principal{"ann": {}, "eve": {}})
	for _, name := range []string{"a token that goes", "a user who goes"} {
		select {
		case err := <-ended[name]:
			if err == nil || err == io.EOF {
				t.Errorf("%s: the answer ends as if it were whole: %v", name, err)
			}
		case <-time.After(clustertest.Patience):
			t.Fatalf("%s: the request goes on", name)
		}
	}
	n.set(nil)
	s.post("bob", 403, "not configured")
	s.post("ann", 200, "a: ann")
	for _, name := range []string{"a token that stays", "another user"} {
		if len(ended[name]) > 0 {
			t.Errorf("%s: the request ends: %v", name, <-ended[name])
		}
	}
}

// TestReloadMeanwhile replaces the users after the guard has admitted a request, and before the front has
// noted it. It must not go on.
func TestReloadMeanwhile(t *testing.T) {
	s := start(t)
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
