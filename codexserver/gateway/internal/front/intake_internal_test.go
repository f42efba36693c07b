package front

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/settings"
	"github.com/codexmcp/codexmcp/internal/mcphttp"
)

// TestOpen bounds what a user has open, until it ends.
func TestOpen(t *testing.T) {
	f := &Front{}
	f.setUsers(map[string]settings.Principal{"ann": {}})
	enter := func() (a *admitted, w *httptest.ResponseRecorder, ok bool) {
		a = &admitted{principal: mcphttp.Principal{Name: "ann"}}
		w = httptest.NewRecorder()
		_, ok = f.enter(w, httptest.NewRequest(http.MethodPost, "/", nil), a)
		return a, w, ok
	}
	for range maxOpen - 1 {
		if _, _, ok := enter(); !ok {
			t.Fatal("it is refused")
		}
	}
	last, _, _ := enter()
	if _, w, ok := enter(); ok || w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" {
		t.Errorf("one more: %v, %d, %v", ok, w.Code, w.Header())
	}
	f.leave(last)
	if _, _, ok := enter(); !ok {
		t.Error("another one after an end is refused")
	}
}
