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
		switch same := known && s == before; {
		case same && !s.exists():
		case same && !s.mode.IsDir() && !l.isRecent(s): // the commit of a submodule may change when its folder does not
			if o, ok := l.before.others[name]; ok {
				l.after.others[name] = o
			}
		default:
			written = append(written, name)
		}
	}
	if len(written) > 0 {
		var tree string
		if tree, err = l.git(ctx, call{}, "write-tree", "--missing-ok"); err != nil {
			return "", err
		}
		l.before.tree = strings.TrimSpace(tree)
		if err = l.store(ctx, written, &l.after); err == nil {
			err = l.diffIndex(ctx)
		}
		if err != nil {
			return "", err
		}
	}
	others, touched := l.compareOthers(), l.touched(written)
	l.changes = slices.DeleteFunc(l.changes, func(c Change) bool { return others[c.Path].Kind != "" })
	if err := l.describe(ctx, l.changes, touched); err != nil {
		return "", err
	}
	l.compareEnds(touched)
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
	out, err := l.git(ctx, call{}, slices.Concat(args, []string{l.renames(), "--numstat", l.before.tree})...)
	if err != nil && ctx.Err() == nil {
		out, err = l.git(ctx, call{}, slices.Concat(args, []string{"--no-renames", l.before.tree})...)
	}
	if err == nil {
		l.changes, err = parseChanges(out)
	}
	return err
}

// renames returns the option that says whether git looks for renames: only in the first folder.
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
		case after.why == "" && (isFolder || !now.exists() || now.mode.IsDir()):
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

// touched returns the files that were there before and were written since the look, as changes.
func (l *look) touched(written []string) (list []Change) {
	for _, name := range written {
		s := l.after.seen[name]
		if l.had(name) && s.exists() && s.mode.IsRegular() && s != l.before.seen[name] && l.after.others[name].why == "" {
			list = append(list, Change{Path: name, Kind: Update, Why: notRestored})
		}
	}
	return list
}

// describe finds out how git changes files when it stores them. It removes the counts of files that
// need a filter, such as those of LFS, because filters do not run.
func (l *look) describe(ctx context.Context, lists ...[]Change) error {
	at := map[string][]*Change{}
	for _, list := range lists {
		for i := range list {
			at[list[i].Path] = append(at[list[i].Path], &list[i])
		}
	}
	var names []string
	if l.index.attributes || exists(filepath.Join(l.folder(), "info", "attributes")) {
		names = slices.Sorted(maps.Keys(at))
	}
	binary := map[string]bool{}
	err := l.attributes(ctx, names, []string{"filter", "text", "crlf", "eol", "ident", "working-tree-encoding"}, func(file, name, value string) {
		set := value != "unspecified" && value != "unset"
		for _, c := range at[file] {
			switch {
			case name == "filter":
				c.filtered = set
			case (name == "text" || name == "crlf") && value == "unset":
				binary[file] = true
			case set:
				c.converted = true
				c.encoded = c.encoded || name == "ident" || name == "working-tree-encoding"
			}
		}
	})
	crlf := l.settings["autocrlf"]
	converts := crlf != "" && !isFalse(crlf)
	for name, list := range at {
		for _, c := range list {
			c.converted = (c.converted || converts) && !binary[name]
			if c.filtered {
				c.Lines, c.Why = nil, "a filter changes how git stores it"
			}
		}
	}
	return err
}

// notRestored is why git does not show a change of line ends.
const notRestored = "git would not restore its bytes, because it converts them"

// maxLossy bounds the files whose line ends or encoding git converts, and that are read.
const maxLossy = 1000

// compareEnds adds the touched files of which git stores the same as before, although their bytes
// differ: git converts line ends and encodings. It does not have the bytes of before, so this
// compares sizes. [Before.Gaps] names the files of which that does not tell.
func (l *look) compareEnds(touched []Change) {
	differ := map[string]bool{}
	for _, c := range l.changes {
		differ[c.Path], differ[c.From] = true, true
	}
	read := 0
	for _, c := range touched {
		if differ[c.Path] || !c.converted || c.filtered {
			continue
		}
		now, before := l.after.seen[c.Path], l.before.seen[c.Path]
		size, known := before.size, true
		if !before.exists() {
			e := l.index.entries[c.Path]
			if size, known = int64(e.size), e.size != 0; e.changed%int64(time.Second) != 0 && e.changed == now.changed {
				continue
			}
		}
		if known && size != now.size {
			l.changes = append(l.changes, c)
			continue
		}
		// Of the same size are the same bytes, if none of them can be part of a line end that
		// git changes.
		if read++; !c.encoded && known && read <= maxLossy {
			if data, err := safefile.Read(l.path(c.Path), maxContent); err == nil && !bytes.ContainsRune(data, '\r') {
				continue
			}
		}
		l.after.unread = append(l.after.unread, Gap{c.Path, "git converts its line ends or its encoding, so whether they changed is not known"})
	}
}
