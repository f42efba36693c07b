package git

import (
	"bytes"
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/internal/safefile"
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
	if len(written) > 0 {
		var tree string
		if tree, err = l.git(ctx, call{}, "write-tree", "--missing-ok"); err != nil {
			return "", err
		}
		l.tree = strings.TrimSpace(tree)
		if err = l.store(ctx, written, &l.after); err == nil {
			err = l.diffIndex(ctx)
		}
		if err != nil {
			return "", err
		}
	}
	others := l.compareOthers()
	l.changes = slices.DeleteFunc(l.changes, func(c Change) bool { return others[c.Path].Kind != "" })
	if err := l.compareEnds(ctx, written); err != nil {
		return "", err
	}
	l.changes = slices.AppendSeq(l.changes, maps.Values(others))
	reason := "outside of the folder"
	if !filepath.IsAbs(l.at) { // the first folder, or one below
		reason = "git could not make the diff"
		diff, err = l.diff(ctx, max)
	}
	for i := range l.changes {
		if filepath.IsAbs(l.at) || err != nil && l.changes[i].Why == "" {
			l.changes[i].Why = reason
		}
	}
	if err != nil {
		diff = ""
	}
	return diff, nil
}

// diffIndex compares the index with the tree before, file by file. Objects may be missing, for
// example in a partial clone: then no lines are counted.
func (l *look) diffIndex(ctx context.Context) error {
	args := []string{"diff-index", "--cached", "-r", "-z", "--raw", "--no-abbrev", "--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty"}
	out, err := l.git(ctx, call{}, slices.Concat(args, []string{l.renames(), "--numstat", l.tree})...)
	if err != nil && ctx.Err() == nil {
		out, err = l.git(ctx, call{}, slices.Concat(args, []string{"--no-renames", l.tree})...)
	}
	if err == nil {
		l.changes, err = parseChanges(out)
	}
	return err
}

// renames returns the option that says whether git looks for renames: only in the first folder, because git
// writes both names of a rename without the path of another.
func (l *look) renames() string {
	if l.at != "" {
		return "--no-renames"
	}
	return "--find-renames"
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
	return s.exists() || !seen && l.index.entries[name] != nil
}

// describe finds out how git changes files when it stores them. It removes the counts of files that
// need a filter, such as those of LFS, because filters do not run.
func (l *look) describe(ctx context.Context) error {
	crlf := l.settings["autocrlf"]
	at := map[string]*Change{}
	for i := range l.changes {
		at[l.changes[i].Path] = &l.changes[i]
		l.changes[i].converted = crlf != "" && !isFalse(crlf)
	}
	if !l.index.attributes && !exists(filepath.Join(l.folder(), "info", "attributes")) {
		return nil
	}
	return l.attributes(ctx, slices.Sorted(maps.Keys(at)), attributes, func(file, name, value string) {
		c, set := at[file], value != "unspecified" && value != "unset"
		switch {
		case name == "filter" && set:
			c.filtered, c.Lines, c.Why = true, nil, "a filter changes how git stores it"
		case name != "text" && name != "crlf" || value != "unset":
			c.converted = c.converted || set && name != "filter"
			c.encoded = c.encoded || set && (name == "ident" || name == "working-tree-encoding")
		default: // it is binary, which counts more than the attributes before
			c.converted = false
		}
	})
}

// attributes are those that change how git stores a file. The last one decides whether it is binary.
var attributes = []string{"filter", "eol", "ident", "working-tree-encoding", "crlf", "text"}

// notRestored is why git does not show a change of line ends.
const notRestored = "git would not restore its bytes, because it converts them"

// maxLossy bounds the files whose line ends or encoding git converts, and that are read.
const maxLossy = 1000

// compareEnds describes the changes, and adds the files that were there before and were written since, of
// which git stores the same although their bytes differ: git converts line ends and encodings.
func (l *look) compareEnds(ctx context.Context, written []string) error {
	differ := map[string]bool{}
	for _, c := range l.changes {
		differ[c.Path], differ[c.From] = true, true
	}
	stored := len(l.changes)
	for _, name := range written {
		s := l.after.seen[name]
		if l.had(name) && s.is(modeFile) && s != l.before.seen[name] && l.after.others[name].why == "" && !differ[name] {
			l.changes = append(l.changes, Change{Path: name, Kind: Update, Why: notRestored})
		}
	}
	if err := l.describe(ctx); err != nil {
		return err
	}
	added, read := l.changes[stored:], 0
	l.changes = l.changes[:stored]
	for _, c := range added {
		if c.converted && !c.filtered && l.hasOtherEnds(c, &read) {
			l.changes = append(l.changes, c)
		}
	}
	return nil
}

// hasOtherEnds reports whether a file has another size. Nobody has the bytes of before. [Before.Gaps]
// names the files of which the size does not tell.
func (l *look) hasOtherEnds(c Change, read *int) bool {
	now, before := l.after.seen[c.Path], l.before.seen[c.Path]
	size, known := before.size, true
	if !before.exists() {
		e := l.index.entries[c.Path]
		if size, known = int64(e.size), e.size != 0; e.changed%int64(time.Second) != 0 && e.changed == now.changed {
			return false
		}
	}
	if known && size != now.size {
		return true
	}
	// Of the same size are the same bytes, if none of them can be part of a line end that git changes.
	if *read++; !c.encoded && known && *read <= maxLossy {
		if data, err := safefile.Read(l.path(c.Path), maxContent); err == nil && !bytes.ContainsRune(data, '\r') {
			return false
		}
	}
	l.after.unread = append(l.after.unread, Gap{c.Path, "git converts its line ends or its encoding, so whether they changed is not known"})
	return false
}
