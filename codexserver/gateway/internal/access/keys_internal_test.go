package access

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/internal/mcphttp"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/go-jose/go-jose/v4"
)

// documents is a transport that answers requests by URL.
type documents struct {
	t    *testing.T
	slow time.Duration

	mu    sync.Mutex
	bodys map[string]string // a body "> URL" redirects
	asked []string
}

func (d *documents) RoundTrip(r *http.Request) (*http.Response, error) {
	select {
	case <-time.After(d.slow):
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked = append(d.asked, r.URL.String())
	if r.Header.Get("Authorization") != "" || r.Method != http.MethodGet {
		d.t.Errorf("%s %s with %q", r.Method, r.URL, r.Header)
	}
	answer := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Request: r}
	body, known := d.bodys[r.URL.String()]
	if to, ok := strings.CutPrefix(body, "> "); ok {
		answer.StatusCode = http.StatusFound
		answer.Header.Set("Location", to)
	} else if !known {
		answer.StatusCode = http.StatusNotFound
	}
	answer.Body = io.NopCloser(strings.NewReader(body))
	return answer, nil
}

func (d *documents) set(at, body string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.bodys[at] = body
}

func (d *documents) count(at string) (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, asked := range d.asked {
		if asked == at {
			n++
		}
	}
	return n
}

// keySetJSON returns a key set with a new key for each kid.
func keySetJSON(t *testing.T, kids ...string) string {
	t.Helper()
	set := jose.JSONWebKeySet{}
	for _, kid := range kids {
		key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: key.Public(), KeyID: kid, Use: "sig"})
	}
	raw := must.Get(json.Marshal(set))(t)
	return string(raw)
}

const (
	where   = "https://issuer.example.com/team"
	keysURL = "https://keys.example.com/keys"
	oidcURL = where + "/.well-known/openid-configuration"
)

func metadataOf(issuer, keys string) string {
	return fmt.Sprintf(`{"issuer":%q,"jwks_uri":%q,"token_endpoint":"x"}`, issuer, keys)
}

// asking returns a key set that fetches its keys from documents.
func asking(t *testing.T, issuer string, bodys map[string]string) (*keySet, *documents) {
	d := &documents{t: t, bodys: bodys}
	s := newKeySet(issuer, slog.New(slog.DiscardHandler))
	s.client.Transport = d
	return s, d
}

func (s *keySet) count(t *testing.T, kid string) (int, error) {
	t.Helper()
	keys, err := s.find(t.Context(), kid, "ES256")
	return len(keys), err
}

// unavailable reports whether a request is refused because the issuer cannot be reached.
func unavailable(err error) bool {
	why, ok := errors.AsType[*mcphttp.Refusal](err)
	return ok && why.Status == http.StatusServiceUnavailable
}

// TestKeysAreFetchedSeldom checks that unknown kids cause few fetches, and that a withdrawn
// key is refused after keysFresh.
func TestKeysAreFetchedSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, d := asking(t, where, map[string]string{oidcURL: metadataOf(where, keysURL), keysURL: keySetJSON(t, "a", "b")})
		want := func(kid string, n, fetches int) {
			t.Helper()
			if got, err := s.count(t, kid); got != n || err != nil || d.count(keysURL) != fetches {
				t.Errorf("%q: %d keys, error %v, %d fetches; want %d, %d", kid, got, err, d.count(keysURL), n, fetches)
			}
		}
		want("a", 1, 1)
		want("", 2, 1)
		for i := range 1000 {
			want(fmt.Sprint("forged", i), 0, 1)
		}
		<-time.After(fetchEvery)
		want("forged", 0, 2)
		want("forged", 0, 2)
		want("a", 1, 2)
		// The issuer replaces its keys. A token with a new one causes a fetch, unless the
		// last fetch was less than fetchEvery ago.
		d.set(keysURL, keySetJSON(t, "b", "c"))
		want("c", 0, 2)
		<-time.After(fetchEvery)
		want("a", 1, 2) // withdrawn, but still cached
		want("c", 1, 3)
		want("a", 0, 3)
		d.set(keysURL, keySetJSON(t, "c"))
		<-time.After(keysFresh)
		want("b", 0, 4)
	})
}

