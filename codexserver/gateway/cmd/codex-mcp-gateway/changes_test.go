package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/access"
	"github.com/nats-io/nats.go/jetstream"
)

// changeUsers changes the users on all machines while they run, the fronts first. It calls then when those do not know
// the former users any more.
func (s *site) changeUsers(change func(string) string, then func()) {
	s.t.Helper()
	for _, parts := range [][]*part{s.fronts, s.nodes} {
		for _, m := range parts {
			file := filepath.Join(m.home, "codex-mcp.toml")
			text, err := os.ReadFile(file)
			if err == nil {
				err = os.WriteFile(file, []byte(change(string(text))), 0o600)
			}
			if err != nil {
				s.t.Error(err)
			}
			reloads := func() int { return strings.Count(m.errors(), "reloaded the users") }
			before := reloads()
			m.signal(syscall.SIGHUP)
			until(s.t, m.name+" does not reload", func() bool { return reloads() > before })
		}
		if then != nil {
			then()
			then = nil
		}
	}
}

// replaceTokens gives other tokens to some persons in the middle of their turns, which go on.
func (s *site) replaceTokens(persons []*person) {
	s.t.Helper()
	var pairs []string
	revoked, next := map[*person]string{}, map[*person]string{}
	for _, i := range rand.Perm(len(persons))[:min(len(persons), usersOfFault)] {
		p := persons[i]
		token, hash := access.NewToken()
		revoked[p], next[p] = p.bearer(), token
		pairs = append(pairs, access.Hash(p.bearer()), hash)
	}
	s.changeUsers(strings.NewReplacer(pairs...).Replace, func() {
		for p, token := range next {
			p.mu.Lock()
			p.token = token
			p.mu.Unlock()
		}
	})
	for p, token := range revoked {
		for _, front := range s.fronts {
			p.checkRefused(front, token)
		}
	}
}

// checkRefused checks that a front takes a token for a wrong one. After many of those it says that they are too many.
func (p *person) checkRefused(front *part, token string) {
	p.t.Helper()
	status, body, err := client{p.t, front.url, token}.ask(p.t.Context(), asking, "tools/list", "", "")
	if err != nil || status != http.StatusUnauthorized && status != http.StatusTooManyRequests {
		p.t.Errorf("a token of %s is revoked, and %s answers %d %s, %v", p.name, front.name, status, body, err)
	}
}

// forget removes a user whose command runs, and then everything that is kept of the user.
func (w *work) forget(gone *person) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	following := make(chan struct{})
	go func() {
		defer close(following)
		user, _ := partsOf(gone.name + "-t0-")
		gone.callOwn(ctx, gone.attempt(5-user%5, 1)) // its command is accepted, and lasts long
	}()
	ran := func() string {
		text, _ := os.ReadFile(filepath.Join(w.top, gone.name, "ran")) // not before the command begins
		return string(text)
	}
	until(w.t, "the command of "+gone.name+" does not begin", func() bool { return strings.Contains(ran(), " begins ") })
	w.changeUsers(func(text string) string {
		before, rest, _ := strings.Cut(text, "[http.principals."+gone.name+"]")
		_, after, _ := strings.Cut(rest, "\n\n")
		return before + after
	}, nil)
	cancel()
	<-following
	for _, front := range w.fronts {
		gone.checkRefused(front, gone.token)
	}
	for _, m := range slices.Concat(w.nodes, w.fronts) {
		w.operate(m, "user", "forget", gone.name)
		if _, err := os.Stat(filepath.Join(m.home, "codex-mcp", "principals", gone.name)); !os.IsNotExist(err) {
			w.t.Errorf("%s keeps files of %s: %v", m.name, gone.name, err)
		}
	}
	if _, err := w.stream.Stream(w.t.Context(), "codexmcp_state_"+gone.name); !errors.Is(err, jetstream.ErrStreamNotFound) {
		w.t.Errorf("NATS keeps something of %s: %v", gone.name, err)
	}
	if text := ran(); strings.Contains(text, " ends ") {
		w.t.Errorf("the command of %s has gone on: %s", gone.name, text)
	}
}
