package front_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/clustertest"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/front"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/lease"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/link"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/metrics"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/placement"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/settings"
	"github.com/codexmcp/codexmcp/internal/mcphttp"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// ttl is how long a node lasts.
const ttl = 30 * time.Second

// service is a front with nodes of the test.
type service struct {
	t      *testing.T
	leases *lease.Leases
	front  *front.Front
	files  link.Certificates
	url    string

	revoked   atomic.Pointer[string]    // a token of open requests that must end; nil if all may go on
	admitting func(ctx context.Context) // called while the guard looks at a request; may be nil
}

// start starts a front for ann, bob and eve, with a node in its process, or nil. The token of a user is its name,
// and after a colon its scopes.
func start(t *testing.T, local *fakeNode) *service {
	t.Helper()
	s := &service{t: t, files: clustertest.Certificates(t)}
	_, s.leases = clustertest.Buckets(t, clustertest.Embedded(t), ttl)
	var inside *link.Server
	if local != nil {
		local.s, local.server = s, link.NewServer(local, slog.New(slog.DiscardHandler))
		inside = local.server
	}
	guard, err := mcphttp.NewGuard(&mcphttp.Options{Authenticate: func(r *http.Request) (p mcphttp.Principal, err error) {
		token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		name, scopes, limited := strings.Cut(token, ":")
		if !ok {
			return p, errors.New("no token")
		}
		if s.admitting != nil {
			s.admitting(r.Context())
		}
		p.Name = name
		if limited {
			p.Scopes = append([]mcphttp.Scope{}, mcphttp.ParseScopes(scopes)...)
		}
		return p, nil
	}, Logger: slog.New(slog.DiscardHandler)})
	must.OK(t, err)
	s.front = front.New(front.Options{
		Local: inside, Certificates: s.files, Leases: s.leases, Guard: guard, Metrics: metrics.New(), Logger: slog.New(slog.DiscardHandler),
		Still: func(_ context.Context, h http.Header, _ mcphttp.Principal) bool {
			gone := s.revoked.Load()
			return gone == nil || h.Get("Authorization") != "Bearer "+*gone
		},
		Principals: map[string]settings.Principal{"ann": {}, "bob": {}, "eve": {}},
	})
	server := httptest.NewServer(s.front)
	s.url = server.URL
	t.Cleanup(func() {
		server.Close()
		s.front.Close()
	})
	return s
}

// fakeNode is a node without workers. It carries out requests of the users whose lease it holds.
type fakeNode struct {
	s      *service
	holder *lease.Holder
	server *link.Server
	name   string

	mu      sync.Mutex
	handle  http.HandlerFunc // nil: it echoes
	served  []string         // the bodies of the requests
	refused int              // requests that were not admitted
}

func (s *service) join(name string) *fakeNode {
	s.t.Helper()
	n := &fakeNode{s: s, name: name}
	n.server = link.NewServer(n, slog.New(slog.DiscardHandler))
	l, address := clustertest.Listen(s.t)
	n.server.Listen(l, s.files)
	s.add(n, address)
	return n
}

// add publishes a node, which has a server.
func (s *service) add(n *fakeNode, address string) {
	s.t.Helper()
	name := n.name
	n.mu.Lock() // a front may find it before the holder is there
	n.holder = clustertest.Hold(s.t, s.leases, lease.HolderOptions{ID: n.server.ID(), Describe: func() placement.Node { return placement.Node{Name: name, Address: address} }})
	n.mu.Unlock()
	s.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), clustertest.Patience)
		defer cancel()
		s.front.Close() // a server that ends waits a second for the front to do so
		must.Check(s.t, n.server.Close(ctx))
	})
}

func (n *fakeNode) Admit(ctx context.Context, h link.Head) (context.Context, func(), error) {
	n.mu.Lock()
	holder := n.holder
	n.mu.Unlock()
	if h.Epoch == 0 {
		got, err := holder.Take(ctx, h.User.Name)
		if err != nil {
			return nil, nil, err
		}
		h.Epoch = got.Epoch
	}
	held, release, err := holder.Hold(ctx, h.User.Name, h.Epoch)
	if err != nil {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.refused++
	}
	return held, release, err
}

