package intake_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/intake"
	"github.com/google/go-cmp/cmp"
)

// deadlines records the calls that set deadlines.
type deadlines struct {
	http.ResponseWriter
	read, write []bool // false where a call removed the deadline
}

// SetReadDeadline is for [http.ResponseController].
func (d *deadlines) SetReadDeadline(at time.Time) error {
	d.read = append(d.read, !at.IsZero())
	return nil
}

// SetWriteDeadline is for [http.ResponseController].
func (d *deadlines) SetWriteDeadline(at time.Time) error {
	d.write = append(d.write, !at.IsZero())
	return nil
}

// Unwrap is for [http.ResponseController].
func (d *deadlines) Unwrap() http.ResponseWriter { return d.ResponseWriter }

// TestDeadlines checks that reading the body has a deadline, and each write has one, but
// not the whole answer.
func TestDeadlines(t *testing.T) {
	d := &deadlines{ResponseWriter: httptest.NewRecorder()}
	r := httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader("body"))
	w := intake.NewResponse(d, r)
	if diff := cmp.Diff([]bool{true}, d.read); diff != "" {
		t.Errorf("while the body is read: %s", diff)
	}
	if _, err := io.ReadAll(r.Body); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]bool{true, false}, d.read); diff != "" {
		t.Errorf("after the body was read: %s", diff)
	}
	before := len(d.write)
	if _, err := io.WriteString(w, "answer"); err != nil {
		t.Fatal(err)
	}
	if err := http.NewResponseController(w).Flush(); err != nil {
		t.Fatal(err)
	}
	if len(d.write) != before+2 {
		t.Errorf("%d writes have a deadline, want 2", len(d.write)-before)
	}
	d = &deadlines{ResponseWriter: httptest.NewRecorder()}
	intake.NewResponse(d, httptest.NewRequest(http.MethodGet, "/mcp", nil))
	if diff := cmp.Diff([]bool{false}, d.read); diff != "" {
		t.Errorf("for a stream: %s", diff)
	}
}
