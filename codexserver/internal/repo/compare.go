package repo

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/codexmcp/codexmcp/internal/safefile"
)

// Compare returns the changes since the snapshot was taken, sorted by path. It compares
// contents. It does not matter who wrote them, and what git has recorded.
func (s *Snapshot) Compare(ctx context.Context) ([]Change, error) {
	return s.compare(ctx, true)
}

// compare is Compare, with or without renames.
func (s *Snapshot) compare(ctx context.Context, renames bool) ([]Change, error) {
	now, isBrief, err := s.now(ctx)
	if err != nil {
		return nil, fmt.Errorf("repo: compare: %w", err)
	}
	s.after, s.stored, s.others, s.unsure = now, nil, nil, nil
	if s.private == nil {
		return nil, nil
	}
	if isBrief && renames {
		s.stored, err = s.diffBrief(ctx, now.tree)
	} else {
		s.stored, err = s.private.diffTrees(ctx, s.before.tree, now.tree, renames)
	}
	if err == nil {
		err = s.attributes(ctx, s.stored)
	}
	if err != nil {
		return nil, fmt.Errorf("repo: compare: %w", err)
	}
	s.stored = s.withoutMarks(s.stored, now)
	ends, err := s.compareEnds(ctx, now)
	if err != nil {
		return nil, fmt.Errorf("repo: compare: %w", err)
	}
	changes := merge(slices.Concat(s.stored, s.compareRest(now), s.compareSeen(now), ends))
	s.others = slices.Clone(changes[len(s.stored):])
	SortChanges(changes)
	return changes, nil
}

// now reads what is there now. It reports true if the trees have only the files that have changed. If
// nothing has changed, the snapshot has no private git folder.
func (s *Snapshot) now(ctx context.Context) (content, bool, error) {
	if s.quiet == nil {
		r, err := s.read(ctx, nil)
		return r, false, err
	}
	if s.private != nil { // of a comparison before
		if err := s.private.remove(); err != nil {
			return content{}, false, err
		}
		s.private, s.before.tree, s.after = nil, "", content{}
	}
	same, found := s.quiet.remains(ctx, s.root)
	if same {
		return content{}, false, nil
	}
	tree := ""
	if found != nil {
		if r, ok, err := s.brief(ctx, found); ok || err != nil {
			return r, ok, err
		}
		tree = found.tree
	}
	if err := s.wake(ctx, tree); err != nil {
		return content{}, false, err
	}
	r, err := s.read(ctx, found)
	return r, false, err
}

// attributes finds out how git changes files when it stores them. It removes the counts of
// files that need a filter, such as those of LFS, because filters do not run.
func (s *Snapshot) attributes(ctx context.Context, changes []Change) error {
	names := make([]string, len(changes))
	at := map[string]int{}
	for i, c := range changes {
		names[i], at[c.Path] = c.Path, i
	}
	binary := map[int]bool{}
	if s.after.bare {
		names = nil
	}
	err := s.private.attributes(ctx, call{}, names, []string{"filter", "text", "crlf", "eol", "ident", "working-tree-encoding"}, func(file, name, value string) {
		i, known := at[file]
		set := value != "unspecified" && value != "unset"
		switch {
		case !known:
		case name == "filter":
			changes[i].filtered = set
		case (name == "text" || name == "crlf") && value == "unset":
			binary[i] = true
		case set:
			changes[i].converted = true
			changes[i].encoded = changes[i].encoded || name == "ident" || name == "working-tree-encoding"
		}
	})
	convert := s.private.converts()
	for i := range changes {
		c := &changes[i]
		c.converted = (c.converted || convert) && !binary[i]
		if c.filtered {
			c.Lines = nil
		}
	}
	return err
}

// compareEnds returns the files of which git stores the same as before, although their bytes
// differ: git converts line ends and encodings. It does not have the bytes of before, so it
// compares sizes. [Snapshot.gaps] names the files of which that does not tell.
func (s *Snapshot) compareEnds(ctx context.Context, now content) (changes []Change, err error) {
	s.unsure = nil
	same := map[string]indexed{}
	for name, before := range s.touched {
		if _, marked := now.marks[name]; !marked {
			same[name] = before
		}
	}
	for _, c := range s.stored {
		delete(same, c.Path)
		delete(same, c.From)
	}
	var candidates []Change
	for _, name := range slices.Sorted(maps.Keys(same)) {
		candidates = append(candidates, Change{Path: name, Kind: Update})
	}
	if err := s.attributes(ctx, candidates); err != nil {
		return nil, err
	}
	read := 0
	for _, c := range candidates {
		info, err := os.Lstat(s.path(c.Path))
		if err != nil || !info.Mode().IsRegular() || !c.converted || c.filtered {
			continue
		}
		if before := same[c.Path].size; before != 0 && int64(before) != info.Size() {
			changes = append(changes, c)
			continue
		}
		// Of the same size are the same bytes, if none of them can be part of a line end that
		// git changes.
		if read++; !c.encoded && same[c.Path].size != 0 && read <= maxLossy {
			if data, err := safefile.Read(s.path(c.Path), maxContent); err == nil && !bytes.ContainsRune(data, '\r') {
				continue
			}
		}
		s.unsure = append(s.unsure, c.Path)
	}
	return changes, nil
}

// withoutMarks removes the changes of files that were or are missing in the tree.
// [Snapshot.compareRest] returns those.
func (s *Snapshot) withoutMarks(changes []Change, now content) []Change {
	return slices.DeleteFunc(changes, func(c Change) bool {
		_, before := s.before.marks[c.Path]
		_, after := now.marks[c.Path]
		return before || after
	})
}

// compareRest returns the changes of files and repositories that are not in trees.
func (s *Snapshot) compareRest(now content) []Change {
	var changes []Change
	add := func(name string, kind ChangeKind) { changes = append(changes, Change{Path: name, Kind: kind}) }
	for name, before := range s.before.marks {
		after, marked := now.marks[name]
		_, err := os.Lstat(s.path(name))
		switch {
		case marked && before.equal(after):
		case err != nil:
			add(name, Delete)
		default:
			add(name, Update)
		}
	}
	for name := range now.marks {
		if _, ok := s.before.marks[name]; ok {
			continue
		}
		if now.known[name] {
			add(name, Update)
		} else {
			add(name, Add)
		}
	}
	for dir := range now.nested {
		if !s.before.nested[dir] {
			add(dir+"/", Add)
		}
	}
	for dir := range s.before.nested {
		if !now.nested[dir] {
			add(dir+"/", Delete)
		}
	}
	return changes
}
