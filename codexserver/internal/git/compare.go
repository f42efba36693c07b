package git

import (
	"context"
	"crypto/rand"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/internal/safefile"
)

// compare finds the changes since the look, and returns at most max bytes of their diff.
func (l *look) compare(ctx context.Context, max int) (diff string, err error) {
	touched, err := l.touched(ctx)
	if err == nil {
		err = l.see(ctx, &l.after)
	}
	for name, before := range l.before.seen { // git does not see a file that was written twice in a second and set back
		now := l.now(name)
		now.known = before.known
		if _, seen := l.after.seen[name]; err == nil && !seen && now != before {
			now.known = true
			l.after.seen[name] = now
		}
	}
	if err == nil && len(l.after.seen) > 0 {
		l.before.tree, err = l.call(ctx, call{}, "write-tree", "--missing-ok")
		l.before.tree = strings.TrimSpace(l.before.tree)
		if err == nil {
			err = l.store(ctx, &l.after)
		}
		if err == nil {
			err = l.diffIndex(ctx)
		}
	}
	if err != nil {
		return "", err
	}
	others := l.compareOthers()
	l.changes = slices.DeleteFunc(l.changes, func(c Change) bool { return others[c.Path].Kind != "" })
	if err := l.compareBytes(ctx, touched); err != nil {
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

// touched returns the files of the index whose times have changed since the look, if git may change files when
// it stores them: what it stores may then be the same although their bytes differ.
func (l *look) touched(ctx context.Context) ([]Change, error) {
	if !l.before.converts {
		return nil, nil
	}
	out, err := l.call(ctx, call{}, "diff-files", "-z", "--raw", "--no-abbrev", "--no-renames", "--ignore-submodules=dirty")
	if err != nil {
		return nil, err
	}
	changes, err := parseChanges(out)
	return slices.DeleteFunc(changes, func(c Change) bool {
		at := l.now(c.Path).changed
		return at != 0 && at < l.before.begin.Add(-coarse).UnixNano()
	}), err
}

// diffIndex compares the index with the tree before, file by file. Objects may be missing, for
// example in a partial clone: then no lines are counted.
func (l *look) diffIndex(ctx context.Context) error {
	args := []string{"diff-index", "--cached", "-r", "-z", "--raw", "--no-abbrev", "--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty"}
	out, err := l.call(ctx, call{}, slices.Concat(args, []string{l.renames(), "--numstat", l.before.tree})...)
	if err != nil && ctx.Err() == nil {
		out, err = l.call(ctx, call{}, slices.Concat(args, []string{"--no-renames", l.before.tree})...)
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
		case before.why == "" && (isFolder || !l.after.seen[name].known):
			c.Kind = Add
		case after.why == "" && (isFolder || !now.exists || now.mode.IsDir()):
			c.Kind = Delete
		}
		changes[name] = c
	}
	return changes
}

// notRestored is why git does not show a change of line ends.
const notRestored = "git would not restore its bytes, because it converts them"

// maxLossy bounds the files whose line ends or encoding git converts, and that are read.
const maxLossy = 1000

// conversions are the attributes that change how git stores a file.
var conversions = []string{"filter", "eol", "ident", "working-tree-encoding", "crlf", "text"}

// compareBytes adds the files of which git stores the same although their bytes differ, because it converts
// line ends and encodings: those of another size. It gives a reason to all changes that git would not write as
// they are now, and names the touched files of the same size of which nobody knows the bytes of before. It removes
// the counts of files that need a filter, such as those of LFS, because filters do not run.
func (l *look) compareBytes(ctx context.Context, touched []Change) error {
	at := map[string]bool{}
	for _, c := range l.changes {
		at[c.Path], at[c.From] = true, true
	}
	for name := range l.after.others {
		at[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(l.after.seen)) {
		s, before := l.after.seen[name], l.before.seen[name]
		if l.before.converts && s.known && s.exists && s.mode.IsRegular() && !at[name] && !(before.exists && s.size == before.size) {
			at[name] = true
			l.changes = append(l.changes, Change{Path: name, Kind: Update, Why: notRestored})
		}
	}
	stored := len(l.changes)
	l.changes = append(l.changes, slices.DeleteFunc(touched, func(c Change) bool { return at[c.Path] || c.Kind != Update || c.Why != "" })...)
	err := l.describe(ctx)
	if err == nil {
		err = l.restore(ctx)
	}
	for _, c := range l.changes[stored:] {
		if c.Why == notRestored || c.encoded {
			l.after.unread = append(l.after.unread, Gap{c.Path, "git converts its line ends or its encoding, so whether they changed is not known"})
		}
	}
	l.changes = l.changes[:stored]
	return err
}

// describe finds out how git changes files when it stores them.
func (l *look) describe(ctx context.Context) error {
	if !l.before.converts || len(l.changes) == 0 {
		return nil
	}
	crlf := l.settings["autocrlf"]
	at := map[string]*Change{}
	for i := range l.changes {
		at[l.changes[i].Path] = &l.changes[i]
		l.changes[i].converted = crlf != "" && !isFalse(crlf)
	}
	out, err := l.call(ctx, call{stdin: zeros(slices.Sorted(maps.Keys(at)))}, append([]string{"check-attr", "-z", "--stdin"}, conversions...)...)
	for fields := strings.Split(out, "\x00"); len(fields) > 3; fields = fields[3:] {
		switch c, name := at[fields[0]], fields[1]; {
		case fields[2] == "unspecified" || fields[2] == "unset":
		case name == "filter":
			c.filtered, c.Lines, c.Why = true, nil, "a filter changes how git stores it"
		default:
			c.converted = true
			c.encoded = c.encoded || name == "ident" || name == "working-tree-encoding"
		}
	}
	return err
}

// restore gives a reason to the changes of files that git would not write as they are now, line ends and
// encoding included. One command of git writes them all.
func (l *look) restore(ctx context.Context) error {
	var list []*Change
	var input strings.Builder
	for i := range l.changes {
		c := &l.changes[i]
		if c.Why == "" && c.converted && c.Kind != Delete && l.now(c.Path).mode.IsRegular() {
			c.Why = notRestored
			if len(list) < maxLossy && !strings.Contains(c.Path, "\n") {
				list = append(list, c)
				input.WriteString(c.object + " " + c.Path + "\n")
			}
		}
	}
	if len(list) == 0 {
		return nil
	}
	mark := rand.Text() // git says the size of what it has stored, not of what it writes
	out, err := l.call(ctx, call{stdin: input.String(), cut: maxOutput}, "cat-file", "--batch="+mark, "--filters")
	parts := strings.Split("\n"+out+mark+"\n", "\n"+mark+"\n")[1:]
	if err != nil || len(parts) != len(list)+1 { // there is too much
		return err
	}
	for i, c := range list {
		if data, err := safefile.Read(l.path(c.Path), maxContent); err == nil && string(data) == parts[i] {
			c.Why = ""
		}
	}
	return nil
}