func (n *fakeNode) Serve(w http.ResponseWriter, r *http.Request, head link.Head) {
	body, err := io.ReadAll(r.Body)
	must.Check(n.s.t, err)
	n.mu.Lock()
	n.served = append(n.served, string(body))
	handle := n.handle
	n.mu.Unlock()
	if handle != nil {
		handle(w, r)
		return
	}
	fmt.Fprintf(w, "%s: %s %v", n.name, head.User.Name, head.User.Scopes)
}

func (n *fakeNode) set(handle http.HandlerFunc) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.handle = handle
}

func (n *fakeNode) count() (served, refused int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.served), n.refused
}

func (n *fakeNode) has(user string) {
	n.s.t.Helper()
	if got, err := n.holder.Take(n.s.t.Context(), user); err != nil || got.ID != n.server.ID() {
		n.s.t.Fatalf("the lease: %+v, %v", got, err)
	}
}

func (n *fakeNode) loses(user string) {
	n.s.t.Helper()
	must.OK(n.s.t, n.holder.Release(n.s.t.Context(), user, nil))
}

type answer struct {
	Status int
	Body   string
	Err    error // of reading the body
	Header http.Header
}

func (s *service) send(method, token, body string) answer {
	s.t.Helper()
	r := must.Get(http.NewRequestWithContext(clustertest.Bounded(s.t), method, s.url, strings.NewReader(body)))(s.t)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		return answer{Err: err}
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	return answer{got.StatusCode, strings.TrimSpace(string(text)), err, got.Header}
}

// post sends a request that has to be answered with a status and a text.
func (s *service) post(token string, status int, want string) answer {
	s.t.Helper()
	got := s.send(http.MethodPost, token, "{}")
	if got.Err != nil || got.Status != status || !strings.Contains(got.Body, want) {
		s.t.Errorf("%s: %d %s, %v; want %d %s", token, got.Status, got.Body, got.Err, status, want)
	}
	return got
}

// TestWho checks who reaches whose node, and with which scopes.
func TestWho(t *testing.T) {
	s := start(t, nil)
	s.join("a")
	s.post("ann", 200, "a: ann [codex:run codex:approve codex:read]")
	s.post("ann:codex:read", 200, "a: ann [codex:read]")
	s.post("ann:", 200, "a: ann []")
	s.post("dan", 403, "not configured")
	s.post("", 401, "")
}

// TestAnotherEpoch checks that a request that a node refuses is sent to the node with the lease,
// once and whole.
func TestAnotherEpoch(t *testing.T) {
	s := start(t, nil)
	a, b := s.join("a"), s.join("b")
	a.has("ann")
	s.post("ann", 200, "a: ann")
	a.loses("ann")
	b.has("ann")
	body := `{"text":"` + strings.Repeat("x", 1<<20) + `"}`
	if got := s.send(http.MethodPost, "ann", body); got.Status != 200 || got.Body != "b: ann [codex:run codex:approve codex:read]" {
		t.Errorf("%d %s, %v", got.Status, got.Body, got.Err)
	}
	b.mu.Lock()
	if b.served[0] != body {
		t.Error("the second node has not got what was sent")
	}
	b.mu.Unlock()
	// The same node again, with another epoch.
	b.loses("ann")
	b.has("ann")
	for range 2 { // the front remembers the lease
		s.post("ann", 200, "b: ann")
	}
	for n, want := range map[*fakeNode]int{a: 1, b: 3} {
		if served, refused := n.count(); served != want || refused != 1 {
			t.Errorf("the node %s has carried out %d requests and refused %d", n.name, served, refused)
		}
	}
}

// TestLocal checks a node in the process of the front: whose request it is, that a part of an answer does not look whole, and that
// the request is sent elsewhere if the node refuses it.
func TestLocal(t *testing.T) {
	a := &fakeNode{name: "a"}
	s := start(t, a)
	s.add(a, "")
	s.post("ann", 200, "a: ann [codex:run codex:approve codex:read]")
	a.set(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "the first half")
		panic(http.ErrAbortHandler)
	})
	if got := s.send(http.MethodPost, "ann", "{}"); got.Err == nil {
		t.Errorf("a part of an answer: %+v", got)
	}
	a.set(nil)
	b := s.join("b")
	a.loses("ann")
	b.has("ann")
	s.post("ann", 200, "b: ann") // over the network
}

