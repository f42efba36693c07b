package node_test

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/broker"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/clustertest"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/enclosure"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/enclosure/enclosuretest"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/lease"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/link"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/metrics"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/node"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/settings"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/workers"
	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/internal/worker"
	"github.com/codexmcp/codexmcp/internal/mcphttp"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

const (
	// ttl is how long a lease lasts. A third of it passes until a node notices that another one
	// has it, and two thirds until the fence kills the worker.
	ttl = 45 * time.Second
	// interval is how often a node of the tests looks for leases that are not used.
	interval = 200 * time.Millisecond
)

// This program is also the program of the workers.
func TestMain(m *testing.M) {
	enclosure.Main()
	var err error
	switch {
	case os.Args[0] == worker.Name:
		err = work()
	case slices.Equal(os.Args[1:], []string{"--version"}): // a pool tries the program of its workers
	default:
		os.Exit(m.Run())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// work is a worker. It answers a request with who sent it. The path /hold is answered at the end
// of the worker, or when the request ends. After /ask the worker has a turn that waits for an answer.
// While a file "busy" exists, the worker is busy.
func work() error {
	l, err := worker.Connect()
	if err != nil {
		return err
	}
	var waits atomic.Bool
	var open atomic.Int64 // requests
	l.Ready(func() worker.Load {
		_, missing := os.Stat(filepath.Join(l.Settings.Folders[0], "busy"))
		switch {
		case missing == nil:
			return worker.Load{Activity: worker.Busy}
		case waits.Load():
			return worker.Load{Activity: worker.Waiting, Requests: int(open.Load())}
		}
		return worker.Load{Activity: worker.Idle, Requests: int(open.Load())}
	})
	go func() {
		select {
		case <-l.Stop:
			os.Exit(0)
		case <-l.Store.Ended():
			os.Exit(1)
		}
	}()
	return http.Serve(l.Listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		open.Add(1)
		defer open.Add(-1)
		who, err := l.Authenticate(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusUnauthorized)
			return
		}
		if r.URL.Path == "/ask" {
			waits.Store(true)
		}
		fmt.Fprintf(w, "%s for %s with %v", who.Name, l.Settings.Principal, who.Scopes)
		if r.URL.Path == "/hold" {
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}
	}))
}

type service struct {
	t      *testing.T
	broker *broker.Broker
	leases *lease.Leases
	users  map[string]settings.Principal
}

func start(t *testing.T) *service {
	t.Helper()
	enclosuretest.Need(t)
	s := &service{t: t, broker: clustertest.Embedded(t), users: map[string]settings.Principal{}}
	_, s.leases = clustertest.Buckets(t, s.broker, ttl)
	top := boxtest.Outside(t)
	for _, name := range []string{"ann", "bob", "eve"} {
		p := settings.Principal{Folders: []string{filepath.Join(top, name)}, Home: filepath.Join(top, "home-"+name)}
		must.OK(t, os.Mkdir(p.Folders[0], 0o700))
		s.users[name] = p
	}
	return s
}

type member struct {
	*node.Node
	s     *service
	pool  *workers.Pool
	id    string
	close func()
}

func (s *service) join(name string) *member {
	s.t.Helper()
	program := must.Get(os.Executable())(s.t)
	log, counted := slog.New(slog.DiscardHandler), metrics.New()
	pool, err := workers.New(workers.Options{
		Home: boxtest.Outside(s.t), HTTP: settings.HTTP{Principals: s.users}, Program: program, Challenge: "Bearer", Metrics: counted, Stderr: os.Stderr, Logger: log,
	})
	must.OK(s.t, err)
	n, err := node.New(s.t.Context(), node.Options{
		Conn: s.broker.Conn, Stream: s.broker.Stream, Leases: s.leases, Pool: pool,
		Name: name, Version: "1", Replicas: 1, Interval: interval, Metrics: counted, Logger: log,
	})
	must.OK(s.t, err)
	m := &member{Node: n, s: s, pool: pool, id: n.Server().ID()}
	m.close = sync.OnceFunc(func() {
		if err := n.Close(); err != nil {
			s.t.Errorf("the node %s ends with %v", name, err)
		}
	})
	s.t.Cleanup(m.close)
	return m
}

func (s *service) free(user string) bool {
	_, err := s.leases.Get(s.t.Context(), user)
	return errors.Is(err, lease.ErrFree)
}

// send sends a request. The caller closes the body of the answer.
func (m *member) send(head link.Head, path string) (*http.Response, error) {
	m.s.t.Helper()
	return clustertest.Post(m.s.t.Context(), m.s.t, func(w http.ResponseWriter, r *http.Request) error { return m.Server().Do(w, r, head) }, path, "{}", nil)
}

