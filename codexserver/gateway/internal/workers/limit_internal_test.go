package workers

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/settings"
	"github.com/codexmcp/codexmcp/internal/mcphttp"
)

// TestRequestLimit checks that a user's requests beyond the limit are refused, and that
// other users are not affected.
func TestRequestLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(Options{HTTP: settings.HTTP{Principals: map[string]settings.Principal{
			"ann": {Limits: settings.PrincipalLimits{Requests: 5}}, "bob": {Limits: settings.PrincipalLimits{Requests: 5}},
		}}, Logger: slog.New(slog.DiscardHandler)})
		p.closed = true // no worker starts, so an accepted request gets 503
		send := func(name string) *httptest.ResponseRecorder {
			w := httptest.NewRecorder()
			p.Serve(w, httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader("{}")), Request{User: name, Sender: mcphttp.Principal{Name: name}})
			return w
		}
		for range 3 {
			for i := range 5 {
				if got := send("ann"); got.Code != http.StatusServiceUnavailable {
					t.Fatalf("request %d: %d", i, got.Code)
				}
			}
			for range 100 { // refused requests must not make the wait longer
				if got := send("ann"); got.Code != http.StatusTooManyRequests || got.Header().Get("Retry-After") != "1" {
					t.Fatalf("%d %v", got.Code, got.Header())
				}
			}
			if got := send("bob"); got.Code != http.StatusServiceUnavailable {
				t.Errorf("another user: %d", got.Code)
			}
			<-time.After(time.Second)
		}
		if got := send("nobody"); got.Code != http.StatusForbidden {
			t.Errorf("an unknown user: %d", got.Code)
		}
	})
}
