package auth

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestLoginTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		l := &login{answer: make(chan reply)}
		_, err := l.wait(context.Background())
		if !errors.Is(err, ErrTimeout) || time.Since(begin) != 10*time.Minute {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
	})
}

// TestAge signs in with tokens that are as old as they may be, and with older ones. The clock of
// the test begins in the year 2000.
func TestAge(t *testing.T) {
	for last, stale := range map[string]bool{"1999-12-04T00:00:00Z": false, "1999-12-03T23:59:59Z": true} {
		home := t.TempDir()
		if err := os.WriteFile(path(home), []byte(`{"tokens":{"access_token":"a"},"last_refresh":"`+last+`"}`), 0o600); err != nil {
			t.Fatal(err)
		}
		synctest.Test(t, func(t *testing.T) {
			if c, err := New(home, nil).Current(); err != nil || c.Stale != stale || (c.Token == "") != stale {
				t.Errorf("%s: %+v, %v", last, c, err)
			}
		})
	}
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestRefreshInTurns has an issuer whose refresh tokens are valid once, and that leaves out what
// did not change. Then it does not answer.
func TestRefreshInTurns(t *testing.T) {
	home := t.TempDir()
	if err := os.WriteFile(path(home), []byte(`{"tokens":{"id_token":"id","access_token":"a","refresh_token":"0"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		n := 0
		k := New(home, &Options{Issuer: "https://issuer.test", ClientID: "c", HTTPClient: &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
			body, _ := io.ReadAll(r.Body)
			if n == 3 {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}
			if !strings.Contains(string(body), fmt.Sprintf("refresh_token=%d", n)) {
				t.Errorf("request %d: %s", n, body)
			}
			for range 1000 { // the others would read the same token
				runtime.Gosched()
			}
			answer := fmt.Sprintf(`{"access_token":"new","token_type":"Bearer","refresh_token":"%d"}`, n+1)
			if n++; n == 3 {
				answer = `{"access_token":"newest","token_type":"Bearer"}`
			}
			return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(answer))}, nil
		})}})
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				if err := k.Refresh(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		f, err := load(home)
		if err != nil || f.Tokens.AccessToken != "newest" || f.Tokens.RefreshToken != "2" || f.Tokens.IDToken != "id" || f.Tokens.AccountID != nil {
			t.Errorf("%+v, %v", f.Tokens, err)
		}
		begun := time.Now()
		if err := k.Refresh(t.Context()); err == nil || time.Since(begun) != 30*time.Second {
			t.Errorf("after %v: %v", time.Since(begun), err)
		}
	})
}

func TestPrintable(t *testing.T) {
	for code, want := range map[string]string{
		"access_denied": "access_denied", " ~!": " ~!", "a\x1f": "", "a\x7f": "", `a"`: "", `a\`: "", "é": "",
		strings.Repeat("a", 101): strings.Repeat("a", 100),
	} {
		if got := printable(code); got != want {
			t.Errorf("%q: %q, want %q", code, got, want)
		}
	}
}
