package front

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/intake"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/lease"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/link"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/placement"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/settings"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/telemetry"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/workers"
	"github.com/codexmcp/codexmcp/internal/mcphttp"
	"github.com/nats-io/nats.go"
)

// Options configure a [Front]. All are required, except for Local, Certificates, Still and Telemetry.
type Options struct {
	Conn   *nats.Conn
	Leases *lease.Leases
	Nodes  *placement.Nodes
	// Local is the node of this process, or nil. Other nodes are reached with Certificates.
	Local        *link.Server
	Certificates link.Certificates
	// Guard admits requests.
	Guard *mcphttp.Guard
	// Principals are the users at the start. See [Front.Reload].
	Principals map[string]settings.Principal
	// Still reports whether a request with these headers, which the guard has admitted for a principal,
	// would be admitted for it now. Nil means that it would.
	Still func(ctx context.Context, h http.Header, before mcphttp.Principal) bool
	// Telemetry counts the requests that no node answers, and traces calls. It may be nil.
	Telemetry *telemetry.Telemetry
	Logger    *slog.Logger
}

// Front serves HTTP. It is safe for concurrent use.
type Front struct {
	o      Options
	client *link.Client
	routes routes
	users  settings.Users
	copies intake.Buffers
	// reloads counts those of the users.
	reloads atomic.Uint64

	mu       sync.Mutex
	usage    map[string]*intake.Usage // by principal
	admitted map[*admitted]bool       // the open requests
	open     int                      // those that are not streams without an end
	quiet    chan struct{}            // closed when open is 0; nil unless somebody waits
}

// New returns a front. The caller must close it.
func New(o Options) *Front {
	f := &Front{o: o, client: link.NewClient(o.Certificates), usage: map[string]*intake.Usage{}, admitted: map[*admitted]bool{}}
	f.routes = routes{conn: o.Conn, leases: o.Leases, nodes: o.Nodes, known: map[string]lease.Lease{}}
	f.users.Set(o.Principals)
	return f
}

// Close closes the connections to nodes. All requests must have ended.
func (f *Front) Close() { f.client.Close() }

// Hurry makes the front refuse a request at once if no node has its user. It is for the end of
// the process.
func (f *Front) Hurry() {
	f.routes.mu.Lock()
	defer f.routes.mu.Unlock()
	f.routes.hurry = true
}

// ServeHTTP implements [http.Handler].
func (f *Front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		f.begin()
		defer f.end()
	}
	response := intake.NewResponse(w, r)
	if !f.serve(response, r) && f.o.Telemetry != nil && r.Context().Err() == nil {
		f.o.Telemetry.User("").Report("", response.Status)
	}
}

// serve answers a request. It reports whether the answer came from a node.
func (f *Front) serve(response *intake.Response, r *http.Request) bool {
	reloads := f.reloads.Load()
	principal, ok := f.o.Guard.Admit(response, r)
	if !ok {
		return false
	}
	a := &admitted{principal: principal, headers: http.Header{"Authorization": r.Header.Values("Authorization")}}
	r, usage, leave := f.enter(r, a)
	if usage == nil {
		http.Error(response, "the user is not configured", http.StatusForbidden)
		return false
	}
	defer leave()
	if f.reloads.Load() != reloads { // Reload may not have seen the request, nor the guard the new users
		f.check(r.Context(), a)
	}
	end, ok := usage.Begin(response)
	if !ok {
		return false
	}
	defer end()
	release, ok := usage.ReadBody(response, r)
	if !ok {
		return false
	}
	defer release()
	response.Extend() // reading the body may have used up the timeout
	hop := f.o.Telemetry.Front(r, principal.Name)
	defer func() { hop.End(response.Status) }()
	if err := f.forward(response, r, principal.Name, principal); err != nil {
		f.unanswered(response, r, principal.Name, err)
		return false
	}
	return true
}

const (
	// routeTimeout bounds how long a front looks for the node of a user. A node that has just
	// given back the lease is not found at once.
	routeTimeout = 8 * time.Second
	// retryTimeout bounds how long a front sends a request again that was not carried out.
	retryTimeout = 3 * time.Second
	// retryInterval is the time between two attempts.
	retryInterval = 100 * time.Millisecond
)

// errNotSent means that a request was not carried out.
var errNotSent = errors.New("the request was not carried out")

// forward sends a request to the node of the user, and passes the answer on. An error means that nothing was
// written. It sends the request again, perhaps to another node, only if it was not carried out.
func (f *Front) forward(w http.ResponseWriter, r *http.Request, user string, principal mcphttp.Principal) error {
	head := link.Head{User: user, Sender: principal.Name, Scopes: []string{}}
	scopes := principal.Scopes
	if scopes == nil {
		scopes = mcphttp.Scopes()
	}
	for _, s := range scopes {
		head.Scopes = append(head.Scopes, string(s))
	}
	about, _ := f.users.Get(user)
	began := time.Now()
	for {
		finding, cancel := context.WithTimeout(r.Context(), routeTimeout)
		to, err := f.routes.find(finding, user, about.Labels)
		cancel()
		if err != nil {
			return errors.Join(errNotSent, err)
		}
		if r.Body, err = r.GetBody(); err != nil {
			return errors.Join(errNotSent, err)
		}
		head.Epoch = to.Epoch
		err = f.send(w, r, to, head)
		if err == nil {
			return nil
		}
		f.routes.forget(to) // another node may have taken over
		if !errors.Is(err, link.ErrAbsent) && !errors.Is(err, link.ErrRefused) {
			return err
		}
		if time.Since(began) > retryTimeout {
			return errors.Join(errNotSent, err)
		}
		select {
		case <-time.After(retryInterval):
		case <-r.Context().Done():
			return r.Context().Err()
		}
	}
}

// send sends a request to a node once, and passes the answer on. An error means that nothing was
// written. An answer that breaks off later breaks off for the client too.
func (f *Front) send(w http.ResponseWriter, r *http.Request, to lease.Lease, head link.Head) (failed error) {
	passed := &passing{w: w, header: http.Header{}}
	defer func() {
		switch v := recover(); {
		case v != nil && passed.begun:
			panic(v)
		case v != nil: // it broke off
			failed = link.ErrLost
		case failed == nil:
			passed.begin()
		}
	}()
	if f.o.Local != nil && f.o.Local.ID() == to.ID {
		return f.o.Local.Do(passed, r, head)
	}
	answer, err := f.client.Do(r.Context(), link.Place{ID: to.ID, Address: to.Address}, head, r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	passed.header = answer.Header
	passed.WriteHeader(answer.StatusCode)
	buffer := f.copies.Get()
	defer f.copies.Put(buffer)
	if _, err := io.CopyBuffer(passed, answer.Body, buffer); err != nil { // or the client has left
		panic(http.ErrAbortHandler)
	}
	return nil
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

func (f *Front) begin() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open++
}

func (f *Front) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open--
	if f.open == 0 && f.quiet != nil {
		close(f.quiet)
		f.quiet = nil
	}
}

// Drain waits until no request is open, except for streams without an end. Clients continue
// those at another front.
func (f *Front) Drain(ctx context.Context) error {
	f.mu.Lock()
	if f.open == 0 {
		f.mu.Unlock()
		return nil
	}
	if f.quiet == nil {
		f.quiet = make(chan struct{})
	}
	quiet := f.quiet
	f.mu.Unlock()
	select {
	case <-quiet:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
