package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/clustertest"
	"github.com/codexmcp/codexmcp/internal/nightly"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

type fault struct {
	name  string
	lasts time.Duration
	begin func()
	end   func()
}

const (
	// faultTime is how long a fault lasts. It is longer than a lease.
	faultTime = 4 * time.Second
	// silence is how long a node cannot be reached that goes on working. It is longer than another
	// node needs to take its users and to start their workers.
	silence = 2 * faultTime
)

// faults returns four sequences of faults, which take about as long. At least one node does not fail.
func (s *site) faults() (all [4][]fault) {
	at := func(i int, name string, lasts time.Duration, choose func() *part, begin, end func(*part)) {
		var m *part
		all[i] = append(all[i], fault{name, lasts, func() { m = choose(); begin(m) }, func() { end(m); m.failing.Unlock() }})
	}
	one := func(of []*part) func() *part { return func() *part { return choose(of) } }
	busy := func() *part { return choose(s.busy(), s.nodes) }
	kill, begin := func(m *part) { m.kill(s.t) }, func(m *part) { m.begin(s.t) }
	cut := func(i int, name string, lasts time.Duration, choose func() *part, everything bool) {
		w := []way{bothWays, toIt, fromIt}[rand.N(3)]
		at(i, name+string(w), lasts, choose, func(m *part) { m.cut(true, everything, w) }, func(m *part) { m.cut(false, everything, w) })
	}
	send := func(sig syscall.Signal) func(*part) { return func(m *part) { m.signal(sig) } }
	for range nightly.Number(1, 10) {
		at(0, "a node is killed", faultTime, busy, kill, begin)
		at(0, "a node is stopped", silence, busy, send(syscall.SIGSTOP), send(syscall.SIGCONT))
		at(0, "a node ends", faultTime, busy, send(syscall.SIGTERM), func(m *part) {
			m.awaitEnd()
			m.begin(s.t)
		})
		cut(1, "a node is cut off from NATS", silence, busy, false)
		cut(1, "a node is cut off from everything", silence, busy, true)
		at(2, "a NATS server is killed", faultTime, one(s.nats), kill, begin)
		at(2, "the disk of a NATS server is full", faultTime, one(s.nats), func(m *part) { m.fill(true) }, func(m *part) { // as codexserver/gateway/README.md says
			m.fill(false)
			kill(m)
			begin(m)
		})
		at(2, "a front is killed", faultTime, one(s.fronts), kill, begin)
		cut(2, "a front is cut off from NATS", faultTime, one(s.fronts), false)
		at(3, "a worker is killed", 0, busy, func(m *part) {
			if workers := m.children(); len(workers) > 0 {
				_ = syscall.Kill(workers[rand.N(len(workers))], syscall.SIGKILL) // it may have ended
			}
		}, func(*part) {})
		for name, take := range map[string]func(user string) error{
			"a lease is stolen": func(user string) error { // for a process that does not exist
				_, err := s.bucket.PutString(s.t.Context(), user, `{"node":"thief","id":"THIEF","term":1}`)
				return err
			},
			"a lease is removed": func(user string) error { return s.bucket.Purge(s.t.Context(), user) },
		} {
			all[3] = append(all[3], fault{name, faultTime, func() {
				user := s.persons[rand.N(len(s.persons))].name
				if all, err := s.leases.All(s.t.Context()); err == nil && len(all) > 0 { // one whose lease a node has
					user = all[rand.N(len(all))].User
				}
				if err := take(user); err != nil {
					s.t.Logf("%s has %s: %v", user, name, err)
				}
			}, func() {}})
		}
	}
	return all
}

// choose returns a part that no fault has, one of the first parts if there is one. It fails until its lock is released.
func choose(of ...[]*part) *part {
	for {
		for _, parts := range of {
			for _, i := range rand.Perm(len(parts)) {
				if parts[i].failing.TryLock() {
					return parts[i]
				}
			}
		}
		time.Sleep(pollInterval) // a worker is just being killed
	}
}

// workAndFail begins tasks before and during each fault, and waits for all tasks. The sequences of faults, each in
// random order, happen side by side.
func (s *site) workAndFail() {
	s.t.Helper()
	all := s.faults()
	count := len(slices.Concat(all[:]...))
	phases := make(chan struct{}, 2*count) // has an entry before each fault, and during it
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Duration(count)*2*silence+4*clustertest.Patience)
	defer cancel()
	var working, failing sync.WaitGroup
	for _, faults := range all {
		rand.Shuffle(len(faults), func(i, j int) { faults[i], faults[j] = faults[j], faults[i] })
		failing.Go(func() {
			defer func() {
				if s.t.Failed() { // it may have left the loop
					cancel()
				}
			}()
			for _, f := range faults {
				s.fail(ctx, f, phases)
			}
		})
	}
	todo := tasksOfEach * len(s.persons)
	for phase := range cap(phases) {
		select {
		case <-phases:
		case <-ctx.Done():
		}
		for n := todo * phase / cap(phases); n < todo*(phase+1)/cap(phases); n++ {
			p := s.persons[n%len(s.persons)]
			working.Go(func() { p.work(ctx, n/len(s.persons)) })
		}
	}
	failing.Wait()
	working.Wait()
}

// pollInterval is the time between two looks at the processes of the machine.
const pollInterval = 50 * time.Millisecond

// fail lets a part fail for a while. It announces the time before that, and the time of the fault.
func (s *site) fail(ctx context.Context, f fault, phases chan<- struct{}) {
	phases <- struct{}{}
	begun := time.Now()
	if rand.N(4) > 0 { // while commands run
		for len(s.busy()) == 0 && time.Since(begun) < faultTime {
			pause(ctx, pollInterval)
		}
	}
	if rand.N(2) > 0 {
		pause(ctx, rand.N(600*time.Millisecond))
	}
	s.t.Logf("%v after tasks began, %s; commands run at %d nodes", time.Since(begun).Round(time.Millisecond), f.name, len(s.busy()))
	f.begin()
	phases <- struct{}{}
	pause(ctx, f.lasts)
	f.end()
}

// busy returns the nodes whose workers run commands of attempts.
func (s *site) busy() (found []*part) {
	s.t.Helper()
	paths := must.Get(filepath.Glob("/proc/[0-9]*/cmdline"))(s.t)
	seen := map[*part]bool{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil || !bytes.HasPrefix(text, []byte("sh\x00-c\x00n=u")) { // a process may have ended
			continue
		}
		for pid := filepath.Base(filepath.Dir(path)); pid != ""; pid = parentOf(pid) {
			for _, m := range s.nodes {
				if strconv.FormatInt(m.pid.Load(), 10) == pid && !seen[m] {
					seen[m] = true
					found = append(found, m)
				}
			}
		}
	}
	return found
}

func parentOf(pid string) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%s/stat", pid))
	if err != nil {
		return ""
	}
	words := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(words) < 2 || words[1] == "0" {
		return ""
	}
	return words[1]
}
