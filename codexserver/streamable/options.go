package streamable

import (
	"cmp"
	"errors"
	"log/slog"
	"net/http"
	"time"
)

// Options say who may use a [Handler], and how much of it. The zero value of each
// field but Authenticate is its default.
type Options struct {
	// Authenticate returns whose request it is. A request for which it returns an
	// error, or no name, is answered with 401. It must not read the body.
	Authenticate func(*http.Request) (Principal, error)
	// Challenge is the WWW-Authenticate of such an answer, and of one that refuses a
	// message for its scope. Default: Bearer.
	Challenge string
	// Metadata is the URL of the server's metadata as an OAuth resource (RFC 9728),
	// which the challenge then names with the scopes. None by default.
	Metadata string
	// Hosts are the values of Host that are served; one without a port is served on
	// every port. Default: loopback addresses and localhost.
	Hosts []string
	// Origins are the origins of web pages that may send requests, such as
	// https://example.com. Default: pages of this machine.
	Origins []string
	// Principals is how many principals may use the handler. Default: 1, because
	// history files, and all that commands can read, are not divided between them.
	Principals int

	// MaxBody bounds a message, in bytes. Default: 64 MiB.
	MaxBody int
	// BodyTimeout bounds how long a client takes to send a message. Default: a minute.
	BodyTimeout time.Duration
	// WriteTimeout bounds how long one write waits for a client. The connection is
	// closed then. Default: a minute.
	WriteTimeout time.Duration
	// MaxStreams is how many requests of a principal are open at a time. Default: 256.
	MaxStreams int
	// MaxSessions is how many sessions a principal has at a time. One more ends the
	// one that has been idle for longest; when none is idle it is refused.
	// Default: 64.
	MaxSessions int
	// IdleTimeout is how long a session without an open request lasts. Default: an
	// hour.
	IdleTimeout time.Duration
	// MaxRetained is how many bytes of events a session keeps for streams that are
	// taken up again. Default: 4 MiB.
	MaxRetained int

	// Report is called with each HTTP request that has been answered. It must not
	// block. Nil does nothing.
	Report func(Report)
	// Logger gets what an operator should know, and a line for each request.
	// Default: nothing is logged.
	Logger *slog.Logger
}

// Principal is who sent a request.
type Principal struct {
	// Name is unlike that of every other principal. It is not empty.
	Name string
	// Scopes are what the request's token allows. Nil is everything; empty is nothing.
	Scopes []Scope
}

const (
	defaultMaxBody  = 64 << 20
	defaultTimeout  = time.Minute
	defaultStreams  = 256
	defaultSessions = 64
	defaultIdle     = time.Hour
	defaultRetained = 4 << 20
)

var errNoAuthenticate = errors.New("streamable: Options.Authenticate is missing: no request is served without a principal")

func (o *Options) withDefaults() (Options, error) {
	if o == nil || o.Authenticate == nil {
		return Options{}, errNoAuthenticate
	}
	c := *o
	c.Challenge = cmp.Or(c.Challenge, "Bearer")
	c.Principals = cmp.Or(max(c.Principals, 0), 1)
	c.MaxBody = cmp.Or(max(c.MaxBody, 0), defaultMaxBody)
	c.BodyTimeout = cmp.Or(max(c.BodyTimeout, 0), defaultTimeout)
	c.WriteTimeout = cmp.Or(max(c.WriteTimeout, 0), defaultTimeout)
	c.MaxStreams = cmp.Or(max(c.MaxStreams, 0), defaultStreams)
	c.MaxSessions = cmp.Or(max(c.MaxSessions, 0), defaultSessions)
	c.IdleTimeout = cmp.Or(max(c.IdleTimeout, 0), defaultIdle)
	c.MaxRetained = cmp.Or(max(c.MaxRetained, 0), defaultRetained)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c, nil
}
