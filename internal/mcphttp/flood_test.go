package mcphttp_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/internal/mcphttp"
)

// TestNoTokenIsLeaked sends good and bad requests. Neither the log nor the answers to others
// may contain the token or the id of the session.
func TestNoTokenIsLeaked(t *testing.T) {
	log := &requests{all: make(chan request, 64)}
	s := open(t, echo, nil, func(o *mcphttp.Options) {
		o.Logger = slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		authenticate := o.Authenticate
		o.Authenticate = func(r *http.Request) (mcphttp.Principal, error) {
			r = r.Clone(r.Context())
			r.Header.Set("Authorization", strings.TrimSuffix(r.Header.Get("Authorization"), "-SECRET"))
			return authenticate(r)
		}
	})
	secret := headers{"Authorization": "Bearer ann-SECRET"}
	session := s.initialize(secret)
	var all strings.Builder
	for i, h := range []headers{session, secret, {"Authorization": "Bearer mallory-SECRET"}, {"Authorization": "Basic SECRET"}, {"Authorization": "Bearer ann-SECRET", "Host": "evil.example"}, {"Authorization": "Bearer ann-SECRET", "Mcp-Session-Id": "SECRET"}} {
		for _, body := range []string{codex(fmt.Sprint(i), "hello", ""), `{`, `{"jsonrpc":"2.0","id":1,"method":"no/such"}`, `{"jsonrpc":"2.0","id":7,"result":{}}`} {
			all.WriteString(s.post(body, h).body)
		}
	}
	s.do(http.MethodDelete, "", session)
	log.mu.Lock()
	defer log.mu.Unlock()
	if log.text == "" {
		t.Error("nothing was logged")
	}
	for where, text := range map[string]string{"the log": log.text, "an answer": all.String()} {
		if strings.Contains(text, "SECRET") || strings.Contains(text, session["Mcp-Session-Id"]) {
			t.Errorf("%s has a token: %s", where, text)
		}
	}
}
