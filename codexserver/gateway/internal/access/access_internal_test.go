package access

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/settings"
	"github.com/codexmcp/codexmcp/internal/mcphttp"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// team returns the settings of two users and their static tokens. ann has all scopes, bob
// all but codex:approve.
func team(t *testing.T, change func(*settings.HTTP)) (s settings.HTTP, ann, bob string) {
	t.Helper()
	ann, hashA := NewToken()
	bob, hashB := NewToken()
	limits := settings.PrincipalLimits{Turns: 1000}
	s = settings.HTTP{Principals: map[string]settings.Principal{
		"ann": {Tokens: []string{hashA}, Subject: "ann", Scopes: settings.Scopes, Limits: limits},
		"bob": {Tokens: []string{hashB}, Subject: "bob@example.com", Scopes: []string{"codex:run", "codex:read"}, Limits: limits},
	}}
	if change != nil {
		change(&s)
	}
	return s, ann, bob
}

func enter(t *testing.T, s settings.HTTP) *Access {
	t.Helper()
	a := must.Get(New(s, slog.New(slog.DiscardHandler)))(t)
	return a
}

func with(authorization ...string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/mcp", nil)
	for _, v := range authorization {
		r.Header.Add("Authorization", v)
	}
	return r
}

// refusal returns the refusal of a request, and fails the test if it is accepted.
func refusal(t *testing.T, a *Access, r *http.Request) *mcphttp.Refusal {
	t.Helper()
	who, err := a.Identify(r)
	var why *mcphttp.Refusal
	if !errors.As(err, &why) {
		t.Fatalf("accepted as %+v, error %v", who, err)
	}
	if who.Name != "" || who.Scopes != nil {
		t.Errorf("a refused request has the principal %+v", who)
	}
	return why
}

func TestStaticTokens(t *testing.T) {
	s, ann, bob := team(t, nil)
	a := enter(t, s)
	for token, want := range map[string]mcphttp.Principal{
		ann: {Name: "ann", Scopes: mcphttp.Scopes()},
		bob: {Name: "bob", Scopes: []mcphttp.Scope{mcphttp.ScopeRun, mcphttp.ScopeRead}},
	} {
		for _, scheme := range []string{"Bearer", "bearer", "BEARER"} {
			must.Equal(t, scheme, want, must.Get(a.Identify(with(scheme+" "+token)))(t))
		}
	}
}

// TestHash checks the form of a hash, and that New refuses other forms.
func TestHash(t *testing.T) {
	if got, want := Hash("abc"), "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"; got != want {
		t.Errorf("got %s", got)
	}
	s, _, _ := team(t, func(s *settings.HTTP) { s.Principals["ann"].Tokens[0] = "sha256:00" })
	if _, err := New(s, slog.Default()); err == nil || !strings.Contains(err.Error(), "http.principals.ann.tokens[0]") {
		t.Errorf("error %v", err)
	}
	if _, err := New(settings.HTTP{}, slog.Default()); err == nil {
		t.Error("New accepts settings without principals")
	}
}
