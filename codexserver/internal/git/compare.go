package git

import (
	"cmp"
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

// compareStored stores the files that were written and compares the index with the one before. It returns the
// sections of the diff by their paths, or nil if git cannot make it.
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

// converted is why a change is not shown: git or a filter converts the file's line ends, its encoding or all of it,
// so the index may have other bytes than the file had, and a diff would make others.
const converted = "git stores it in another form"

// Conversions of a file by git. Other line ends count if there are some.
const (
	convertsEnds = 1 << iota
	makesEnds    // it writes them in any case
	convertsAll
)

// attributes are those that make git convert a file. The last one decides whether it is binary.
var attributes = []string{"filter", "ident", "working-tree-encoding", "eol", "crlf", "text"}

// markConverted gives this reason to the changes of files that git converts. It adds the files that are now as in
// the index, but had another size before.
func (l *look) markConverted(ctx context.Context, written []string, sections map[string]string) error {
	differ, how := map[string]bool{}, map[string]int{}
	for _, c := range l.changes {
		differ[c.Path], differ[c.From] = true, true
		if set := l.settings["autocrlf"]; set != "" && !isFalse(set) {
			how[c.Path] = convertsEnds
			if isTrue(set) {
				how[c.Path] |= makesEnds
			}
		}
	}
	if err := l.readAttributes(ctx, how); err != nil {
		return err
	}
	for i := range l.changes {
		c := &l.changes[i]
		if how := how[c.Path]; how > convertsEnds || how == convertsEnds && strings.Contains(sections[c.Path], "\r") {
			if c.Why = cmp.Or(c.Why, converted); c.Kind != Add {
				c.Lines = nil
			}
		}
	}
	for _, name := range written {
		s, e := l.after.seen[name], l.index.entry(name)
		_, seen := l.before.seen[name]
		if !seen && !differ[name] && e != nil && e.mode != modeModule && s.is(modeFile) && uint32(s.size) != e.size && l.after.others[name].why == "" {
			l.changes = append(l.changes, Change{Path: name, Kind: Update, Why: converted})
		}
	}
	return nil
}

// readAttributes adds how git converts the changed files because of their attributes.
func (l *look) readAttributes(ctx context.Context, how map[string]int) error {
	if !l.index.attributes && len(l.attributes) == 0 {
		return nil
	}
	if err := l.setAttributes(""); err != nil {
		return err
	}
	var names []string
	for _, c := range l.changes {
		names = append(names, c.Path)
	}
	out, err := l.git(ctx, call{stdin: zeros(names)}, append([]string{"check-attr", "-z", "--stdin"}, attributes...)...)
	for fields := strings.Split(out, "\x00"); len(fields) >= 3; fields = fields[3:] {
		switch file, name, value := fields[0], fields[1], fields[2]; {
		case value == "unspecified":
		case name == "filter", name == "ident", name == "working-tree-encoding":
			if value != "unset" {
				how[file] |= convertsAll
			}
		case value == "unset":
			how[file] &= convertsAll
		case value == "crlf", strings.EqualFold(l.settings["eol"], "crlf"):
			how[file] |= makesEnds
		default:
			how[file] |= convertsEnds
		}
	}
	return err
}
