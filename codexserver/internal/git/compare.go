package git

import (
	"bytes"
	"context"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/internal/safefile"
)

// compare returns the changes since the look, not sorted.
func (l *look) compare(ctx context.Context) ([]Change, error) {
	now, err := l.see(ctx, l.before.seen)
	if err != nil {
		return nil, err
	}
	if err := l.storeNew(ctx, &now); err != nil {
		return nil, err
	}
	candidates := l.touched(&now)
	l.found.after = now
	if l.found.tree != "" {
		if err := l.diffIndexes(ctx); err != nil {
			return nil, err
		}
	}
	if err := l.describe(ctx, candidates); err != nil {
		return nil, err
	}
	l.found.stored = slices.DeleteFunc(l.found.stored, func(c Change) bool { return l.before.marks[c.Path] || now.marks[c.Path] })
	changes := merge(slices.Concat(l.found.stored, l.compareRest(), l.compareSeen(), l.compareEnds(candidates)))
	l.found.others = slices.Clone(changes[len(l.found.stored):])
	return changes, nil
}

// storeNew makes the index after from the files that were written since the look. Without one there
// is no tree to compare.
func (l *look) storeNew(ctx context.Context, now *content) (err error) {
	var names []string
	for name, s := range now.seen {
		_, module := now.modules[name] // whose commit may change when its folder does not
		if before, known := l.before.seen[name]; known && s == before && !module && (!s.exists() || !l.isRecent(s)) {
			if l.before.marks[name] {
				now.marks[name] = true
			}
			continue
		}
		names = append(names, name)
	}
	l.found.stored, l.found.tree = nil, ""
	if len(names) == 0 {
		return nil
	}
	before := firstIndex
	if len(l.before.seen) > 0 {
		before = beforeIndex
	}
	if err = l.store(ctx, afterIndex, before, names, now); err == nil {
		l.found.tree, err = l.git(ctx, call{index: before}, "write-tree", "--missing-ok")
		l.found.tree = strings.TrimSpace(l.found.tree)
	}
	return err
}

// diffIndexes compares the index after with the tree before, file by file. Objects may be missing, for
// example in a partial clone: then no lines are counted.
func (l *look) diffIndexes(ctx context.Context) error {
	args := []string{"diff-index", "--cached", "-r", "-z", "--raw", "--no-abbrev", "--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty"}
	out, err := l.git(ctx, call{index: afterIndex}, slices.Concat(args, []string{l.renames(), "--numstat", l.found.tree})...)
	if err != nil && ctx.Err() == nil {
		out, err = l.git(ctx, call{index: afterIndex}, slices.Concat(args, []string{"--no-renames", l.found.tree})...)
	}
	if err == nil {
		l.found.stored, err = parseChanges(out)
	}
	return err
}

// renames returns the option that says whether git looks for renames: not in a part of another folder.
func (l *look) renames() string {
	if l.part {
		return "--no-renames"
	}
	return "--find-renames"
}

// touched returns the files of the first index that were written since the look, as changes.
func (l *look) touched(now *content) (list []Change) {
	for name, s := range now.seen {
		before := l.before.seen[name]
		if l.entry(name) == nil && !before.exists() || !s.mode.IsRegular() || !s.exists() || !l.isRecent(s) || before == s || now.marks[name] {
			continue
		}
		list = append(list, Change{Path: name, Kind: Update})
	}
	SortChanges(list)
	return list
}

// describe finds out how git changes files when it stores them: those of the diff, and more. It
// removes the counts of files that need a filter, such as those of LFS, because filters do not run.
func (l *look) describe(ctx context.Context, more []Change) error {
	at := map[string][]*Change{}
	var names []string
	for _, list := range [][]Change{l.found.stored, more} {
		for i := range list {
			name := list[i].Path
			if at[name] == nil {
				names = append(names, name)
			}
			at[name] = append(at[name], &list[i])
		}
	}
	binary := map[string]bool{}
	if !l.hasAttributes() {
		names = nil
	}
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
				c.Lines = nil
			}
		}
	}
	return err
}

