package front

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
)

// TestReadBody reads bodies of each length, and those that break off.
func TestReadBody(t *testing.T) {
	for _, tt := range []struct {
		name   string
		body   io.Reader
		status int // 0 if it is read
	}{
		{"nothing", strings.NewReader(""), 0},
		{"a short one", strings.NewReader("{}"), 0},
		{"a long one", strings.NewReader(strings.Repeat("x", longBody+1)), 0},
		{"the longest", strings.NewReader(strings.Repeat("x", maxBody)), 0},
		{"too long", strings.NewReader(strings.Repeat("x", maxBody+1)), http.StatusRequestEntityTooLarge},
		{"too long, without a length", io.MultiReader(strings.NewReader(strings.Repeat("x", maxBody+1))), http.StatusRequestEntityTooLarge},
		{"one that breaks off", io.MultiReader(strings.NewReader("{"), iotest.ErrReader(errors.New("reset"))), http.StatusBadRequest},
	} {
		w, u := httptest.NewRecorder(), newUsage()
		body, release, ok := u.readBody(w, httptest.NewRequest(http.MethodPost, "/mcp", tt.body))
		if ok != (tt.status == 0) || !ok && w.Code != tt.status {
			t.Errorf("%s: %d bytes, %v, %d", tt.name, len(body), ok, w.Code)
		}
		if ok {
			if held := len(u.large) > 0; held != (len(body) >= longBody) {
				t.Errorf("%s: it counts as long: %v", tt.name, held)
			}
			release()
		}
		if len(u.large) > 0 {
			t.Errorf("%s: it counts for ever", tt.name)
		}
	}
}

// TestUsage bounds what a user has open, until it ends.
func TestUsage(t *testing.T) {
	u := newUsage()
	var ends []func()
	for range maxOpen {
		end, ok := u.begin(httptest.NewRecorder())
		if !ok {
			t.Fatal("it is refused")
		}
		ends = append(ends, end)
	}
	w := httptest.NewRecorder()
	if _, ok := u.begin(w); ok || w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" {
		t.Errorf("one more: %v, %d", ok, w.Code)
	}
	ends[0]()
	if _, ok := u.begin(httptest.NewRecorder()); !ok {
		t.Error("another one after an end is refused")
	}
	for range maxLarge {
		u.large <- struct{}{}
	}
	w = httptest.NewRecorder()
	if _, _, ok := u.readBody(w, httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader(strings.Repeat("x", longBody)))); ok || w.Code != http.StatusTooManyRequests {
		t.Errorf("one more long body: %v, %d", ok, w.Code)
	}
}
