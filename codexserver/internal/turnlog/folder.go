package turnlog

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"sort"

	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/codexserver/setting"
)

// Options configure how a turn finds what it changes. The zero value takes the changes from events.
type Options struct {
	// Scratch says where git works for the snapshot. Untrusted programs, such as the
	// turn's commands, must not be able to write there. Without a folder there is no
	// snapshot.
	Scratch git.Scratch
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

// Ready is called before each event is delivered. If the event begins a change of files,
// it waits until the snapshot is taken or ctx ends, for a bounded time.
func (t *Turn) Ready(ctx context.Context, m protocol.EventMsg) {
	if Changes(m) {
		t.tree.ready(ctx)
	}
}

// found returns what the turn has changed, for a bounded time.
func (t *Turn) found() *changes {
	found, fault := t.tree.end()
	did := t.did()
	if fault == nil {
		return t.compared(found, did.ran)
	}
	return t.unseen(&did, fault)
}

// unseen returns the changes of a turn whose folder was not compared: those of its patches.
func (t *Turn) unseen(did *done, why error) *changes {
	c := &changes{from: protocol.ChangesFromEvents, diff: diffOfPatches(did.diff, did.cwd)}
	c.list, c.omitted = t.patched()
	if did.result.Status == "" {
		c.from = ""
	}
	if did.acted || !errors.Is(why, errEnded) { // a turn that ran nothing may end before the snapshot
		c.unknown = unknown(git.Gap{Path: did.cwd, Why: reason(why)})
	}
	c.untold = len(did.result.Commands) > 0 && !errors.Is(why, errOff) && !errors.Is(why, errNone)
	return c
}

// compared returns the changes of a turn whose folder was compared. Ran is true if it ran commands.
func (t *Turn) compared(found outcome, ran bool) *changes {
	elsewhere := t.patchedOutside(t.tree.covers)
	type change struct {
		git.Change
		by protocol.ChangeOrigin
	}
	var list []change
	for _, one := range found.changes {
		path := one.Path
		if !filepath.IsAbs(filepath.FromSlash(path)) {
			path = filepath.Join(t.tree.root(), filepath.FromSlash(path))
		}
		list = append(list, change{one, originOf(one, t.patchOf(path), ran)})
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
func (t *Turn) patched() ([]protocol.Change, int) {
	patches, omitted := t.patchChanges()
	var list []protocol.Change
	for _, one := range patches {
		list = append(list, changed(one, protocol.ByPatch))
	}
	return t.withEarlier(list), omitted
}

// Diff returns the turn's changes in git's form, after the turn has ended. Lines that
// begin with # name what the diff lacks. It is "" for a turn without changes.
func (t *Turn) Diff() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.tree.changed == nil {
		return ""
	}
	return t.tree.changed.diff
}

// Untold returns a sentence for the caller if what the commands of a turn that has ended changed is
// not known, or "".
func (t *Turn) Untold() string {
	t.mu.Lock()
	c := t.tree.changed
	t.mu.Unlock()
	if c == nil || !c.untold || len(c.unknown) == 0 {
		return ""
	}
	return "What the commands of this turn changed is not known: " + c.unknown[0].Why + "."
}

// So returns what the turn has done until now, without the answer. While it runs, the result has
// only the changes of its patches.
func (t *Turn) So() protocol.TurnResult {
	did := t.did()
	r := did.result
	switch c := did.changed; {
	case c != nil && r.Status.Ended():
		r.ChangesFrom, r.Changes, r.Unknown, r.Truncated.Changes = c.from, c.list, c.unknown, c.omitted
	case r.Status != "":
		r.ChangesFrom, r.Unknown = protocol.ChangesFromEvents, unknown(git.Gap{Path: did.cwd, Why: errRuns.Error()})
		r.Changes, r.Truncated.Changes = t.patched()
	}
	return r
}
