package git

import (
	"fmt"
	"sort"
	"strconv"
	"strings"
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
	// Why is why it is not in the diff, or "".
	Why string

	object    string // of git, as it is now
	filtered  bool   // a filter changes how git stores it
	converted bool   // git changes its line ends or its encoding
	encoded   bool   // git changes its encoding, or writes its name into it
}

// SortChanges sorts by path. It does not use package slices, whose functions the compiler
// would repeat for each large type.
func SortChanges(list []Change) {
	sort.SliceStable(list, func(i, j int) bool { return list[i].Path < list[j].Path })
}

// Lines are the lines of a change.
type Lines struct{ Added, Removed int }

// parseChanges parses the output of diff-tree: first the kinds, then the counts.
func parseChanges(out string) ([]Change, error) {
	if out == "" {
		return nil, nil
	}
	fields := strings.Split(strings.TrimSuffix(out, "\x00"), "\x00")
	next := func() string {
		if len(fields) == 0 {
			return ""
		}
		f := fields[0]
		fields = fields[1:]
		return f
	}
	const module = "160000"
	var changes []Change
	at := map[string]int{}
	for len(fields) > 0 {
		head := next()
		if status, isRaw := strings.CutPrefix(head, ":"); isRaw {
			words := strings.Fields(status) // two modes, two objects and a letter
			if len(words) != 5 {
				return nil, fmt.Errorf("git diff-index prints %q", head)
			}
			c := Change{Kind: Update, Path: next(), object: words[3]}
			if words[0] == module || words[1] == module {
				c.Why = otherRepository
			}
			switch words[4][0] {
			case 'A':
				c.Kind = Add
			case 'D':
				c.Kind = Delete
			case 'R':
				c.Kind, c.From, c.Path = Rename, c.Path, next()
			}
			at[c.Path] = len(changes)
			changes = append(changes, c)
			continue
		}
		counts := strings.SplitN(head, "\t", 3)
		if len(counts) < 3 {
			return nil, fmt.Errorf("git diff-index prints %q", head)
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
