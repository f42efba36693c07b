package front

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

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

// timed is a response that notes its deadline.
type timed struct {
	*httptest.ResponseRecorder
	deadline time.Time
}

func (w *timed) SetWriteDeadline(t time.Time) error {
	w.deadline = t
	return nil
}

// TestLateStatus answers a request without a body after longer than a write may take.
func TestLateStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &timed{ResponseRecorder: httptest.NewRecorder()}
		a := newAnswer(w)
		time.Sleep(2 * clientTimeout)
		if a.WriteHeader(http.StatusAccepted); time.Until(w.deadline) != clientTimeout {
			t.Errorf("the deadline is in %v", time.Until(w.deadline))
		}
	})
}
