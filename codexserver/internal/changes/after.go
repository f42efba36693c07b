package changes

import (
	"context"
	"errors"
	"path/filepath"
	"sort"

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
	before *Before
	seen   outcome
	err    error // why it was not compared
}

// outcome is what a turn changed, as the folder shows it.
type outcome struct {
	changes []git.Change
	gaps    []git.Gap
	diff    string
	left    []git.Omission // changes that are not in the diff
}

// After compares the folder with how it was before the turn, which ends, for a bounded time. It must be called once.
func (b *Before) After() After {
	if b == nil {
		return After{err: errWhere}
	}
	a := After{before: b}
	a.seen, a.err = b.compare()
	return a
}

// Found returns what a turn has changed that did this.
func (a After) Found(did Did) Found {
	switch b := a.before; {
	case b == nil:
		return b.unseen(&did, "", a.err)
	case a.err != nil:
		return b.unseen(&did, b.dir, a.err)
	default:
		return b.found(a.seen, &did)
	}
}

// compare returns what has changed in the folder. The error is why that is not known.
func (b *Before) compare() (f outcome, err error) {
	b.end()
	b.never(errEnded)
	s := b.snapshot
	if s == nil {
		return f, b.failed
	}
	limit, log := b.options.Changes.After, b.options.Logger
	ctx, stop := context.WithTimeoutCause(context.Background(), limit, slowError{limit})
	defer stop()
	leave, err := b.place(ctx)
	if err == nil {
		defer leave()
		f.changes, err = s.Compare(ctx)
	}
	if err != nil {
		log.Info("no look after the turn: its changes are those of its patches", "folder", s.Root(), "error", err)
	} else {
		f.gaps = s.Gaps()
		var trouble error
		if f.diff, f.left, trouble = s.Diff(ctx, maxDiff); trouble != nil {
			log.Info("no diff of the turn", "folder", s.Root(), "error", trouble)
			f.diff, f.left = "", nil
			for _, c := range f.changes {
				f.left = append(f.left, git.Omission{Change: c, Why: "git could not make the diff"})
			}
		}
	}
	if err := s.Remove(); err != nil {
		log.Warn("snapshot not removed", "error", err)
	}
	return f, err
}

// unseen returns the changes of a turn whose folder was not compared: those of its patches.
func (b *Before) unseen(did *Did, dir string, why error) Found {
	f := b.patched(did.Patches, dir)
	f.Diff = diffOfPatches(did.Diff, dir)
	if !did.Begun {
		f.From = ""
	}
	if did.Acted || !errors.Is(why, errEnded) { // a turn that ran nothing may end before the snapshot
		f.Unknown = unknown(git.Gap{Path: dir, Why: reason(why)})
	}
	if did.Commands && !errors.Is(why, errOff) && !errors.Is(why, errNone) && len(f.Unknown) > 0 {
		f.Untold = "What the commands of this turn changed is not known: " + f.Unknown[0].Why + "."
	}
	return f
}

// found returns the changes of a turn whose folder was compared.
func (b *Before) found(found outcome, did *Did) Found {
	elsewhere := did.Patches.elsewhere(b.snapshot.Covers)
	type change struct {
		git.Change
		by protocol.ChangeOrigin
	}
	var list []change
	for _, one := range found.changes {
		path := one.Path
		if !filepath.IsAbs(filepath.FromSlash(path)) {
			path = filepath.Join(b.snapshot.Root(), filepath.FromSlash(path))
		}
		list = append(list, change{one, originOf(one, did.Patches.of(path), did.Ran)})
	}
	for _, one := range elsewhere {
		list = append(list, change{one, protocol.ByPatch})
	}
	sort.SliceStable(list, func(i, j int) bool { return list[i].Path < list[j].Path })
	f := Found{From: protocol.ChangesFromTree, Unknown: unknown(found.gaps...), Diff: diffOf(found, elsewhere)}
	for _, one := range list {
		f.List = append(f.List, changed(one.Change, one.by))
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
