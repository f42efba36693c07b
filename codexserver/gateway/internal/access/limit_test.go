package access_test

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/access"
)

// TestFailureLimit checks that guesses from one address are limited, and that static tokens
// are still accepted from there.
func TestFailureLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ann, _ := team(t, nil)
		a := enter(t, s, nil)
		guess := func(remote string) int {
			return refusal(t, a, from(remote, "Bearer guess")).Status
		}
		for i := range 32 {
			if got := guess("192.0.2.1:1"); got != 0 {
				t.Fatalf("guess %d: %d", i, got)
			}
		}
		for range 100 {
			if got := guess("192.0.2.1:2"); got != http.StatusTooManyRequests {
				t.Fatalf("status %d", got)
			}
		}
		if _, err := a.Identify(from("192.0.2.1:1", "Bearer "+ann)); err != nil {
			t.Errorf("a good token from there: %v", err)
		}
		if got := guess("192.0.2.2:1"); got != 0 {
			t.Errorf("another address: %d", got)
		}
		for range 50 { // a request without a token is not a guess
			if got := refusal(t, a, from("192.0.2.3:1")).Status; got != 0 {
				t.Fatalf("no token: %d", got)
			}
		}
		<-time.After(time.Second)
		if got := guess("192.0.2.1:1"); got != 0 {
			t.Errorf("a second later: %d", got)
		}
		if got := guess("192.0.2.1:1"); got != http.StatusTooManyRequests {
			t.Errorf("one more: %d", got)
		}
		// The addresses of one IPv6 network are one client.
		for i := range 32 {
			if got := guess(fmt.Sprintf("[2001:db8::%x]:1", i)); got != 0 {
				t.Fatalf("guess %d: %d", i, got)
			}
		}
		if got := guess("[2001:db8::ffff]:1"); got != http.StatusTooManyRequests {
			t.Errorf("the network: %d", got)
		}
		if got := guess("[2001:db8:0:1::1]:1"); got != 0 {
			t.Errorf("another network: %d", got)
		}
	})
}

// TestProxy checks that failures are counted by the address that the proxy appends, and not
// by addresses that the client writes.
func TestProxy(t *testing.T) {
	s, _, _ := team(t, nil)
	for _, proxy := range []bool{true, false} {
		a := enter(t, s, &access.Options{BehindProxy: proxy})
		status := 0
		for i := range 40 {
			r := from("192.0.2.1:1", "Bearer guess")
			r.Header.Add("X-Forwarded-For", fmt.Sprintf("198.51.100.%d", i))
			r.Header.Add("X-Forwarded-For", fmt.Sprintf("203.0.113.%d, 198.51.100.77", i))
			status = refusal(t, a, r).Status
		}
		if status != http.StatusTooManyRequests {
			t.Errorf("proxy %v: a client can choose the address that its failures count for", proxy)
		}
		r := from("192.0.2.1:1", "Bearer guess")
		r.Header.Set("X-Forwarded-For", "198.51.100.78")
		if got := refusal(t, a, r).Status; (got == 0) != proxy {
			t.Errorf("proxy %v: another client: %d", proxy, got)
		}
	}
}
