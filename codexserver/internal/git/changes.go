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
	Path string // relative to the root, with slashes; that of another repository ends with a slash
	From string // the path before a rename
	Kind ChangeKind
	// Lines are counted as git does. Nil means that the file is not text, or that its lines before are not known.
	Lines *Lines
	Why   string // it is not in the diff, or ""
}

// SortChanges sorts by path. Package slices' functions would be repeated for each large type.
func SortChanges(list []Change) {
	sort.SliceStable(list, func(i, j int) bool { return list[i].Path < list[j].Path })
}

// Lines are the lines of a change.
type Lines struct{ Added, Removed int }

// parseChanges parses the output of diff-index: first the kinds, then the counts.
func parseChanges(out string) ([]Change, error) {
	const module = "160000"
	var changes []Change
	at := map[string]int{}
	// Three fields more than there are, for what is cut off.
	for fields := strings.Split(out+"\x00\x00\x00", "\x00"); fields[0] != ""; {
		counts := strings.SplitN(fields[0], "\t", 3)
		words := strings.Fields(fields[0]) // two modes, two objects and a letter
		switch {
		case strings.HasPrefix(fields[0], ":") && len(words) == 5:
			c := Change{Kind: Update, Path: fields[1]}
			switch words[4][0] {
			case 'A':
				c.Kind = Add
			case 'D':
				c.Kind = Delete
			case 'R':
				c.Kind, c.From, c.Path = Rename, fields[1], fields[2]
				fields = fields[1:]
			}
			if words[0] == ":"+module || words[1] == module {
				c.Why = otherRepository
			}
			at[c.Path] = len(changes)
			changes = append(changes, c)
			fields = fields[2:]
		case len(counts) == 3:
			name := counts[2]
			if name == "" { // a rename: both names follow
				name = fields[2]
				fields = fields[2:]
			}
			added, err := strconv.Atoi(counts[0])
			removed, err2 := strconv.Atoi(counts[1])
			if i, ok := at[name]; ok && err == nil && err2 == nil {
				changes[i].Lines = &Lines{added, removed}
			}
			fields = fields[1:]
		default:
			return nil, fmt.Errorf("git diff-index prints %q", fields[0])
		}
	}
	return changes, nil
}
