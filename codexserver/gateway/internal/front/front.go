package front

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/lease"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/link"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/metrics"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/settings"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/workers"
	"github.com/codexmcp/codexmcp/internal/mcphttp"
)

// Options configure a [Front]. All are required, except for Local and Certificates.
type Options struct {
	Leases *lease.Leases
	// Local is the node of this process, or nil. Other nodes are reached with Certificates.
	Local        *link.Server
	Certificates link.Certificates
	// Guard admits requests.
	Guard *mcphttp.Guard
	// Principals are the users at the start. See [Front.Reload].
	Principals map[string]settings.Principal
	// Still reports whether a request with these headers, which the guard has admitted for a principal,
	// would be admitted for it now.
	Still func(ctx context.Context, h http.Header, before mcphttp.Principal) bool
	// Metrics counts the requests.
	Metrics *metrics.Metrics
	Logger  *slog.Logger
}

// Front serves HTTP. It is safe for concurrent use.
type Front struct {
	o      Options
	client *link.Client
	routes routes
	hurry  atomic.Bool // nobody waits for a node
	// reloads counts those of the users.
	reloads atomic.Uint64
	open    atomic.Int64 // the open requests that are not streams without an end

	mu    sync.Mutex
	users map[string]*user
}

// New returns a front. The caller must close it.
func New(o Options) *Front {
	f := &Front{o: o, client: link.NewClient(o.Certificates, o.Logger)}
	f.routes = routes{leases: o.Leases, known: map[string]lease.Lease{}}
	f.setUsers(o.Principals)
	return f
}

// Close closes the connections to nodes. All requests must have ended.
func (f *Front) Close() { f.client.Close() }

// Hurry makes the front refuse a request at once if no node has its user. It is for the end of
// the process.
func (f *Front) Hurry() { f.hurry.Store(true) }

// ServeHTTP implements [http.Handler].
func (f *Front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		f.open.Add(1)
		defer f.open.Add(-1)
	}
	answer := newAnswer(w)
	defer func() { f.o.Metrics.Answered(answer.status) }() // an answer that breaks off panics
	f.serve(answer, r)
}

// serve answers a request.
func (f *Front) serve(w *answer, r *http.Request) {
	reloads := f.reloads.Load()
	principal, ok := f.o.Guard.Admit(w, r)
	if !ok {
		return
	}
	a := &admitted{principal: principal, headers: http.Header{"Authorization": r.Header.Values("Authorization")}}
	if r, ok = f.enter(w, r, a); !ok {
		return
	}
	defer f.leave(a)
	if f.reloads.Load() != reloads { // Reload may not have seen the request, nor the guard the new users
		f.check(r.Context(), a)
	}
	body, release, ok := a.user.bodies.Read(w, r) // whole: a node may refuse the request, and another one gets it then
	if !ok {
		return
	}
	defer release()
	w.received()
	if err := f.forward(w, r, body, principal); err != nil {
		f.unanswered(w, r, principal.Name, err)
	}
}

const (
	// routeTimeout bounds how long a front looks for a node that carries out a request: one may be giving back its users, or
	// starting.
	routeTimeout = 8 * time.Second
	// retryInterval is the time between two attempts.
	retryInterval = 100 * time.Millisecond
)

// errNotSent means that a request was not carried out.
var errNotSent = errors.New("the request was not carried out")

// forward sends a request to the node of the user, and passes the answer on. An error means that nothing was
// written. It sends the request again, perhaps to another node, only if it was not carried out.
func (f *Front) forward(w http.ResponseWriter, r *http.Request, body []byte, user mcphttp.Principal) error {
	if user.Scopes == nil {
		user.Scopes = mcphttp.Scopes()
	}
	finding, cancel := context.WithTimeout(r.Context(), routeTimeout)
	defer cancel()
	for {
		err := f.try(finding, w, r, body, user)
		if !errors.Is(err, errNotSent) || f.hurry.Load() {
			return err
		}
		select {
		case <-time.After(retryInterval):
		case <-finding.Done():
			return err
		}
	}
}

// try sends a request to the node of the user, or to the nodes that may take the user, until one carries it out. If none has done so,
// the error wraps [errNotSent].
func (f *Front) try(
	finding context.Context, w http.ResponseWriter, r *http.Request, body []byte, user mcphttp.Principal,
) error {
	all, err := f.routes.find(finding, user.Name)
	for _, to := range all {
		if err = f.send(w, r, body, link.Head{Node: to.ID, Epoch: to.Epoch, User: user}, to.Address); err == nil {
			return nil
		}
		f.routes.forget(to) // another node may have taken over
		if !errors.Is(err, link.ErrAbsent) && !errors.Is(err, link.ErrRefused) {
			return err
		}
	}
	return errors.Join(errNotSent, err)
}

// send sends a request once to the node at an address.
func (f *Front) send(w http.ResponseWriter, r *http.Request, body []byte, head link.Head, address string) error {
	r.Body, r.ContentLength, r.TransferEncoding = http.NoBody, int64(len(body)), nil
	if len(body) > 0 {
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	if f.o.Local != nil && f.o.Local.ID() == head.Node {
		return f.o.Local.Do(w, r, head)
	}
	return f.client.Do(w, r, address, head)
}

// unanswered answers a request that no node has answered.
func (f *Front) unanswered(w http.ResponseWriter, r *http.Request, user string, err error) {
	if errors.Is(context.Cause(r.Context()), errRevoked) {
		http.Error(w, revokedText, http.StatusForbidden)
		return
	}
	if r.Context().Err() == nil {
		f.o.Logger.Error("no answer from the user's node", "principal", user, "error", err)
	}
	if errors.Is(err, errNotSent) {
		w.Header().Set("Retry-After", "5")
		http.Error(w, workers.UnavailableText, http.StatusServiceUnavailable)
		return
	}
	http.Error(w, workers.UnansweredText, http.StatusBadGateway)
}

// drainInterval is how often Drain looks.
const drainInterval = 20 * time.Millisecond

// Drain waits until no request is open, except for streams without an end. Clients continue
// those at another front.
func (f *Front) Drain(ctx context.Context) error {
	tick := time.NewTicker(drainInterval)
	defer tick.Stop()
	for f.open.Load() > 0 {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
