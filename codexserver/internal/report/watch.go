package report

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"sort"
	"sync/atomic"

	"github.com/codexmcp/codexmcp/codexserver/internal/repo"
	"github.com/codexmcp/codexmcp/codexserver/internal/turnlog"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/codexserver/setting"
)

// Options configure how a turn is watched. The zero value takes the changes from events.
type Options struct {
	// Scratch says where git works for the snapshot. Untrusted programs, such as the
	// turn's commands, must not be able to write there. Without a folder there is no
	// snapshot.
	Scratch repo.Scratch
	// Wait makes Begin wait for the snapshot. Engines that do not wait for Ready need
	// it: each that [engine.Traits].Streams.
	Wait bool
	// Announced begins the snapshot with the first event that begins a change, for engines with
	// [engine.Traits].Announces. A turn without such an event has no snapshot.
	Announced bool
	// Changes say how the folder is read.
	Changes setting.Changes
	// Looks limits how many folders are read at a time, since each takes file
	// descriptors: its capacity is the limit. A turn waits for a place within its own
	// time limit. Nil means no limit.
	Looks chan struct{}
	// Logger receives the reason why a snapshot failed. Default: nothing is logged.
	Logger *slog.Logger
}

// Watch reports one turn: what its log says, and what has changed in its folder. It is safe for
// concurrent use.
type Watch struct {
	turn    *turnlog.Turn
	tree    tree
	earlier []protocol.Change // of the process that ran the turn before
	ended   atomic.Pointer[changes]
}

// New returns the watch of a turn with a log.
func New(turn *turnlog.Turn, o Options) *Watch {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Changes = o.Changes.Resolved(o.Wait)
	return &Watch{turn: turn, tree: tree{options: o, take: repo.Look}}
}

// Begin begins the turn and its log. T is the event with which the thread began, and used is the
// thread's last token count, or nil. Roots are folders besides the working folder where
// commands may write. Each Begin needs an End.
func (w *Watch) Begin(ctx context.Context, t protocol.SessionConfigured, used *protocol.TokenUsage, roots ...string) {
	w.turn.Begin(t, used)
	w.tree.begin(ctx, t.Cwd, roots)
}

// Ready is called before each event is delivered. If the event begins a change of files,
// it waits until the snapshot is taken or ctx ends, for a bounded time.
func (w *Watch) Ready(ctx context.Context, m protocol.EventMsg) {
	if turnlog.Changes(m) {
		w.tree.ready(ctx)
	}
}

// Event is called with what an event means, after the log has it. It does not block.
func (w *Watch) Event(s turnlog.Step) {
	if s.Changes {
		w.tree.acting()
	}
}

// End ends the turn and its log with the error of [engine.Conversation] Turn. It compares the
// folder with the snapshot, for a bounded time.
func (w *Watch) End(err error) {
	found, fault := w.tree.end()
	did := w.turn.Did()
	if fault == nil {
		w.ended.Store(w.compared(found, did.Ran))
	} else {
		w.ended.Store(w.unseen(&did, fault))
	}
	w.turn.End(err)
}

// unseen returns the changes of a turn whose folder was not compared: those of its patches.
func (w *Watch) unseen(did *turnlog.Did, why error) *changes {
	c := &changes{from: protocol.ChangesFromEvents, diff: diffOfPatches(did.Diff, did.Cwd)}
	c.list, c.omitted = w.patched()
	if did.Result.Status == "" {
		c.from = ""
	}
	if did.Acted || !errors.Is(why, errEnded) { // a turn that ran nothing may end before the snapshot
		c.unknown = unknown(repo.Gap{Path: did.Cwd, Why: reason(why)})
	}
	c.untold = len(did.Result.Commands) > 0 && !errors.Is(why, errOff) && !errors.Is(why, errNone)
	return c
}

// compared returns the changes of a turn whose folder was compared. Ran is true if it ran commands.
func (w *Watch) compared(found outcome, ran bool) *changes {
	elsewhere := w.turn.PatchedOutside(w.tree.covers)
	type change struct {
		repo.Change
		by protocol.ChangeOrigin
	}
	var list []change
	for _, one := range found.changes {
		path := one.Path
		if !filepath.IsAbs(filepath.FromSlash(path)) {
			path = filepath.Join(w.tree.root(), filepath.FromSlash(path))
		}
		list = append(list, change{one, originOf(one, w.turn.Patched(path), ran)})
	}
	for _, one := range elsewhere {
		list = append(list, change{one, protocol.ByPatch})
	}
	sort.SliceStable(list, func(i, j int) bool { return list[i].Path < list[j].Path })
	c := &changes{from: protocol.ChangesFromTree, unknown: unknown(found.gaps...), diff: diffOf(found, elsewhere)}
	for _, one := range list {
		c.list = append(c.list, changed(one.Change, one.by))
	}
	return c
}

// patched returns the changes of the turn's patches, and how many files are left out.
func (w *Watch) patched() ([]protocol.Change, int) {
	patches, omitted := w.turn.Patches()
	var list []protocol.Change
	for _, one := range patches {
		list = append(list, changed(one, protocol.ByPatch))
	}
	return w.withEarlier(list), omitted
}

// Diff returns the turn's changes in git's form, after the turn has ended. Lines that
// begin with # name what the diff lacks. It is "" for a turn without changes.
func (w *Watch) Diff() string {
	if c := w.ended.Load(); c != nil {
		return c.diff
	}
	return ""
}

// Remark returns a sentence for the caller if what the commands of a turn that has ended changed is
// not known, or "".
func (w *Watch) Remark() string {
	c := w.ended.Load()
	if c == nil || !c.untold || len(c.unknown) == 0 {
		return ""
	}
	return "What the commands of this turn changed is not known: " + c.unknown[0].Why + "."
}

// Result returns what the turn has done until now, without the answer. While it runs, the result has
// only the changes of its patches.
func (w *Watch) Result() protocol.TurnResult {
	did := w.turn.Did()
	r := did.Result
	switch c := w.ended.Load(); {
	case c != nil && r.Status.Ended():
		r.ChangesFrom, r.Changes, r.Unknown, r.Truncated.Changes = c.from, c.list, c.unknown, c.omitted
	case r.Status != "":
		r.ChangesFrom, r.Unknown = protocol.ChangesFromEvents, unknown(repo.Gap{Path: did.Cwd, Why: errRuns.Error()})
		r.Changes, r.Truncated.Changes = w.patched()
	}
	return r
}
