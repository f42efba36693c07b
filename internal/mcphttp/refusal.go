package mcphttp

import (
	"cmp"
	"net/http"
	"strconv"
	"time"
)

// Refusal is an error of [Options].Authenticate that sets the answer to the request. Any
// other error is answered with 401.
type Refusal struct {
	// Status is the HTTP status. Default: 401.
	Status int
	// Code is the error parameter of WWW-Authenticate (RFC 6750), such as invalid_token.
	// Default: none, as for a request without a token.
	Code string
	// RetryAfter is when the client may try again. Default: the answer does not say.
	RetryAfter time.Duration
	// Words is the reason, for the client. It must not contain the token. Default: a valid
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
	return cmp.Or(r.Words, noToken)
}

const noToken = "a valid token is required"

// Unwrap returns the cause.
func (r *Refusal) Unwrap() error { return r.Err }

// answer writes the answer. With 401 and 403 it has the challenge.
func (r *Refusal) answer(w http.ResponseWriter, challenge string) {
	if r.RetryAfter > 0 {
		seconds := int64((r.RetryAfter + time.Second - 1) / time.Second)
		w.Header().Set("Retry-After", strconv.FormatInt(seconds, 10))
	}
	status := cmp.Or(r.Status, http.StatusUnauthorized)
	if status == http.StatusUnauthorized || status == http.StatusForbidden {
		w.Header().Set("WWW-Authenticate", challenge)
	}
	refuse(w, status, cmp.Or(r.Words, noToken))
}
