// Package streamable serves MCP over Streamable HTTP. A [Handler] is an [http.Handler] for a
// [codexserver.Server]. It serves both eras of MCP: requests of 2026-07-28, which are one POST
// each, and the sessions of 2025-03-26 to 2025-11-25.
//
// The handler reads no body before it knows the user of the request. A user cannot see the
// sessions, tasks, open questions and open threads of another one.
package streamable

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/internal/mcphttp"
)

// Options say who may use a [Handler], and set its limits. The zero value of each field
// except Authenticate means its default.
type Options struct {
	// Authenticate returns the name of the user who sent a request. A request for which it
	// returns an error, or an empty name, is answered with 401. It must not read the body.
	Authenticate func(*http.Request) (user string, err error)
	// Challenge is the value of WWW-Authenticate in such an answer. Default: Bearer.
	Challenge string
	// Hosts are the accepted values of the header Host. A value without a port matches
	// every port. Default: loopback addresses and localhost.
	Hosts []string
	// Origins are the origins of web pages that may send requests, such as
	// https://example.com. Default: pages of this machine.
	Origins []string
	// Users is how many users there may be. Default: 1, because users share history files
	// and everything that commands can read.
	Users int

	// MaxBody is the longest accepted message, in bytes. Default: 64 MiB.
	MaxBody int
	// Timeout is how long a client may take to send a message, and how long one write may
	// wait for a client. 0 or less means a minute.
	Timeout time.Duration
	// MaxRequests is how many HTTP requests of a user may be open at the same time.
	// Default: 256.
	MaxRequests int
	// MaxSessions is how many sessions a user may have at the same time. A further session
	// ends the one that has been idle for longest. It is refused if all are in use.
	// Default: 64.
	MaxSessions int
	// IdleTimeout is how long a session lives without an open request, up to twice as long if
	// a request has no answer then. 0 or less means an hour.
	IdleTimeout time.Duration

	// Logger receives a record for each request, and what an operator should know.
	// Default: none.
	Logger *slog.Logger
}

// Handler serves MCP at one path. It is safe for concurrent use.
type Handler struct{ h *mcphttp.Handler }

// New returns a handler of s. The caller must close it. New fails without
// [Options].Authenticate.
func New(s *codexserver.Server, o *Options) (*Handler, error) {
	o = cmp.Or(o, &Options{})
	var authenticate func(*http.Request) (mcphttp.Principal, error)
	if o.Authenticate != nil {
		authenticate = func(r *http.Request) (mcphttp.Principal, error) {
			user, err := o.Authenticate(r)
			return mcphttp.Principal{Name: user}, err
		}
	}
	h, err := mcphttp.New(func(ctx context.Context, name string) mcphttp.Service { return s.Principal(ctx, name) },
		&mcphttp.Options{
			Authenticate: authenticate,
			Challenge:    o.Challenge,
			Hosts:        o.Hosts,
			Origins:      o.Origins,
			Principals:   o.Users,
			MaxBody:      o.MaxBody,
			BodyTimeout:  cmp.Or(max(o.Timeout, 0), time.Minute),
			WriteTimeout: cmp.Or(max(o.Timeout, 0), time.Minute),
			MaxStreams:   o.MaxRequests,
			MaxSessions:  o.MaxSessions,
			IdleTimeout:  o.IdleTimeout,
			Logger:       o.Logger,
		})
	if err != nil {
		return nil, err
	}
	return &Handler{h}, nil
}

// ServeHTTP implements [http.Handler].
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.h.ServeHTTP(w, r) }

// Drain refuses new work with 503. It returns when all work has ended, or with the error of
// ctx when that ends first. The handler still accepts answers to questions, and requests that
// poll and update tasks.
func (h *Handler) Drain(ctx context.Context) error { return h.h.Drain(ctx) }

// Close ends all sessions and turns, and waits for all requests.
func (h *Handler) Close() error { return h.h.Close() }