// TestEffect checks that a request that a node has begun is never sent again, that its client
// learns that it may have taken effect, and that a part of an answer never looks whole.
func TestEffect(t *testing.T) {
	for name, tt := range map[string]struct {
		handle func(n *fakeNode, w http.ResponseWriter, r *http.Request) // until it breaks off
		status int                                                       // 0: the answer breaks off
	}{
		"no answer": {func(*fakeNode, http.ResponseWriter, *http.Request) {}, http.StatusBadGateway},
		"the node ends": {func(n *fakeNode, _ http.ResponseWriter, r *http.Request) {
			go func() {
				must.Check(n.s.t, n.holder.Release(context.Background(), "ann", nil))
			}()
			<-r.Context().Done()
		}, http.StatusBadGateway},
		"a part of an answer": {func(_ *fakeNode, w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, "the first half")
			_ = http.NewResponseController(w).Flush() // as the proxy to a worker does
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, nil)
			a, b := s.join("a"), s.join("b")
			a.has("ann")
			a.set(func(w http.ResponseWriter, r *http.Request) {
				tt.handle(a, w, r)
				panic(http.ErrAbortHandler)
			})
			got := s.send(http.MethodPost, "ann", "{}")
			if tt.status == 0 && got.Err == nil || got.Status != tt.status && tt.status > 0 || tt.status > 0 && !strings.Contains(got.Body, "may have taken effect") {
				t.Errorf("%d %s, %v", got.Status, got.Body, got.Err)
			}
			if got.Header.Get("Retry-After") != "" {
				t.Error("the client is told to send it again")
			}
			first, _ := a.count()
			second, _ := b.count()
			if first+second != 1 {
				t.Errorf("the nodes have carried it out %d and %d times", first, second)
			}
			a.set(nil)
			s.post("ann", 200, ": ann") // the next request
		})
	}
}

// TestNoNode checks that a request that was not carried out is answered with 503, at once at the
// end of the front, and that it finds a node that comes in time.
func TestNoNode(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	found := make(chan answer)
	go func() { found <- s.send(http.MethodPost, "ann", "{}") }()
	<-time.After(300 * time.Millisecond) // the front looks in vain
	a := s.join("a")
	if got := <-found; got.Status != 200 {
		t.Errorf("a node that comes in time: %d %s, %v", got.Status, got.Body, got.Err)
	}
	// The process with the lease has died, and nobody has its id.
	must.OK(t, a.server.Close(t.Context()))
	s.front.Hurry()
	began := time.Now()
	for range 2 { // at the second time the front knows no node
		got := s.post("ann", http.StatusServiceUnavailable, "was not carried out")
		if took := time.Since(began); got.Header.Get("Retry-After") == "" || took > clustertest.Patience/2 { // far above what it needs, far below a minute
			t.Errorf("it took %v, the headers %v", took, got.Header)
		}
		a.loses("ann")
	}
}

// TestDrain checks that a front that drains waits for its requests, and not for streams.
func TestDrain(t *testing.T) {
	s := start(t, nil)
	a := s.join("a")
	began, finish := make(chan bool), make(chan struct{})
	a.set(func(w http.ResponseWriter, _ *http.Request) {
		began <- true
		<-finish
		fmt.Fprint(w, "whole")
	})
	got := make(chan answer)
	for _, tt := range []struct {
		method string
		want   error
	}{{http.MethodGet, nil}, {http.MethodPost, context.DeadlineExceeded}} {
		go func() { got <- s.send(tt.method, "ann", "") }()
		<-began
		short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if err := s.front.Drain(short); !errors.Is(err, tt.want) {
			t.Errorf("with a %s: %v, want %v", tt.method, err, tt.want)
		}
	}
	drained := make(chan error)
	go func() { drained <- s.front.Drain(t.Context()) }()
	close(finish)
	must.Check(t, <-drained)
	for range 2 {
		if a := <-got; a.Status != 200 || a.Body != "whole" {
			t.Errorf("a request that was waited for: %+v", a)
		}
	}
}