// TestKeysOutliveTheIssuer checks that keys are used for a day while the issuer is down.
func TestKeysOutliveTheIssuer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, d := asking(t, where, map[string]string{})
		for range 3 {
			if n, err := s.count(t, "a"); n != 0 || !unavailable(err) {
				t.Fatalf("%d keys, error %v", n, err)
			}
		}
		if n := d.count(oidcURL); n != 1 {
			t.Errorf("%d requests to an issuer that is down, want 1", n)
		}
		d.set(oidcURL, metadataOf(where, keysURL))
		d.set(keysURL, keySetJSON(t, "a"))
		<-time.After(fetchEvery)
		if n, err := s.count(t, "a"); n != 1 || err != nil {
			t.Fatalf("after the issuer has come back: %d keys, error %v", n, err)
		}
		d.set(keysURL, "! gone")
		<-time.After(keysKept)
		if n, err := s.count(t, "a"); n != 1 || err != nil {
			t.Errorf("after a day: %d keys, error %v", n, err)
		}
		<-time.After(time.Second)
		if n, err := s.count(t, "a"); n != 0 || !unavailable(err) {
			t.Errorf("after more than a day: %d keys, error %v", n, err)
		}
	})
}

// TestKeysAreFetchedOnce checks that concurrent requests share one fetch. The fetch must
// continue when the client that began it disconnects, and must end after fetchTimeout.
func TestKeysAreFetchedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, d := asking(t, where, map[string]string{oidcURL: metadataOf(where, keysURL), keysURL: keySetJSON(t, "a")})
		d.slow = time.Second
		gone, leave := context.WithCancel(t.Context())
		var requests sync.WaitGroup
		requests.Go(func() { _, _ = s.find(gone, "a", "ES256") })
		synctest.Wait()
		leave()
		for range 100 {
			requests.Go(func() {
				if n, err := s.count(t, "a"); n != 1 || err != nil {
					t.Errorf("%d keys, error %v", n, err)
				}
			})
		}
		requests.Wait()
		if n := d.count(keysURL); n != 1 {
			t.Errorf("%d fetches", n)
		}
		s, d = asking(t, where, map[string]string{})
		d.slow = time.Hour
		began := time.Now()
		if _, err := s.count(t, "a"); !unavailable(err) {
			t.Errorf("an issuer that does not answer: %v", err)
		}
		if took := time.Since(began); took > fetchTimeout {
			t.Errorf("it took %v", took)
		}
	})
}

