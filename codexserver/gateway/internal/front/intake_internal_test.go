package front

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

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
}
