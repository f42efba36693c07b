package changes

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/codexserver/internal/show"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// maxDiff bounds the diff of a turn, in bytes.
const maxDiff = 4 << 20

// Did is what a turn did, by its events.
type Did struct {
	// Begun is true for a turn that has begun.
	Begun bool
	// Patches are those of the turn, and Diff is their diff from the engine.
	Patches *Patches
	Diff    string
	// Acted is true if something began that may change files, Ran if that was a command, a tool, or a patch
	// that was not applied, and Commands if the turn has commands.
	Acted, Ran, Commands bool
}

// Found is what a turn has changed.
type Found struct {
	// From says where the changes come from, "" for a turn that never began.
	From protocol.ChangesSource
	// List has the changes, sorted by path. Omitted is how many are not in it.
	List    []protocol.Change
	Omitted int
	// Unknown says what was not looked at.
	Unknown []protocol.Unknown
	// Untold is a sentence for the caller if what the turn's commands changed is not known, else "".
	Untold string
	// Diff has the changes in git's form. Lines that begin with # name what it lacks. It is "" without changes
	// and while the turn runs.
	Diff string
}

// Now returns what is known of a turn that runs: the changes of its patches.
func (b *Before) Now(p *Patches, dir string) Found {
	f := b.patched(p, dir)
	f.Unknown = unknown(git.Gap{Path: dir, Why: errRuns.Error()})
	return f
}

// patched returns the changes of patches, and those of an earlier process. Paths below dir are relative to it.
func (b *Before) patched(p *Patches, dir string) Found {
	f := Found{From: protocol.ChangesFromEvents, Omitted: p.omitted}
	for _, one := range p.changes(dir) {
		f.List = append(f.List, changed(one, protocol.ByPatch))
	}
	var earlier []protocol.Change
	if b != nil {
		earlier = b.earlier
	}
	f.List = withEarlier(earlier, f.List)
	return f
}

// After is what is known of the folder of a turn that has ended.
type After struct {
	before  *Before
	changes []git.Change
	gaps    []git.Gap
	diff    string
	err     error // why it was not compared
}

// After compares the folder with how it was before the turn, which ends, for a bounded time. It must be called once.
func (b *Before) After() After {
	if b == nil {
		return After{err: errWhere}
	}
	b.end()
	b.never(errEnded)
	a, s := After{before: b, err: b.failed}, b.snapshot
	if s == nil {
		return a
	}
	limit, log := b.options.Changes.After, b.options.Logger
	ctx, stop := context.WithTimeoutCause(context.Background(), limit, slowError{limit})
	defer stop()
	leave, err := b.place(ctx)
	if err == nil {
		defer leave()
		a.changes, a.diff, err = s.Compare(ctx, maxDiff)
	}
	if a.err = err; err != nil {
		log.Info("no look after the turn: its changes are those of its patches", "folder", s.Root(), "error", err)
	}
	a.gaps = s.Gaps()
	if err := s.Remove(); err != nil {
		log.Warn("snapshot not removed", "error", err)
	}
	return a
}

// Found returns what a turn has changed that did this.
func (a After) Found(did Did) Found {
	if a.err != nil {
		return a.patched(did)
	}
	elsewhere := did.Patches.elsewhere(a.before.snapshot.Covers)
	f := Found{From: protocol.ChangesFromTree, Unknown: unknown(a.gaps...), Diff: a.diff + omitted(a.changes, elsewhere)}
	all := append(a.changes[:len(a.changes):len(a.changes)], elsewhere...)
	git.SortChanges(all)
	for _, one := range all {
		path := filepath.FromSlash(one.Path)
		if !filepath.IsAbs(path) {
			path = filepath.Join(a.before.snapshot.Root(), path)
		}
		f.List = append(f.List, changed(one, originOf(one, did.Patches.of(path), did.Ran)))
	}
	return f
}

// patched returns the changes of a turn whose folder was not compared: those of its patches.
func (a After) patched(did Did) Found {
	dir := ""
	if a.before != nil {
		dir = a.before.dir
	}
	f := a.before.patched(did.Patches, dir)
	f.Diff = diffOfPatches(did.Diff, dir)
	if !did.Begun {
		f.From = ""
	}
	if did.Acted || !errors.Is(a.err, errEnded) { // a turn that ran nothing may end before the snapshot
		f.Unknown = unknown(git.Gap{Path: dir, Why: reason(a.err)})
	}
	if did.Commands && !errors.Is(a.err, errOff) && !errors.Is(a.err, errNone) && len(f.Unknown) > 0 {
		f.Untold = "What the commands of this turn changed is not known: " + f.Unknown[0].Why + "."
	}
	return f
}

// originOf returns the origin of a change. Said is what the turn's patches say about the file,
// or nil, and ran is true if the turn ran commands or tools.
func originOf(c git.Change, said *git.Change, ran bool) protocol.ChangeOrigin {
	switch {
	case said != nil && explains(said, c):
		return protocol.ByPatch
	case ran:
		return protocol.ByCommand
	}
	return protocol.ByOther
}

// explains reports whether patches have changed as many lines as a file shows.
func explains(said *git.Change, c git.Change) bool {
	return c.Lines != nil && said.Lines != nil && c.Lines.Added <= said.Lines.Added && c.Lines.Removed <= said.Lines.Removed
}

// changed returns a change for the result.
func changed(c git.Change, by protocol.ChangeOrigin) protocol.Change {
	one := protocol.Change{Path: show.Path(c.Path), Kind: string(c.Kind), By: by}
	if c.From != "" {
		one.From = show.Path(c.From)
	}
	if c.Lines != nil {
		one.Added, one.Removed = new(c.Lines.Added), new(c.Lines.Removed)
	}
	return one
}

// unknown returns gaps for the result.
func unknown(gaps ...git.Gap) (list []protocol.Unknown) {
	for _, gap := range gaps {
		list = append(list, protocol.Unknown{Path: show.Path(gap.Path), Why: show.Text(gap.Why, show.MaxWords)})
	}
	return list
}
