package page

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"slices"
	"sync"
	"time"
)

// A door decides who has access: first by the secret of a link, which works once, then
// by a token. A secret is compared in constant time, and with every known one.
type door struct {
	mu       sync.Mutex
	links    []invite   // oldest first
	sessions []*session // least recently used first
}

const (
	maxLinks     = 8
	linkLifetime = time.Hour
	maxSessions  = 16
	// sessionLifetime is how long a token stays valid that is not used, as that of a phone which
	// sleeps: a weekend. An open page uses its token all the time.
	sessionLifetime = 72 * time.Hour
)

type invite struct {
	secret    string
	expires   time.Time // by the wall clock, which runs while the machine sleeps
	announced bool
}

// session is a browser tab with a token.
type session struct {
	token   string
	expires time.Time
	ended   chan struct{} // closed when the token is no longer valid
}

// invite returns the secret of a new link.
func (d *door) invite() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.add(false)
}

// announce returns the secret of the link that was announced last, or of a new one if that was used
// or has less than half of its lifetime left.
func (d *door) announce() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range slices.Backward(d.links) {
		if l.announced && time.Until(l.expires) >= linkLifetime/2 {
			return l.secret
		}
	}
	return d.add(true)
}

// add adds a link, and returns its secret.
func (d *door) add(announced bool) string {
	d.links = append(d.links, invite{newSecret(), time.Now().Round(0).Add(linkLifetime), announced})
	if len(d.links) > maxLinks {
		d.links = slices.Delete(d.links, 0, 1)
	}
	return d.links[len(d.links)-1].secret
}

// admit exchanges the secret of a link for a token. The link does not work again.
func (d *door) admit(secret string) (token string, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tidy()
	i := find(d.links, secret, func(l invite) string { return l.secret })
	if i < 0 {
		return "", false
	}
	d.links = slices.Delete(d.links, i, i+1)
	if len(d.sessions) == maxSessions {
		close(d.sessions[0].ended)
		d.sessions = slices.Delete(d.sessions, 0, 1)
	}
	s := &session{token: newSecret(), expires: time.Now().Add(sessionLifetime), ended: make(chan struct{})}
	d.sessions = append(d.sessions, s)
	return s.token, true
}

// session returns the session of a token and extends it, or nil if the token is not
// valid.
func (d *door) session(token string) *session {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tidy()
	found := find(d.sessions, token, func(s *session) string { return s.token })
	if found < 0 {
		return nil
	}
	s := d.sessions[found]
	d.sessions = append(slices.Delete(d.sessions, found, found+1), s)
	s.expires = time.Now().Add(sessionLifetime)
	return s
}

// find returns the index of what has that secret, or -1.
func find[T any](all []T, secret string, of func(T) string) int {
	found := -1
	for i, one := range all {
		if subtle.ConstantTimeCompare([]byte(of(one)), []byte(secret)) == 1 {
			found = i
		}
	}
	return found
}

// tidy removes links and sessions that have expired.
func (d *door) tidy() {
	now := time.Now()
	d.links = slices.DeleteFunc(d.links, func(l invite) bool { return now.After(l.expires) })
	d.sessions = slices.DeleteFunc(d.sessions, func(s *session) bool {
		if !now.After(s.expires) {
			return false
		}
		close(s.ended)
		return true
	})
}

// newSecret returns 256 random bits.
func newSecret() string {
	b := make([]byte, 32)
	rand.Read(b) // never fails
	return base64.RawURLEncoding.EncodeToString(b)
}
