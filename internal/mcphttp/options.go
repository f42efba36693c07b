package mcphttp

import (
	"cmp"
	"errors"
	"log/slog"
	"net/http"
	"time"
)

// Options say who may use a [Handler], and set its limits. The zero value of each field
// except Authenticate means its default.
type Options struct {
	// Authenticate returns the principal of a request. A request for which it returns an
	// error, or an empty name, is answered with 401. It must not read the body.
	Authenticate func(*http.Request) (Principal, error)
	// Challenge is the value of WWW-Authenticate in such an answer, and in one that
	// refuses a message for its scope. Default: Bearer.
	Challenge string
	// Metadata is the URL of the server's metadata as an OAuth resource (RFC 9728). The
	// challenge then names it, and the scopes. Default: none.
	Metadata string
	// Hosts are the accepted values of the header Host. A value without a port matches
	// every port. Default: loopback addresses and localhost.
	Hosts []string
	// Origins are the origins of web pages that may send requests, such as
	// https://example.com. Default: pages of this machine.
	Origins []string
	// Principals is how many principals may use the handler. Default: 1, because
	// principals share history files and everything that commands can read.
	Principals int

	// MaxBody is the longest accepted message, in bytes. Default: 64 MiB.
	MaxBody int
	// BodyTimeout is how long a client may take to send a message. Default: a minute.
	BodyTimeout time.Duration
	// WriteTimeout is how long one write may wait for a client. Then the connection is
	// closed. Default: a minute.
	WriteTimeout time.Duration
	// MaxStreams is how many HTTP requests of a principal may be open at the same time.
	// Default: 256.
	MaxStreams int
	// MaxSessions is how many sessions a principal may have at the same time. A further
	// session ends the one that has been idle for longest. It is refused if all are in
	// use. Default: 64.
	MaxSessions int
	// IdleTimeout is how long a session lives without an open request, up to twice as long if
	// a request has no answer then. Default: an hour.
	IdleTimeout time.Duration
	// MaxRetained is how many bytes of events a session keeps so that clients can resume
	// streams. Default: 4 MiB.
	MaxRetained int

	// Logger receives a record for each request, and what an operator should know.
	// Default: none.
	Logger *slog.Logger
}

// Principal is the sender of a request.
type Principal struct {
	// Name identifies the principal. It is not empty.
	Name string
	// Scopes are what the request's token allows. Nil allows everything, an empty slice
	// nothing.
	Scopes []Scope
}

var errNoAuthenticate = errors.New("mcphttp: Options.Authenticate is missing")

func (o *Options) withDefaults() (Options, error) {
	if o == nil || o.Authenticate == nil {
		return Options{}, errNoAuthenticate
	}
	c := *o
	c.Challenge = cmp.Or(c.Challenge, "Bearer")
	c.Principals = cmp.Or(max(c.Principals, 0), 1)
	c.MaxBody = cmp.Or(max(c.MaxBody, 0), 64<<20)
	c.BodyTimeout = cmp.Or(max(c.BodyTimeout, 0), time.Minute)
	c.WriteTimeout = cmp.Or(max(c.WriteTimeout, 0), time.Minute)
	c.MaxStreams = cmp.Or(max(c.MaxStreams, 0), 256)
	c.MaxSessions = cmp.Or(max(c.MaxSessions, 0), 64)
	c.IdleTimeout = cmp.Or(max(c.IdleTimeout, 0), time.Hour)
	c.MaxRetained = cmp.Or(max(c.MaxRetained, 0), 4<<20)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c, nil
}