// hasAttributes reports whether there may be a file that gives attributes to others.
func (l *look) hasAttributes() bool {
	gives := func(name string) bool { return strings.EqualFold(path.Base(name), ".gitattributes") }
	for _, r := range []*content{&l.before, &l.found.after} {
		if slices.ContainsFunc(r.ignored, gives) {
			return true
		}
		for name := range r.seen {
			if gives(name) {
				return true
			}
		}
	}
	if exists(filepath.Join(l.folder(), "info", "attributes")) {
		return true
	}
	return slices.ContainsFunc(l.index.entries, func(e entry) bool { return gives(e.name) })
}

// maxLossy bounds the files whose line ends or encoding git converts, and that are read.
const maxLossy = 1000

// compareEnds returns the candidates of which git stores the same as before, although their bytes
// differ: git converts line ends and encodings. It does not have the bytes of before, so it
// compares sizes. [Before.Gaps] names the files of which that does not tell.
func (l *look) compareEnds(candidates []Change) (changes []Change) {
	l.found.unsure = nil
	differ := map[string]bool{}
	for _, c := range l.found.stored {
		differ[c.Path], differ[c.From] = true, true
	}
	candidates = slices.DeleteFunc(candidates, func(c Change) bool { return differ[c.Path] || !c.converted || c.filtered })
	read := 0
	for _, c := range candidates {
		now, size, known := l.found.after.seen[c.Path], int64(0), true
		if before := l.before.seen[c.Path]; before.exists() {
			size = before.size
		} else {
			e := l.entry(c.Path)
			if size, known = int64(e.size), e.size != 0; e.changed%int64(time.Second) != 0 && e.changed == now.changed {
				continue
			}
		}
		if known && size != now.size {
			changes = append(changes, c)
			continue
		}
		// Of the same size are the same bytes, if none of them can be part of a line end that
		// git changes.
		if read++; !c.encoded && known && read <= maxLossy {
			if data, err := safefile.Read(l.path(c.Path), maxContent); err == nil && !bytes.ContainsRune(data, '\r') {
				continue
			}
		}
		l.found.unsure = append(l.found.unsure, c.Path)
	}
	return changes
}

// compareRest returns the changes of files and repositories that are not in trees.
func (l *look) compareRest() []Change {
	var changes []Change
	add := func(name string, kind ChangeKind) { changes = append(changes, Change{Path: name, Kind: kind}) }
	after := &l.found.after
	for name := range l.before.marks {
		_, err := os.Lstat(l.path(name))
		switch {
		case after.marks[name] && l.before.seen[name] == after.seen[name]:
		case err != nil:
			add(name, Delete)
		default:
			add(name, Update)
		}
	}
	for name := range after.marks {
		before, seen := l.before.seen[name]
		switch {
		case l.before.marks[name]:
		case before.exists() || !seen && l.entry(name) != nil:
			add(name, Update)
		default:
			add(name, Add)
		}
	}
	for dir := range l.found.after.nested {
		if !l.before.nested[dir] {
			add(dir+"/", Add)
		}
	}
	for dir := range l.before.nested {
		if !l.found.after.nested[dir] {
			add(dir+"/", Delete)
		}
	}
	return changes
}

// compareSeen returns the changes of special files, and of submodules that were checked
// out or removed.
func (l *look) compareSeen() []Change {
	var changes []Change
	for name, kind := range l.found.after.special {
		if before, ok := l.before.special[name]; !ok {
			changes = append(changes, Change{Path: name, Kind: Add, special: true})
		} else if before != kind {
			changes = append(changes, Change{Path: name, Kind: Update, special: true})
		}
	}
	for name := range l.before.special {
		if _, ok := l.found.after.special[name]; !ok {
			changes = append(changes, Change{Path: name, Kind: Delete, special: true})
		}
	}
	for name, after := range l.found.after.modules {
		if before := l.before.modules[name]; before != after {
			kind := Delete
			if after {
				kind = Add
			}
			changes = append(changes, Change{Path: name + "/", Kind: kind})
		}
	}
	return changes
}

// merge makes one change of the changes of a file that a special file replaced, or the
// reverse. The first change of a path keeps its place.
func merge(changes []Change) []Change {
	at := map[string]int{}
	var out []Change
	for _, c := range changes {
		i, twice := at[c.Path]
		if !twice {
			at[c.Path] = len(out)
			out = append(out, c)
		} else if c.special || out[i].special {
			out[i] = Change{Path: c.Path, Kind: Update, special: true}
		}
	}
	return out
}
