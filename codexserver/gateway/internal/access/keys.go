package access

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/internal/mcphttp"
	"github.com/go-jose/go-jose/v4"
)

const (
	// keysFresh is how long keys are used before they are fetched again. It bounds how
	// long a key is accepted after the issuer has withdrawn it.
	keysFresh = 15 * time.Minute
	// keysKept is how long keys are used while the issuer cannot be reached.
	keysKept = 24 * time.Hour
	// fetchEvery is the shortest time between two fetches. A token with an unknown key
	// causes a fetch, and anyone can send one.
	fetchEvery = 10 * time.Second
	// fetchTimeout bounds one fetch with all its requests.
	fetchTimeout = 10 * time.Second
)

// keySet holds the keys of an issuer and fetches them on demand. It is safe for concurrent
// use.
//
// The key sets of go-oidc and of jwkset, which keyfunc uses, do not fit. Both keep a key for as
// long as the issuer cannot be reached. The first sends a request to the issuer for each unknown
// kid, and the second reads an answer of any length.
type keySet struct {
	issuer string
	client *http.Client
	log    *slog.Logger
	slot   chan struct{} // full while the keys are fetched
	tried  time.Time     // of the last fetch; used while slot is full

	mu      sync.Mutex
	keys    []jose.JSONWebKey
	fetched time.Time // of the last fetch that succeeded
}

func newKeySet(issuer string, log *slog.Logger) *keySet {
	return &keySet{issuer: issuer, client: issuerClient(), log: log, slot: make(chan struct{}, 1)}
}

// find returns the keys for an algorithm that have the kid, or all of them if kid is "". It
// fetches the keys again if none matches or they are too old. An empty result is not an
// error. If there are no usable keys at all, the error is a refusal with status 503.
func (s *keySet) find(ctx context.Context, kid, algorithm string) ([]jose.JSONWebKey, error) {
	if keys, fresh, _ := s.cached(kid, algorithm); fresh && len(keys) > 0 {
		return keys, nil
	}
	s.refresh(ctx)
	keys, _, known := s.cached(kid, algorithm)
	if !known {
		return nil, &mcphttp.Refusal{
			Status: http.StatusServiceUnavailable, RetryAfter: fetchEvery,
			Words: "the authorization server cannot be reached",
			Err:   errors.New("the issuer's keys could not be fetched"),
		}
	}
	return keys, nil
}

// cached returns the matching keys without a fetch. fresh reports whether they are younger
// than keysFresh, known whether the set has usable keys at all.
func (s *keySet) cached(kid, algorithm string) (keys []jose.JSONWebKey, fresh, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	age := time.Since(s.fetched)
	if age > keysKept { // or never
		return nil, false, false
	}
	for _, key := range s.keys {
		if (kid == "" || key.KeyID == kid) && (key.Algorithm == "" || key.Algorithm == algorithm) &&
			fits(key.Key, algorithm) {
			keys = append(keys, key)
		}
	}
	return keys, age < keysFresh, true
}

// refresh fetches the keys unless the last attempt was less than fetchEvery ago. Concurrent
// calls wait for the first one and do not fetch again.
func (s *keySet) refresh(ctx context.Context) {
	select {
	case s.slot <- struct{}{}:
	case <-ctx.Done():
		return
	}
	defer func() { <-s.slot }()
	if time.Since(s.tried) < fetchEvery {
		return
	}
	s.tried = time.Now()
	// The fetch continues if this client disconnects: other requests wait for the keys too.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), fetchTimeout)
	defer cancel()
	keys, err := fetchKeys(ctx, s.client, s.issuer)
	if err != nil {
		s.log.Warn("cannot fetch the keys of the authorization server", "issuer", s.issuer, "error", err)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys, s.fetched = keys, time.Now()
}

// fits reports whether key is a public key of accepted size for the algorithm.
func fits(key any, algorithm string) bool {
	switch k := key.(type) {
	case *rsa.PublicKey:
		bits := k.N.BitLen()
		return (strings.HasPrefix(algorithm, "RS") || strings.HasPrefix(algorithm, "PS")) && bits >= 2048 &&
			bits <= 8192
	case *ecdsa.PublicKey:
		return strings.HasPrefix(algorithm, "ES")
	case ed25519.PublicKey:
		return algorithm == string(jose.EdDSA)
	}
	return false
}
