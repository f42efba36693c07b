package report

import (
	"cmp"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/repo"
)

// Origin says how sure it is that the turn made a change. The folder shows only what has
// changed, and when.
type Origin string

// The origins.
const (
	ByPatch   Origin = "patch"   // a patch of the turn wrote the file, and nothing since
	ByCommand Origin = "command" // it changed while a command or a tool of the turn ran
	ByOther   Origin = "other"   // nothing of the turn ran then, or another turn did
)

// Change is a change with its origin.
type Change struct {
	repo.Change
	Origin Origin
}

// Slack before the start of a command or patch.
const (
	clockSlack  = 20 * time.Millisecond  // file systems have a coarse clock
	streamSlack = 300 * time.Millisecond // an engine that streams reports the start late
)

// span is a time in which something ran.
type span struct{ from, to time.Time }

func (s span) has(t time.Time) bool { return !t.Before(s.from) && !t.After(s.to) }

func within(spans []span, t time.Time) bool {
	return slices.ContainsFunc(spans, func(s span) bool { return s.has(t) })
}

// Turns are the running turns of a server. With it, collectors find turns in the same
// folder at the same time. The zero value is ready.
type Turns struct {
	mu     sync.Mutex
	active map[*timeline]bool
}

// timeline has the times in which a turn acted.
type timeline struct {
	turns *Turns
	slack time.Duration

	// Guarded by turns.mu.
	root    string
	open    map[string]action // by call
	spans   []span            // of commands and tools
	patches map[string][]span // by path, with slashes
	foreign []span            // those of turns that have ended in the same folder
	theirs  map[string]bool   // the paths of their patches
}

// action is a running command or patch.
type action struct {
	from  time.Time
	paths []string // of a patch
	patch bool
}

func newTimeline(o *Options) *timeline {
	a := &timeline{turns: o.Turns, slack: clockSlack, open: map[string]action{}, patches: map[string][]span{}, theirs: map[string]bool{}}
	if a.turns == nil {
		a.turns = &Turns{}
	}
	if o.Wait {
		a.slack = streamSlack
	}
	return a
}

// enter begins the turn in a folder.
func (a *timeline) enter(root string) {
	a.turns.mu.Lock()
	defer a.turns.mu.Unlock()
	if a.root = root; root == "" {
		return
	}
	if a.turns.active == nil {
		a.turns.active = map[*timeline]bool{}
	}
	a.turns.active[a] = true
}

// leave ends the turn, and returns what was known at that moment.
func (a *timeline) leave() {
	a.turns.mu.Lock()
	defer a.turns.mu.Unlock()
	now := time.Now()
	for id := range a.open {
		a.end(id, now, true)
	}
	delete(a.turns.active, a)
	for other := range a.turns.active {
		if !overlap(a.root, other.root) {
			continue
		}
		other.learn(a, now)
		a.learn(other, now)
	}
}

// learn adds what another turn has done until now.
func (a *timeline) learn(other *timeline, now time.Time) {
	a.foreign = bounded(append(a.foreign, other.spans...))
	for _, act := range other.open {
		a.foreign = append(a.foreign, span{act.from, now})
		for _, path := range act.paths {
			a.theirs[path] = true
		}
	}
	for path, spans := range other.patches {
		a.foreign = bounded(append(a.foreign, spans...))
		a.theirs[path] = true
	}
}

// overlap reports whether one folder is the other or lies in it.
func overlap(a, b string) bool {
	inside := func(dir, of string) bool {
		rel, err := filepath.Rel(of, dir)
		return err == nil && filepath.IsLocal(rel)
	}
	return a != "" && b != "" && (a == b || inside(a, b) || inside(b, a))
}

// bounded joins spans if there are too many.
func bounded(spans []span) []span {
	if len(spans) <= maxKept {
		return spans
	}
	all := spans[0]
	for _, s := range spans {
		if s.from.Before(all.from) {
			all.from = s.from
		}
		if s.to.After(all.to) {
			all.to = s.to
		}
	}
	return []span{all}
}

// begin records the start of a command, or of a patch of files, which is now unless began says
// when.
func (a *timeline) begin(call string, began time.Time, patch bool, paths []string) {
	a.turns.mu.Lock()
	defer a.turns.mu.Unlock()
	a.open[call] = action{from: cmp.Or(began, time.Now()).Add(-a.slack), patch: patch, paths: paths}
}

// done records the end. A patch that was not applied has changed nothing for sure.
func (a *timeline) done(call string, applied bool) {
	a.turns.mu.Lock()
	defer a.turns.mu.Unlock()
	a.end(call, time.Now(), applied)
}

func (a *timeline) end(call string, now time.Time, applied bool) {
	act, ok := a.open[call]
	if !ok {
		return
	}
	delete(a.open, call)
	s := span{act.from, now}
	if !act.patch || !applied {
		a.spans = bounded(append(a.spans, s))
		return
	}
	for _, path := range act.paths {
		if len(a.patches) < maxPatched || a.patches[path] != nil {
			a.patches[path] = bounded(append(a.patches[path], s))
		}
	}
}

// origin returns the origin of a change of the file at an absolute path. Said is what the
// turn's patches say about it, or nil.
func (a *timeline) origin(c repo.Change, path string, said *repo.Change) Origin {
	a.turns.mu.Lock()
	defer a.turns.mu.Unlock()
	path = filepath.ToSlash(path)
	switch {
	case c.Last.IsZero():
		return ByOther
	case said != nil && within(a.patches[path], c.Last) && !a.theirs[path] && explains(said, c):
		return ByPatch
	case within(a.foreign, c.Last):
		return ByOther
	case within(a.spans, c.Last):
		return ByCommand
	}
	return ByOther
}

// explains reports whether patches have changed as many lines as a file shows.
func explains(said *repo.Change, c repo.Change) bool {
	return c.Lines != nil && said.Lines != nil && c.Lines.Added <= said.Lines.Added && c.Lines.Removed <= said.Lines.Removed
}
