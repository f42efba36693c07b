package changes

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/plain"
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
func (b *Before) Now(p *Patches) Found {
	return Found{From: protocol.ChangesFromEvents, List: b.patched(p), Omitted: p.omitted,
		Unknown: unknown(git.Gap{Path: b.folder(), Why: errRuns.Error()})}
}

// folder returns the turn's folder, or "".
func (b *Before) folder() string {
	if b == nil {
		return ""
	}
	return b.dir
}

// patched returns the changes of patches, and those of an earlier process.
func (b *Before) patched(p *Patches) []protocol.Change {
	var list []protocol.Change
	for _, one := range p.changes(b.folder()) {
		by := protocol.ByPatch
		if made(&one) {
			by = protocol.ByCommand
		}
		list = append(list, changed(one, by))
	}
	if b == nil {
		return list
	}
	return withEarlier(b.earlier, list)
}

// After compares the folder with how it was before the turn, which ends, for a bounded time, and returns what a turn
// has changed that did this. It must be called once.
func (b *Before) After(did Did) Found {
	if b == nil {
		return b.unseen(did, errWhere)
	}
	b.end()
	b.never(errEnded)
	s, limit, log := b.snapshot, b.options.After, b.options.Logger
	if s == nil {
		return b.unseen(did, b.failed)
	}
	defer b.remove()
	ctx, stop := bounded(context.Background(), limit)
	defer stop()
	var all []git.Change
	var diff string
	leave, err := b.options.Looks.Take(ctx)
	if err == nil {
		defer leave()
		all, diff, err = s.Compare(ctx, maxDiff)
	}
	if err != nil {
		err = cmp.Or(context.Cause(ctx), err)
		log.Info("no look after the turn: its changes are those of its patches", "folder", s.Root(), "error", err)
		return b.unseen(did, err)
	}
	elsewhere := did.Patches.elsewhere(s.Covers)
	f := Found{From: protocol.ChangesFromTree, Unknown: unknown(s.Gaps()...), Diff: diff + omitted(all, elsewhere)}
	all = append(all, elsewhere...)
	git.SortChanges(all)
	for _, one := range all {
		path := filepath.FromSlash(one.Path)
		if !filepath.IsAbs(path) {
			path = filepath.Join(s.Root(), path)
		}
		f.List = append(f.List, changed(one, originOf(one, did.Patches.of(path), did.Ran)))
	}
	return f
}

// unseen returns the changes of a turn whose folder was not compared: those of its patches. Why is the reason.
func (b *Before) unseen(did Did, why error) Found {
	f := Found{From: protocol.ChangesFromEvents, List: b.patched(did.Patches), Omitted: did.Patches.omitted,
		Diff: diffOfPatches(did.Diff, b.folder())}
	if !did.Begun {
		f.From = ""
	}
	if did.Acted || !errors.Is(why, errEnded) { // a turn that ran nothing may end before the snapshot
		f.Unknown = unknown(git.Gap{Path: b.folder(), Why: strings.TrimPrefix(why.Error(), "git: ")})
	}
	if did.Commands && !errors.Is(why, errOff) && !errors.Is(why, errNone) && len(f.Unknown) > 0 {
		f.Untold = "What the commands of this turn changed is not known: " + f.Unknown[0].Why + "."
	}
	return f
}

// originOf returns the origin of a change. Said is what the turn's patches say about the file,
// or nil, and ran is true if the turn ran commands or tools.
func originOf(c git.Change, said *git.Change, ran bool) protocol.ChangeOrigin {
	switch {
	case said != nil && said.Lines != nil && c.Lines != nil && c.Lines.Added <= said.Lines.Added &&
		c.Lines.Removed <= said.Lines.Removed:
		return protocol.ByPatch // the patches have changed as many lines as the file shows
	case ran, made(said):
		return protocol.ByCommand
	}
	return protocol.ByOther
}

// made reports whether what a turn says about a file is that the engine made it otherwise than by a patch.
func made(said *git.Change) bool { return said != nil && said.Lines == nil }

// changed returns a change for the result.
func changed(c git.Change, by protocol.ChangeOrigin) protocol.Change {
	one := protocol.Change{Path: shown(c.Path), Kind: string(c.Kind), By: by}
	if c.From != "" {
		one.From = shown(c.From)
	}
	if c.Lines != nil {
		one.Added, one.Removed = new(c.Lines.Added), new(c.Lines.Removed)
	}
	return one
}

// unknown returns gaps for the result.
func unknown(gaps ...git.Gap) (list []protocol.Unknown) {
	for _, gap := range gaps {
		list = append(list, protocol.Unknown{Path: shown(gap.Path), Why: plain.Short(gap.Why, plain.MaxWords)})
	}
	return list
}
