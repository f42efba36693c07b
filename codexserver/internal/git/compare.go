package git

import (
	"context"
	"maps"
	"slices"
	"strings"
)

// compare finds the changes since the look, and returns at most max bytes of their diff.
func (l *look) compare(ctx context.Context, max int) (diff string, err error) {
	if l.after, err = l.see(ctx); err != nil {
		return "", err
	}
	again := l.unnoticed()
	present, gone, err := l.split(&l.after)
	if err != nil {
		return "", err
	}
	var sections map[string]string
	if len(present)+len(gone) > 0 {
		if sections, err = l.compareStored(ctx, present, append(gone, again...)); err != nil {
			return "", err
		}
	}
	others := l.compareOthers()
	l.changes = slices.DeleteFunc(l.changes, func(c Change) bool { return others[c.Path].Kind != "" })
	l.changes = slices.AppendSeq(l.changes, maps.Values(others))
	return l.join(sections, max), nil
}

// unnoticed adds the files to those that were seen after which git does not name although they may have changed: their
// times in seconds are the same as before, or so is what git would store. It returns them, for git to read them again.
func (l *look) unnoticed() (names []string) {
	add := func(name string, before stat) {
		s, err := lstat(l.path(name))
		if _, seen := l.after.seen[name]; !seen && err == nil && s.is(modeFile) && s != before {
			l.after.seen[name] = s
			names = append(names, name)
		}
	}
	for name, s := range l.tracked {
		add(name, s)
	}
	for name, s := range l.before.seen {
		add(name, s)
	}
	return names
}

// compareStored stores what was written and compares the indexes. It returns no sections if git cannot make them.
func (l *look) compareStored(ctx context.Context, present, gone []string) (sections map[string]string, err error) {
	tree, err := l.git(ctx, call{}, "write-tree", "--missing-ok")
	if err != nil {
		return nil, err
	}
	if err = l.store(ctx, present, gone); err != nil {
		return nil, err
	}
	if sections, err = l.diffIndex(ctx, strings.TrimSpace(tree)); err == nil {
		err = l.markConverted(ctx, present, sections)
	}
	return sections, err
}

// compareOthers returns the changes of what git does not store.
func (l *look) compareOthers() map[string]Change {
	changes, all := map[string]Change{}, maps.Clone(l.before.others)
	maps.Copy(all, l.after.others)
	for name := range all {
		before, after := l.before.others[name], l.after.others[name]
		if before == after {
			continue
		}
		c := Change{Path: name, Kind: Update, Why: before.why}
		if after.why != "" {
			c.Why = after.why
		}
		isFolder := strings.HasSuffix(name, "/")
		now := l.now(name)
		switch {
		case before.why == "" && (isFolder || l.isNew(name)):
			c.Kind = Add
		case after.why == "" && (isFolder || !now.exists() || now.is(modeFolder)):
			c.Kind = Delete
		}
		changes[name] = c
	}
	return changes
}

// isNew reports whether git had no such file at the look.
func (l *look) isNew(name string) bool {
	_, seen := l.after.seen[name]
	return l.after.new[name] || !seen
}
