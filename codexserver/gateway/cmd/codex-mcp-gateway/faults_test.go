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
)

// fault is a part of the service that fails.
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
	// usersOfFault is how many users begin a task during a fault.
	usersOfFault = 5
)

// faults returns all faults. Those of nodes hit a node whose workers run commands,
// if there is one. Some of the persons get another token.
func (s *site) faults(persons []*person) (all []fault) {
	at := func(name string, lasts time.Duration, choose func() *part, begin, end func(*part)) {
		var m *part
		all = append(all, fault{name, lasts, func() { m = choose(); begin(m) }, func() { end(m) }})
	}
	one := func(of []*part) func() *part { return func() *part { return of[rand.N(len(of))] } }
	busy := func() *part {
		if working := s.busy(); len(working) > 0 {
			return working[rand.N(len(working))]
		}
		return s.nodes[rand.N(len(s.nodes))]
	}
	kill, begin := func(m *part) { m.kill(s.t) }, func(m *part) { m.begin(s.t) }
	cut := func(name string, lasts time.Duration, choose func() *part, everything bool) {
		w := []way{bothWays, toIt, fromIt}[rand.N(3)]
		at(name+string(w), lasts, choose, func(m *part) { m.cut(true, everything, w) }, func(m *part) { m.cut(false, everything, w) })
	}
	send := func(sig syscall.Signal) func(*part) { return func(m *part) { m.signal(sig) } }
	for range *faultsOfKind {
		at("a node is killed", faultTime, busy, kill, begin)
		cut("a node is cut off from NATS", silence, busy, false)
		at("a node is stopped", silence, busy, send(syscall.SIGSTOP), send(syscall.SIGCONT))
		at("a node ends", faultTime, busy, send(syscall.SIGTERM), func(m *part) {
			m.awaitEnd()
			m.begin(s.t)
		})
		at("a NATS server is killed", faultTime, one(s.nats), kill, begin)
		at("the disk of a NATS server is full", faultTime, one(s.nats), func(m *part) { m.fill(true) }, func(m *part) { // as codexserver/gateway/README.md says
			m.fill(false)
			kill(m)
			begin(m)
		})
		at("a front is killed", faultTime, one(s.fronts), kill, begin)
		cut("a front is cut off from NATS", faultTime, one(s.fronts), false)
		cut("a node is cut off from everything", silence, busy, true)
		at("a node reads its users again", 0, busy, send(syscall.SIGHUP), func(*part) {})
		at("a front reads its users again", 0, one(s.fronts), send(syscall.SIGHUP), func(*part) {})
		all = append(all, fault{"tokens are revoked", 0, func() { s.replaceTokens(persons) }, func() {}})
	}
	return all
}

// workAndFail begins tasks before and during each fault and more of them, in random order, and waits for all tasks.
func (s *site) workAndFail(persons []*person, more ...fault) {
	s.t.Helper()
	others := slices.Clone(persons)
	all := append(s.faults(others), more...)
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	phases := make([]chan struct{}, 2*len(all)) // before each fault, and during it
	for i := range phases {
		phases[i] = make(chan struct{})
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Duration(len(all))*2*silence+4*patience)
	defer cancel()
	var working sync.WaitGroup
	for i, p := range persons {
		for task := range *tasksOfEach {
			working.Go(func() {
				select {
				case <-phases[(task*len(phases)/(*tasksOfEach)+i)%len(phases)]:
				case <-ctx.Done():
				}
				p.work(ctx, task)
			})
		}
	}
	for i, f := range all {
		close(phases[2*i])
		begun := time.Now()
		if rand.N(4) > 0 { // while commands run
			for len(s.busy()) == 0 && time.Since(begun) < faultTime {
				pause(ctx, 5*time.Millisecond)
			}
		}
		if rand.N(2) > 0 {
			pause(ctx, rand.N(600*time.Millisecond))
		}
		after := time.Since(begun)
		s.t.Logf("%v after tasks began, %s; commands run at %d nodes", after.Round(time.Millisecond), f.name, len(s.busy()))
		f.begin()
		close(phases[2*i+1])
		rand.Shuffle(len(others), func(i, j int) { others[i], others[j] = others[j], others[i] })
		for _, p := range others[:min(len(others), usersOfFault)] {
			working.Go(func() { p.work(ctx, *tasksOfEach+i) })
		}
		pause(ctx, f.lasts)
		f.end()
	}
	working.Wait()
}

// busy returns the nodes whose workers run commands of attempts.
func (s *site) busy() (found []*part) {
	s.t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		s.t.Fatal(err)
	}
	seen := map[*part]bool{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil || !bytes.HasPrefix(text, []byte("sh\x00-c\x00n=u")) { // a process may have ended
			continue
		}
		for pid := filepath.Base(filepath.Dir(path)); pid != ""; pid = parentOf(pid) {
			for _, m := range s.nodes {
				if strconv.Itoa(m.cmd.Process.Pid) == pid && !seen[m] {
					seen[m] = true
					found = append(found, m)
				}
			}
		}
	}
	return found
}

// parentOf returns the id of a process's parent, or "".
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
