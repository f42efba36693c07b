package repo

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ChangeKind is what happened to a file.
type ChangeKind string

// The kinds of a change.
const (
	Add    ChangeKind = "add"
	Update ChangeKind = "update"
	Delete ChangeKind = "delete"
	Rename ChangeKind = "rename" // perhaps with an update
)

// Change is what differs in one file.
type Change struct {
	// Path is relative to the root, with slashes. The path of another repository ends with
	// a slash.
	Path string
	// From is the path before a rename.
	From string
	// Kind is what happened.
	Kind ChangeKind
	// Lines are counted as git does. Nil means that the file is not text, or that a filter
	// changes how git stores it.
	Lines *Lines
	// Last is when the file last changed, or its folder if the file is gone. It is zero if
	// that is not known.
	Last time.Time

	link      bool // a submodule's commit
	special   bool // a pipe, a socket or a device
	filtered  bool // a filter changes how git stores it
	converted bool // git changes its line ends or its encoding
}

// Lines are the lines of a change.
type Lines struct{ Added, Removed int }

// Compare returns the changes since the snapshot was taken, sorted by path. It compares
// contents. It does not matter who wrote them, and what git has recorded.
func (s *Snapshot) Compare(ctx context.Context) ([]Change, error) {
	return s.compare(ctx, true)
}

// compare is Compare, with or without renames.
func (s *Snapshot) compare(ctx context.Context, renames bool) ([]Change, error) {
	tree, now, err := s.read(ctx)
	if err != nil {
		return nil, fmt.Errorf("repo: compare: %w", err)
	}
	s.now, s.later, s.stored = tree, now, nil
	if tree != s.tree {
		if s.stored, err = s.diffTrees(tree, renames); err != nil {
			return nil, fmt.Errorf("repo: compare: %w", err)
		}
	}
	s.stored = s.withoutMarks(s.stored, now)
	changes := merge(slices.Concat(s.stored, s.compareRest(now), s.compareSeen(now)))
	s.others = slices.Clone(changes[len(s.stored):])
	slices.SortFunc(changes, func(a, b Change) int { return cmp.Compare(a.Path, b.Path) })
	return changes, nil
}

// diffTrees compares two trees of the mirror.
func (s *Snapshot) diffTrees(tree string, renames bool) ([]Change, error) {
	out, err := s.mirror.git("", "diff-tree", "-r", "-z", "--raw", "--numstat", findRenames(renames), "--no-ext-diff", "--no-textconv",
		"--ignore-submodules=dirty", s.tree, tree)
	if err != nil {
		return nil, err
	}
	changes, err := parseChanges(out)
	if err != nil {
		return nil, err
	}
	return changes, s.attributes(changes)
}

func findRenames(find bool) string {
	if find {
		return "--find-renames"
	}
	return "--no-renames"
}

// parseChanges parses the output of diff-tree: first the kinds, then the counts.
func parseChanges(out string) ([]Change, error) {
	fields := strings.Split(strings.TrimSuffix(out, "\x00"), "\x00")
	next := func() string {
		if len(fields) == 0 {
			return ""
		}
		f := fields[0]
		fields = fields[1:]
		return f
	}
	var changes []Change
	at := map[string]int{}
	for len(fields) > 0 {
		head := next()
		if status, isRaw := strings.CutPrefix(head, ":"); isRaw {
			link := strings.HasPrefix(status, gitlink) || strings.Contains(status[:min(len(status), 2*len(gitlink)+1)], " "+gitlink)
			status = status[strings.LastIndexByte(status, ' ')+1:]
			c := Change{Kind: Update, Path: next(), link: link}
			switch {
			case strings.HasPrefix(status, "A"):
				c.Kind = Add
			case strings.HasPrefix(status, "D"):
				c.Kind = Delete
			case strings.HasPrefix(status, "R"):
				c.Kind, c.From, c.Path = Rename, c.Path, next()
			}
			at[c.Path] = len(changes)
			changes = append(changes, c)
			continue
		}
		counts := strings.SplitN(head, "\t", 3)
		if len(counts) < 3 {
			return nil, fmt.Errorf("git diff-tree prints %q", head)
		}
		name := counts[2]
		if name == "" { // a rename: both names follow
			next()
			name = next()
		}
		added, err := strconv.Atoi(counts[0])
		removed, err2 := strconv.Atoi(counts[1])
		if i, ok := at[name]; ok && err == nil && err2 == nil {
			changes[i].Lines = &Lines{added, removed}
		}
	}
	return changes, nil
}

// gitlink is the mode of a submodule's commit.
const gitlink = "160000"

// attributes finds out how git changes files when it stores them. It removes the counts of
// files that need a filter, such as those of LFS, because filters do not run.
func (s *Snapshot) attributes(changes []Change) error {
	if len(changes) == 0 {
		return nil
	}
	names := make([]string, len(changes))
	at := map[string]int{}
	for i, c := range changes {
		names[i], at[c.Path] = c.Path, i
	}
	out, err := s.mirror.git(zeros(names), "check-attr", "-z", "--stdin", "filter", "text", "crlf", "eol", "ident", "working-tree-encoding")
	if err != nil {
		return err
	}
	binary := map[int]bool{}
	for fields := strings.Split(out, "\x00"); len(fields) >= 3; fields = fields[3:] {
		i, known := at[fields[0]]
		set := fields[2] != "unspecified" && fields[2] != "unset"
		switch {
		case !known:
		case fields[1] == "filter":
			changes[i].filtered = set
		case (fields[1] == "text" || fields[1] == "crlf") && fields[2] == "unset":
			binary[i] = true
		case set:
			changes[i].converted = true
		}
	}
	for i := range changes {
		c := &changes[i]
		c.converted = (c.converted || s.convert) && !binary[i]
		if c.filtered {
			c.Lines = nil
		}
	}
	return nil
}

// withoutMarks removes the changes of files that were or are missing in the tree.
// [Snapshot.compareRest] returns those.
func (s *Snapshot) withoutMarks(changes []Change, now rest) []Change {
	return slices.DeleteFunc(changes, func(c Change) bool {
		_, before := s.rest.marks[c.Path]
		_, after := now.marks[c.Path]
		return before || after
	})
}

// compareRest returns the changes of files and repositories that are not in trees.
func (s *Snapshot) compareRest(now rest) []Change {
	var changes []Change
	add := func(name string, kind ChangeKind) { changes = append(changes, Change{Path: name, Kind: kind}) }
	for name, before := range s.rest.marks {
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
		if _, ok := s.rest.marks[name]; ok {
			continue
		}
		if now.known[name] {
			add(name, Update)
		} else {
			add(name, Add)
		}
	}
	for dir := range now.nested {
		if !s.rest.nested[dir] {
			add(dir+"/", Add)
		}
	}
	for dir := range s.rest.nested {
		if !now.nested[dir] {
			add(dir+"/", Delete)
		}
	}
	return changes
}
