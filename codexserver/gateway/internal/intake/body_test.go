package intake_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/intake"
)

func TestOpenRequests(t *testing.T) {
	u := intake.NewUsage()
	var last func()
	for i := range 256 {
		end, ok := u.Begin(httptest.NewRecorder())
		if !ok {
			t.Fatalf("request %d is refused", i)
		}
		last = end
	}
	w := httptest.NewRecorder()
	if _, ok := u.Begin(w); ok || w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" {
		t.Errorf("one request more: %t, %d", ok, w.Code)
	}
	last()
	if _, ok := u.Begin(httptest.NewRecorder()); !ok {
		t.Error("the end of a request gives no room")
	}
}

// failing is a body that ends with an error.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// TestReadBody has four long bodies at the same time, which is all that a user has.
func TestReadBody(t *testing.T) {
	long := strings.Repeat("x", intake.LongBody)
	for _, tt := range []struct {
		name   string
		body   io.Reader
		length int64 // as the request says, -1 for chunks
		status int   // 0 for a body that is read
		others int   // long bodies in memory
		holds  bool  // the body is a long one
	}{
		{"empty", strings.NewReader(""), 0, 0, 4, false},
		{"short", strings.NewReader("abc"), 3, 0, 4, false},
		{"almost long", strings.NewReader(long[1:]), -1, 0, 4, false},
		{"long", strings.NewReader(long), -1, 0, 3, true},
		{"longer", strings.NewReader(long + "abc"), intake.LongBody + 3, 0, 3, true},
		{"one long body too many", strings.NewReader(long), -1, http.StatusTooManyRequests, 4, false},
		{"as long as one may be", strings.NewReader("abc"), intake.MaxBody, 0, 4, false},
		{"too long, as it says", strings.NewReader("abc"), intake.MaxBody + 1, http.StatusRequestEntityTooLarge, 0, false},
		{"too long", io.LimitReader(zeros{}, intake.MaxBody+1), -1, http.StatusRequestEntityTooLarge, 3, false},
		{"too late", failing{os.ErrDeadlineExceeded}, -1, http.StatusRequestTimeout, 0, false},
		{"broken", failing{errors.New("reset")}, -1, http.StatusBadRequest, 0, false},
		{"broken after a long part", io.MultiReader(strings.NewReader(long), failing{errors.New("reset")}), -1, http.StatusBadRequest, 3, false},
	} {
		u := intake.NewUsage()
		hold := func() (release func(), ok bool) {
			return u.ReadBody(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", strings.NewReader(long)))
		}
		for range tt.others {
			if _, ok := hold(); !ok {
				t.Fatal("a long body is refused")
			}
		}
		r := httptest.NewRequest(http.MethodPost, "/", tt.body)
		r.ContentLength, r.TransferEncoding = tt.length, []string{"chunked"}
		w := httptest.NewRecorder()
		release, ok := u.ReadBody(w, r)
		if ok != (tt.status == 0) || !ok && (w.Code != tt.status || w.Header().Get("Connection") != "close") {
			t.Errorf("%s: %t, status %d", tt.name, ok, w.Code)
			continue
		}
		free := 4 - tt.others
		if tt.holds {
			free--
		}
		count := func() (n int) {
			for {
				if _, ok := hold(); !ok {
					return n
				}
				n++
			}
		}
		if n := count(); n != free {
			t.Errorf("%s: room for %d long bodies, want %d", tt.name, n, free)
		}
		if !ok {
			continue
		}
		release()
		if n := count(); tt.holds != (n == 1) {
			t.Errorf("%s: release gives room for %d", tt.name, n)
		}
		for range 2 {
			body, err := io.ReadAll(r.Body)
			if err != nil || r.ContentLength != int64(len(body)) || r.TransferEncoding != nil || tt.length >= 0 && tt.length < intake.MaxBody && int64(len(body)) != tt.length {
				t.Errorf("%s: %d bytes, %v, length %d", tt.name, len(body), err, r.ContentLength)
			}
			if r.Body, err = r.GetBody(); err != nil {
				t.Error(err)
			}
		}
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// TestBodyInMemory checks that a body that was read by another user of the request counts as well, and is not read again.
func TestBodyInMemory(t *testing.T) {
	for _, tt := range []struct {
		length, room int
	}{{0, 5}, {intake.LongBody - 1, 5}, {intake.LongBody, 4}, {intake.LongBody + 1, 4}} {
		u := intake.NewUsage()
		var last func()
		read := func() (r *http.Request, w *httptest.ResponseRecorder, ok bool) {
			r, w = httptest.NewRequest(http.MethodPost, "/", strings.NewReader(strings.Repeat("x", tt.length))), httptest.NewRecorder()
			if _, ok := intake.NewUsage().ReadBody(w, r); !ok {
				t.Fatal("a body is refused")
			}
			release, ok := u.ReadBody(w, r)
			if ok {
				last = release
			}
			return r, w, ok
		}
		for i := range 5 {
			r, w, ok := read()
			if ok != (i < tt.room) || !ok && (w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "") {
				t.Errorf("%d bytes, request %d: %t, status %d", tt.length, i, ok, w.Code)
			}
			if body, err := io.ReadAll(r.Body); err != nil || len(body) != tt.length {
				t.Errorf("%d bytes of %d, %v", len(body), tt.length, err)
			}
		}
		last()
		if _, _, ok := read(); !ok {
			t.Errorf("%d bytes: release gives no room", tt.length)
		}
	}
}
