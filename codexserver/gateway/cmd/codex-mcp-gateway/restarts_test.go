package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/clustertest"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/lease"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/placement"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/internal/nightly"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/go-json-experiment/json"
)

// drainTime is the default of http.drain_timeout. A node kills the workers that are left after that.
const drainTime = 30 * time.Second

// maxRefused is how long a user may get 503 while an operator restarts one part of the service after the other: as long as
// a node may take to end. On a machine that is not busy, no user gets it.
const maxRefused = drainTime

// TestRestarts uses a service by both fronts and drains a node as its operator. Then it restarts all parts of the service, one
// after the other, while its users work and have open questions: nobody is refused for long, no question is lost, and what is
// left passes the checks of [TestChaos].
func TestRestarts(t *testing.T) {
	t.Parallel()
	withDisks(t, restarts)
}

func restarts(t *testing.T) {
	// The leases last as long as usual: nothing here waits for the end of one, and a busy machine renews a short one too late.
	s := startSite(t, nightly.Number(6, 20), "15s", func(string) string { return "1" })
	for i, p := range s.persons[:2] {
		s.answers(p.at(s.fronts[i].url))
	}
	for _, m := range s.nodes {
		if status := (servertest.HTTPClient{URL: m.url}).Status(t, mcpPath); status != http.StatusNotFound {
			t.Errorf("%s serves MCP: %d", m.name, status)
		}
	}
	s.drainNodeOf(s.persons[1])
	ctx, cancel := context.WithTimeout(t.Context(), 10*clustertest.Patience)
	defer cancel()
	answer := make(chan struct{}) // the open questions, when it is closed
	var asking sync.WaitGroup
	for _, p := range s.persons {
		a := p.attempt(0, 1)
		a.open, a.asked = answer, make(chan struct{})
		asking.Go(func() {
			p.callOwn(ctx, a)
			if a.waits() {
				t.Errorf("the open question of %s is gone: %+v", p.name, a)
			}
		})
		clustertest.Await(t, p.name+" is not asked", a.asked)
	}
	s.restartAll(ctx, s.nodes, true, false)
	s.restartAll(ctx, s.nats, false, true)
	s.restartAll(ctx, s.fronts, false, false)
	close(answer)
	asking.Wait()
	for _, p := range s.persons {
		if a := p.attempts[0]; a.end != ran && a.end != notRun {
			t.Errorf("the open question of %s: %s: %s", p.name, a.end, a.told)
		}
	}
	s.end()
}

// restartAll ends each of these parts, and starts it again, while the users work. NATS may lose what passes a part when it
// ends; nothing else is interrupted, and no call is lost.
func (s *site) restartAll(ctx context.Context, parts []*part, nodes, loses bool) {
	s.t.Helper()
	var working sync.WaitGroup
	from := time.Now()
	for _, m := range parts {
		found := make(chan struct{})
		for _, p := range s.persons {
			working.Go(func() { p.workUntil(ctx, found) })
		}
		s.awaitWork(m, nodes)
		close(found)
		s.restart(m)
	}
	working.Wait()
	for _, p := range s.persons {
		for _, l := range p.look().lost {
			if l.began.After(from) && !loses {
				s.t.Errorf("%s loses the request %s", p.name, l.text)
			}
		}
		for _, a := range p.attempts {
			if a.began.After(from) && !loses && a.end != ran && a.end != notRun && a.end != refused {
				s.t.Errorf("%s was not left alone: %s: %s", a.name, a.end, a.told)
			}
		}
	}
}

// restart restarts a part. No user is refused for long.
func (s *site) restart(m *part) {
	s.t.Helper()
	for _, p := range s.persons {
		p.look()
	}
	begun := time.Now()
	m.signal(syscall.SIGTERM)
	m.awaitEnd()
	ended := time.Now()
	if ended.Sub(begun) >= drainTime {
		s.t.Errorf("%s does not come to an end by itself", m.name)
	}
	if all, _ := s.leases.Nodes.All(s.t.Context()); slices.ContainsFunc(all, func(n placement.Node) bool { return n.Name == m.name }) {
		s.t.Errorf("%s ends, and fronts still find it", m.name)
	}
	m.begin(s.t)
	clustertest.Until(s.t, m.name+" does not become healthy", m.healthy)
	healthy := time.Now()
	var worst time.Duration
	for _, p := range s.persons {
		clustertest.Until(s.t, p.name+" gets no answer", func() bool {
			a := p.look()
			worst = max(worst, a.worst)
			return a.refused.IsZero() && a.polled.After(healthy) || s.t.Failed()
		})
	}
	if worst > maxRefused {
		s.t.Errorf("%s is restarted: a user got 503 for %v", m.name, worst)
	}
	s.t.Logf("%s ended after %v, and was healthy after %v; 503 lasted for %v at worst",
		m.name, ended.Sub(begun).Round(time.Millisecond), healthy.Sub(ended).Round(time.Millisecond), worst.Round(time.Millisecond))
}

// awaitWork waits until commands of users run, and at a node if it has users.
func (s *site) awaitWork(m *part, node bool) {
	s.t.Helper()
	clustertest.Until(s.t, "nothing runs", func() bool {
		busy := s.busy()
		if len(busy) == 0 || !node || slices.Contains(busy, m) {
			return len(busy) > 0
		}
		all, err := s.leases.All(s.t.Context())
		return err == nil && !slices.ContainsFunc(all, func(l lease.Lease) bool { return l.Node == m.name })
	})
}

// answers waits for the answer to a call. The answer 503 says that it was not carried out and can be sent again: a busy
// machine starts a worker late, or loses its lease.
func (s *site) answers(c client) {
	s.t.Helper()
	clustertest.Until(s.t, "a call has no answer", func() bool {
		status, body, err := c.call("hello")
		if err != nil || status != http.StatusOK && status != http.StatusServiceUnavailable {
			s.t.Fatalf("the answer to a call: %s", fmt.Sprint(status, body, err))
		}
		return status == http.StatusOK
	})
}

// drainNodeOf drains the node of a user, who then has another one.
func (s *site) drainNodeOf(p *person) {
	var all status
	nodeOf := func() string {
		must.OK(s.t, json.Unmarshal(s.operate(s.fronts[0], "status", "--json"), &all))
		for _, l := range all.Leases {
			if l.User == p.name {
				return l.Node
			}
		}
		return ""
	}
	node := nodeOf()
	if len(all.Nodes) != nodeCount || len(all.Leases) != 2 || node == "" {
		s.t.Errorf("the status: %+v", all)
	}
	s.operate(s.fronts[1], "drain", node)
	clustertest.Until(s.t, "the user stays there", func() bool { return nodeOf() != node })
	s.answers(p.at(s.fronts[0].url))
	if now := nodeOf(); now == node || now == "" {
		s.t.Errorf("the user is on the node %q after %s was drained", now, node)
	}
}
