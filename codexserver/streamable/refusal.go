package streamable

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Refusal is an error of [Options].Authenticate that says how the request is
// answered. Any other error is answered with 401.
type Refusal struct {
	// Status is that of the answer. Default: 401.
	Status int
	// Code is the error of WWW-Authenticate (RFC 6750), such as invalid_token. By
	// default none is said: the request brought no token.
	Code string
	// RetryAfter is when the client may ask again. By default nothing is said.
	RetryAfter time.Duration
	// Words say to the client why. They hold nothing of the token. Default: that a valid
	// token is required.
	Words string
	// Err is the cause, for the log. It may be nil.
	Err error
}

// Error implements error.
func (r *Refusal) Error() string {
	if r.Err != nil {
		return r.Err.Error()
	}
	return r.words()
}

// Unwrap returns the cause.
func (r *Refusal) Unwrap() error { return r.Err }

func (r *Refusal) words() string {
	if r.Words == "" {
		return "a valid token is required"
	}
	return r.Words
}

func (r *Refusal) status() int {
	if r.Status == 0 {
		return http.StatusUnauthorized
	}
	return r.Status
}

// answer writes the answer. The challenge goes with 401 and 403.
func (r *Refusal) answer(w http.ResponseWriter, challenge string) {
	if r.RetryAfter > 0 {
		seconds := int64((r.RetryAfter + time.Second - 1) / time.Second)
		w.Header().Set("Retry-After", strconv.FormatInt(seconds, 10))
	}
	if s := r.status(); s == http.StatusUnauthorized || s == http.StatusForbidden {
		w.Header().Set("WWW-Authenticate", challenge)
	}
	refuse(w, r.status(), r.words())
}

// parameters adds parameters to a challenge; those without a value are left out.
func parameters(challenge string, pairs ...string) string {
	var b strings.Builder
	b.WriteString(challenge)
	separator := " "
	if strings.Contains(challenge, " ") {
		separator = ", "
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			b.WriteString(separator + pairs[i] + `="` + pairs[i+1] + `"`)
			separator = ", "
		}
	}
	return b.String()
}