func (m *member) ask(head link.Head, path string) string {
	m.s.t.Helper()
	answer := must.Get(m.send(head, path))(m.s.t)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		m.s.t.Fatalf("%d %s, %v", answer.StatusCode, text, err)
	}
	return string(text)
}

// refused sends a request that the node must not carry out.
func (m *member) refused(what string, head link.Head) {
	m.s.t.Helper()
	answer, err := m.send(head, "/")
	if err == nil {
		answer.Body.Close()
	}
	if !errors.Is(err, link.ErrRefused) {
		m.s.t.Errorf("%s: %v, want a refusal", what, err)
	}
}

// hold sends a request that is answered until the worker ends. The part of an answer must not look whole.
func (m *member) hold(l lease.Lease) (breaksOff func()) {
	m.s.t.Helper()
	held := must.Get(m.send(headOf(l), "/hold"))(m.s.t)
	m.s.t.Cleanup(func() { held.Body.Close() })
	return func() {
		m.s.t.Helper()
		if text, err := io.ReadAll(held.Body); err == nil {
			m.s.t.Errorf("the open request ends as if it were whole: %s", text)
		}
	}
}

// asks gives the worker a turn that waits for an answer, and waits until the node knows of it.
func (m *member) asks(l lease.Lease) {
	m.s.t.Helper()
	m.ask(headOf(l), "/ask")
	clustertest.Until(m.s.t, "the node does not learn of the question", func() bool { return m.pool.Activity(m.s.t.Context(), l.User) == worker.Waiting })
}

// use sends a request with which the node takes the lease of a user.
func (m *member) use(user string) lease.Lease {
	m.s.t.Helper()
	m.ask(headOf(lease.Lease{User: user}), "/")
	l, err := m.s.leases.Get(m.s.t.Context(), user)
	if err != nil || l.ID != m.id {
		m.s.t.Fatalf("the lease: %+v, %v", l, err)
	}
	return l
}

func headOf(l lease.Lease) link.Head {
	return link.Head{User: mcphttp.Principal{Name: l.User, Scopes: []mcphttp.Scope{mcphttp.ScopeRead}}, Epoch: l.Epoch}
}

// TestAdmit checks which requests reach a worker, and what the worker learns of the sender.
func TestAdmit(t *testing.T) {
	s := start(t)
	a, b := s.join("a"), s.join("b")
	l := a.use("ann")
	for name, tt := range map[string]struct {
		at   *member
		head link.Head
		want string // "" is a refusal
	}{
		"ann":                     {a, link.Head{User: mcphttp.Principal{Name: "ann", Scopes: []mcphttp.Scope{"codex:run", "codex:read"}}, Epoch: l.Epoch}, "ann for ann with [codex:run codex:read]"},
		"a scope that is unknown": {a, link.Head{User: mcphttp.Principal{Name: "ann", Scopes: []mcphttp.Scope{"codex:root"}}, Epoch: l.Epoch}, "ann for ann with []"},
		"an unknown user":         {a, link.Head{User: mcphttp.Principal{Name: "dan"}, Epoch: l.Epoch}, ""},
		"no lease is known":       {a, headOf(lease.Lease{User: "ann"}), "ann for ann with [codex:read]"},
		"a user of another node":  {b, link.Head{User: mcphttp.Principal{Name: "ann"}}, ""},
		"another node":            {b, link.Head{User: mcphttp.Principal{Name: "ann"}, Epoch: l.Epoch}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if tt.want != "" {
				if got := tt.at.ask(tt.head, "/"); got != tt.want {
					t.Errorf("the worker learns %q, want %q", got, tt.want)
				}
				return
			}
			tt.at.refused(name, tt.head)
		})
	}
}

// TestReload checks that a node gives up users who are removed, with their workers, that the others stay, and that it gives back a
// lease without a worker.
func TestReload(t *testing.T) {
	s := start(t)
	a := s.join("a")
	ann, bob := a.use("ann"), a.use("bob")
	breaksOff := a.hold(bob)
	all := maps.Clone(s.users)
	delete(all, "bob")
	must.OK(t, a.Reload(t.Context(), must.Get(a.pool.Reload(all))(t)))
	breaksOff()
	must.Equal(t, "the workers", []string{"ann"}, a.pool.Running())
	if f := a.Figures(t.Context()); f.Leases != 1 || f.Workers != 1 || f.Draining || !s.free("bob") {
		t.Errorf("the figures: %+v", f)
	}
	a.refused("a request of bob", headOf(bob))
	a.refused("the node takes bob", headOf(lease.Lease{User: "bob"}))
	a.ask(headOf(ann), "/")
	a.pool.EndIdle("ann")
	clustertest.Until(t, "the lease is kept", func() bool { return s.free("ann") })
}
