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

	"github.com/codexmcp/codexmcp/codexserver/streamable"
	"github.com/go-jose/go-jose/v4"
)

const (
	// keysFresh is how long the keys are used before they are fetched again: a key
	// that the issuer has withdrawn counts no longer than that.
	keysFresh = 15 * time.Minute
	// keysKept is how long they are used while the issuer cannot be reached.
	keysKept = 24 * time.Hour
	// fetchEvery is how often they are fetched at most: a token may name any key.
	fetchEvery = 10 * time.Second
	// fetchTimeout bounds one fetch with all its requests.
	fetchTimeout = 10 * time.Second
)

// keySet is the keys of an issuer, fetched when they are needed. It is safe for
// concurrent use.
//
// The key set of go-oidc is not used: it keeps a key for ever, and asks the issuer
// again for each unknown kid.
type keySet struct {
	issuer string
	client *http.Client
	log    *slog.Logger
	slot   chan struct{} // holds one while the keys are fetched

	mu      sync.Mutex
	keys    []jose.JSONWebKey
	fetched time.Time // when they came
	tried   time.Time // when they were asked for
}

func newKeySet(issuer string, log *slog.Logger) *keySet {
	return &keySet{issuer: issuer, client: issuerClient(), log: log, slot: make(chan struct{}, 1)}
}

// find returns the keys that may have signed with an algorithm: that of the kid, or all
// when there is no kid. None is not an error. The error is a refusal with 503.
func (s *keySet) find(ctx context.Context, kid, algorithm string) ([]jose.JSONWebKey, error) {
	if keys, fresh, _ := s.look(kid, algorithm); fresh && len(keys) > 0 {
		return keys, nil
	}
	s.refresh(ctx)
	keys, _, known := s.look(kid, algorithm)
	if !known {
		return nil, &streamable.Refusal{
			Status: http.StatusServiceUnavailable, RetryAfter: fetchEvery,
			Words: "the authorization server cannot be reached", Err: errors.New("no keys of the issuer"),
		}
	}
	return keys, nil
}

// look returns the keys that are there, and whether they are fresh and known at all.
func (s *keySet) look(kid, algorithm string) (keys []jose.JSONWebKey, fresh, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	age := time.Since(s.fetched)
	if s.fetched.IsZero() || age > keysKept {
		return nil, false, false
	}
	for _, key := range s.keys {
		if (kid == "" || key.KeyID == kid) && (key.Algorithm == "" || key.Algorithm == algorithm) && fits(key.Key, algorithm) {
			keys = append(keys, key)
		}
	}
	return keys, age < keysFresh, true
}

// refresh fetches the keys, unless that was tried a moment ago. One request at a time
// does, and the others wait for it.
func (s *keySet) refresh(ctx context.Context) {
	select {
	case s.slot <- struct{}{}:
	case <-ctx.Done():
		return
	}
	defer func() { <-s.slot }()
	s.mu.Lock()
	early := !s.tried.IsZero() && time.Since(s.tried) < fetchEvery
	if !early {
		s.tried = time.Now()
	}
	s.mu.Unlock()
	if early {
		return
	}
	// The client that sent this token may go away, but others wait for the keys too.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), fetchTimeout)
	defer cancel()
	keys, err := fetchKeys(ctx, s.client, s.issuer)
	if err != nil {
		s.log.Warn("the keys of the authorization server", "issuer", s.issuer, "error", err)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys, s.fetched = keys, time.Now()
}

// fits reports whether a key is a public one for an algorithm.
func fits(key any, algorithm string) bool {
	switch k := key.(type) {
	case *rsa.PublicKey:
		bits := k.N.BitLen()
		return (strings.HasPrefix(algorithm, "RS") || strings.HasPrefix(algorithm, "PS")) && bits >= 2048 && bits <= 8192
	case *ecdsa.PublicKey:
		return strings.HasPrefix(algorithm, "ES")
	case ed25519.PublicKey:
		return algorithm == string(jose.EdDSA)
	}
	return false
}
