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

	"github.com/codexmcp/codexmcp/internal/nightly"
	"github.com/go-json-experiment/json"
)

// drainTime is the default of http.drain_timeout. A node kills the workers that are left after that.
const drainTime = 30 * time.Second

// maxRefused is how long a user may get 503 while an operator restarts one part of the service after the other.
const maxRefused = 5 * time.Second

// TestRestarts uses a service by both fronts and drains a node as its operator. Then it restarts all parts of the service, one after the other, while its users
// work and have open questions: nobody is refused for long, no question is lost, and what is left passes the checks of
// [TestChaos].
func TestRestarts(t *testing.T) {
	t.Parallel()
	withDisks(t, restarts)
}

func restarts(t *testing.T) {
	w := startWork(t, nightly.Number(6, 20), func(string) string { return "1" })
	for i, p := range w.persons[:2] {
		if status, body, err := (client{t, w.fronts[i].url, p.token}).call("hello"); err != nil || status != http.StatusOK {
			t.Errorf("%s: %d %s, %v", p.name, status, body, err)
		}
	}
	w.drainNodeOf(client{t, w.fronts[0].url, w.persons[1].token}, w.persons[1].name)
	ctx, cancel := context.WithTimeout(t.Context(), 10*patience)
	defer cancel()
	answer := make(chan struct{}) // the open questions, when it is closed
	var asking sync.WaitGroup
	for _, p := range w.persons {
		a := p.attempt(0, 1)
		a.open, a.asked = answer, make(chan struct{})
		asking.Go(func() {
			p.callOwn(ctx, a)
			if a.waits() {
				t.Errorf("the open question of %s is gone: %+v", p.name, a)
			}
		})
		select {
		case <-a.asked:
		case <-time.After(patience):
			t.Fatalf("%s is not asked: %+v", p.name, a)
		}
	}
	w.restartAll(ctx)
	close(answer)
	asking.Wait()
	for _, p := range w.persons {
		if a := p.attempts[0]; a.end != ran && a.end != notRun {
			t.Errorf("the open question of %s: %s: %s", p.name, a.end, a.told)
		}
	}
	w.end()
}

// restartAll ends each part of the service, and starts it again.
func (w *work) restartAll(ctx context.Context) {
	w.t.Helper()
	for _, of := range []struct {
		parts []*part
		node  bool
		// loses says that NATS may lose what passes the part when it ends.
		loses bool
	}{{w.nodes, true, false}, {w.nats, false, true}, {w.fronts, false, false}} {
		var working sync.WaitGroup
		begun := len(w.ends)
		for _, m := range of.parts {
			w.ends = append(w.ends, m.name)
			task := len(w.ends)
			for _, p := range w.persons {
				working.Go(func() { p.work(ctx, task) })
			}
			w.awaitWork(m, of.node)
			for _, p := range w.persons {
				p.answers.take()
			}
			from := time.Now()
			if worst := w.restart(m); worst > maxRefused {
				w.t.Errorf("%s is restarted: a user got 503 for %v", m.name, worst)
			}
			defer func(to time.Time) {
				for _, p := range w.persons {
					if lost := p.answers.between(from, to); len(lost) > 0 {
						w.t.Logf("%s: requests of %s without an answer: %q", m.name, p.name, lost)
						if !of.loses {
							w.t.Errorf("%s loses requests", m.name)
						}
					}
				}
			}(time.Now())
		}
		working.Wait()
		if !of.loses {
			w.checkWhole(begun)
		}
	}
}

// restart restarts a part, and returns for how long the user with the worst luck was refused.
func (w *work) restart(m *part) (worst time.Duration) {
	w.t.Helper()
	begun := time.Now()
	m.signal(syscall.SIGTERM)
	m.awaitEnd()
	ended := time.Now()
	if ended.Sub(begun) >= drainTime {
		w.t.Errorf("%s does not come to an end by itself", m.name)
	}
	m.begin(w.t)
	m.awaitHealth()
	healthy := time.Now()
	for _, p := range w.persons {
		until(w.t, p.name+" gets no answer", func() bool { return p.answers.since(healthy) || w.t.Failed() })
		worst = max(worst, p.answers.take())
	}
	w.t.Logf("%s ended after %v, and was healthy after %v; 503 lasted for %v at worst",
		m.name, ended.Sub(begun).Round(time.Millisecond), healthy.Sub(ended).Round(time.Millisecond), worst.Round(time.Millisecond))
	return worst
}

// checkWhole checks that nothing was interrupted of the tasks after a number of parts, and that no call was lost.
func (w *work) checkWhole(after int) {
	w.t.Helper()
	for _, p := range w.persons {
		for _, a := range p.attempts {
			if _, task := partsOf(a.name); task > after && a.end != ran && a.end != notRun && a.end != refused {
				w.t.Errorf("%s was not left alone: %s: %s", a.name, a.end, a.told)
			}
		}
	}
}

// awaitWork waits until commands of users run, and at a node if it has users.
func (w *work) awaitWork(m *part, node bool) {
	w.t.Helper()
	until(w.t, "nothing runs", func() bool {
		busy := w.busy()
		if node && !slices.Contains(busy, m) {
			all, err := w.leases.All(w.t.Context())
			for _, l := range all {
				if l.Node == m.name {
					return false
				}
			}
			return err == nil && len(busy) > 0
		}
		return len(busy) > 0
	})
}

// drainNodeOf drains the node of a user, who then has another one.
func (w *work) drainNodeOf(c client, user string) {
	var all status
	nodeOf := func() string {
		if err := json.Unmarshal(w.operate(w.fronts[0], "status", "--json"), &all); err != nil {
			w.t.Fatal(err)
		}
		for _, l := range all.Leases {
			if l.User == user {
				return l.Node
			}
		}
		return ""
	}
	node := nodeOf()
	if len(all.Nodes) != nodeCount || len(all.Leases) != 2 || node == "" {
		w.t.Errorf("the status: %+v", all)
	}
	w.operate(w.fronts[1], "drain", node)
	until(w.t, "the user stays there", func() bool { return nodeOf() != node })
	if status, body, err := c.call("hello"); err != nil || status != http.StatusOK || nodeOf() == node {
		w.t.Errorf("a call afterwards: %s, on %s", fmt.Sprint(status, body, err), nodeOf())
	}
}
