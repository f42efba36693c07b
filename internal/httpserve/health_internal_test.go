package httpserve

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
)

// TestHealth checks the answers of the health checks in each state.
func TestHealth(t *testing.T) {
	var draining atomic.Bool
	var failure error
	h := withHealth(http.NewServeMux(), &draining, func() error { return failure })
	for _, tt := range []struct {
		draining bool
		failure  error
		ready    int
		text     string
	}{
		{false, nil, http.StatusOK, "ready\n"},
		{false, errors.New("cut off from a part"), http.StatusServiceUnavailable, "cut off from a part\n"},
		{true, nil, http.StatusServiceUnavailable, "draining\n"},
		{true, errors.New("cut off from a part"), http.StatusServiceUnavailable, "draining\n"},
		{false, nil, http.StatusOK, "ready\n"},
	} {
		draining.Store(tt.draining)
		failure = tt.failure
		for path, want := range map[string]int{"/readyz": tt.ready, "/healthz": http.StatusOK} {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
			if w.Code != want || w.Body.String() != map[string]string{"/readyz": tt.text, "/healthz": "ok\n"}[path] {
				t.Errorf("%+v: %s: %d %q", tt, path, w.Code, w.Body)
			}
		}
	}
}
