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
	var written []string
	for name, s := range l.after.seen {
		before, known := l.before.seen[name]
		// The commit of a submodule may change when its folder does not.
		if !known || s != before || s.is(modeFolder) || s.changed >= l.since.UnixNano() {
			written = append(written, name)
		} else if o, ok := l.before.others[name]; ok {
			l.after.others[name] = o
		}
	}
	var sections map[string]string
	if len(written) > 0 {
		if sections, err = l.compareStored(ctx, written); err != nil {
			return "", err
		}
	}
	others := l.compareOthers()
	l.changes = slices.DeleteFunc(l.changes, func(c Change) bool { return others[c.Path].Kind != "" })
	l.changes = slices.AppendSeq(l.changes, maps.Values(others))
	return l.join(sections, max), nil
}

// compareStored stores what was written and compares the indexes. It returns no sections if git cannot make them.
func (l *look) compareStored(ctx context.Context, written []string) (sections map[string]string, err error) {
	tree, err := l.git(ctx, call{}, "write-tree", "--missing-ok")
	if err != nil {
		return nil, err
	}
	if err = l.store(ctx, written, &l.after); err != nil {
		return nil, err
	}
	if sections, err = l.diffIndex(ctx, strings.TrimSpace(tree)); err == nil {
		err = l.markConverted(ctx, written, sections)
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
		case before.why == "" && (isFolder || !l.had(name)):
			c.Kind = Add
		case after.why == "" && (isFolder || !now.exists() || now.is(modeFolder)):
			c.Kind = Delete
		}
		changes[name] = c
	}
	return changes
}

// had reports whether there was a file before that git stores.
func (l *look) had(name string) bool {
	s, seen := l.before.seen[name]
	return s.exists() || !seen && l.index.entry(name) != nil
}