// TestIssuerFaults checks that invalid documents of an issuer are refused.
func TestIssuerFaults(t *testing.T) {
	keys := keySetJSON(t, "a")
	many := keySetJSON(t, slices.Repeat([]string{"a"}, maxKeys+10)...)
	const local = "http://127.0.0.1:9"
	for name, tt := range map[string]struct {
		issuer string
		bodys  map[string]string
		keys   int
	}{
		"good":                    {where, map[string]string{oidcURL: metadataOf(where, keysURL), keysURL: keys}, 1},
		"OpenID's path, inserted": {where, map[string]string{"https://issuer.example.com/.well-known/openid-configuration/team": metadataOf(where, keysURL), keysURL: keys}, 1},
		"a slash":                 {"https://a.example.com/", map[string]string{"https://a.example.com/.well-known/openid-configuration": metadataOf("https://a.example.com/", keysURL), keysURL: keys}, 1},
		"the second path":         {where, map[string]string{"https://issuer.example.com/.well-known/oauth-authorization-server/team": `<html>`, oidcURL: metadataOf(where, keysURL), keysURL: keys}, 1},
		"on this machine":         {local, map[string]string{local + "/.well-known/openid-configuration": metadataOf(local, local+"/keys"), local + "/keys": keys}, 1},
		"another issuer":          {where, map[string]string{oidcURL: metadataOf("https://issuer.example.com", keysURL), keysURL: keys}, 0},
		"keys without TLS":        {where, map[string]string{oidcURL: metadataOf(where, "http://keys.example.com/keys"), "http://keys.example.com/keys": keys}, 0},
		"metadata elsewhere":      {where, map[string]string{oidcURL: "> https://evil.example/m", "https://evil.example/m": metadataOf(where, keysURL), keysURL: keys}, 0},
		"keys elsewhere":          {where, map[string]string{oidcURL: metadataOf(where, keysURL), keysURL: "> https://evil.example/keys", "https://evil.example/keys": keys}, 0},
		"long keys":               {where, map[string]string{oidcURL: metadataOf(where, keysURL), keysURL: keys + strings.Repeat(" ", maxDocument)}, 0},
		"more keys than are used": {where, map[string]string{oidcURL: metadataOf(where, keysURL), keysURL: many}, maxKeys},
		"a set that is no JSON":   {where, map[string]string{oidcURL: metadataOf(where, keysURL), keysURL: `keys`}, 0},
		"a secret key":            {where, map[string]string{oidcURL: metadataOf(where, keysURL), keysURL: `{"keys":[{"kty":"oct","kid":"a","k":"AAAA"}]}`}, 0},
		"a broken key beside one": {where, map[string]string{oidcURL: metadataOf(where, keysURL), keysURL: strings.Replace(keys, `[`, `[{"kty":"RSA","n":"x"},5,null,`, 1)}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s, d := asking(t, tt.issuer, tt.bodys)
			n, err := s.count(t, "a")
			if n != tt.keys || (err == nil) != (tt.keys > 0) {
				t.Errorf("%d keys, error %v; asked for %q", n, err, d.asked)
			}
			for _, at := range d.asked {
				if strings.Contains(at, "evil") {
					t.Errorf("asked for %s", at)
				}
			}
		})
	}
}

// TestTrusted tells from where keys may come: only those of an issuer on this machine need no TLS.
func TestTrusted(t *testing.T) {
	for text, want := range map[string][2]bool{ // for an issuer on this machine, and elsewhere
		"http://localhost:1/x": {true, false}, "http://127.0.0.1": {true, false}, "http://[::1]:8": {true, false},
		"http://127.0.0.1.example.com": {}, "http://example.com": {}, "http://user@localhost": {}, "http://": {}, "": {}, "%": {}, "ftp://localhost": {},
		"https://example.com": {true, true}, "https://localhost": {true, true}, "https://user@example.com": {}, "https://": {},
	} {
		if got := [2]bool{trusted(text, "http://localhost:2"), trusted(text, "https://example.com")}; got != want {
			t.Errorf("%q: here, elsewhere: %v", text, got)
		}
	}
}

// TestFits checks which keys fit which algorithms. The kind of key decides, never the token alone.
func TestFits(t *testing.T) {
	rsaKey := func(bits uint) any { return &rsa.PublicKey{N: new(big.Int).Lsh(big.NewInt(1), bits-1)} }
	for _, tt := range []struct {
		name string
		key  any
		fits string
	}{
		{"RSA of 2048 bits", rsaKey(2048), "RS256 PS512"}, {"RSA of 8192 bits", rsaKey(8192), "RS256 PS512"},
		{"RSA of 2047 bits", rsaKey(2047), ""}, {"RSA of 8193 bits", rsaKey(8193), ""},
		{"ECDSA", &ecdsa.PublicKey{}, "ES256"}, {"Ed25519", ed25519.PublicKey{}, "EdDSA"}, {"a secret", []byte("secret"), ""}, {"none", nil, ""},
	} {
		for _, algorithm := range []string{"RS256", "PS512", "ES256", "EdDSA", "HS256", "none", ""} {
			if got := fits(tt.key, algorithm); got != (algorithm != "" && strings.Contains(tt.fits, algorithm)) {
				t.Errorf("%s for %q: %v", tt.name, algorithm, got)
			}
		}
	}
}
