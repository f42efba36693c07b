package git

import (
	"fmt"
	"os"
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

// parseChanges parses the counts that git diff prints of two folders. Prefix is the length of what is before each name.
func parseChanges(list string, prefix int) (changes []Change, err error) {
	for fields := strings.Split(list, "\x00"); len(fields) >= 3; fields = fields[3:] {
		counts, from, to := strings.Split(fields[0], "\t"), fields[1], fields[2]
		if len(counts) != 3 || len(from) <= prefix && from != os.DevNull || len(to) <= prefix && to != os.DevNull {
			return nil, fmt.Errorf("git diff prints %q", fields[:3])
		}
		c := Change{Kind: Update}
		switch {
		case from == os.DevNull:
			c.Kind, c.Path = Add, to[prefix:]
		case to == os.DevNull:
			c.Kind, c.Path = Delete, from[prefix:]
		case from[prefix:] != to[prefix:]:
			c.Kind, c.From, c.Path = Rename, from[prefix:], to[prefix:]
		default:
			c.Path = to[prefix:]
		}
		added, err := strconv.Atoi(counts[0])
		removed, err2 := strconv.Atoi(counts[1])
		if err == nil && err2 == nil {
			c.Lines = &Lines{added, removed}
		}
		changes = append(changes, c)
	}
	return changes, nil
}
