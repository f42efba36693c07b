package repo

import (
	"context"
	"errors"
	"path/filepath"
	"strconv"
	"strings"
)

// Modes of files in git.
const (
	modeNone   = "000000"
	modeFile   = "100644"
	modeExec   = "100755"
	modeLink   = "120000"
	modeModule = "160000"
)

// entry is a file of a tree.
type entry struct{ mode, id string }

func (e entry) exists() bool { return e.mode != modeNone && e.mode != "" }
func (e entry) isFile() bool { return e.mode == modeFile || e.mode == modeExec }

// treeChange is a difference between two trees.
type treeChange struct {
	path, to      string // to is set for a move
	before, after entry
}

// changes compares two trees, file by file.
func (w *Worktree) changes(ctx context.Context, from, to string, moves bool) ([]treeChange, error) {
	out, err := w.git(ctx, call{}, "diff-tree", "-r", "-z", "--raw", "--no-abbrev", renames(moves), from, to)
	if err != nil {
		return nil, err
	}
	var all []treeChange
	for out != "" {
		var head, path string
		head, out, _ = strings.Cut(out, "\x00")
		path, out, _ = strings.Cut(out, "\x00")
		fields := strings.Fields(strings.TrimPrefix(head, ":"))
		if len(fields) != 5 {
			return nil, errors.New("worktree: the output of git diff-tree has an unknown format")
		}
		c := treeChange{path: path, before: entry{fields[0], fields[2]}, after: entry{fields[1], fields[3]}}
		if kind := fields[4][0]; kind == 'R' || kind == 'C' {
			c.to, out, _ = strings.Cut(out, "\x00")
		}
		all = append(all, c)
	}
	return all, nil
}

func renames(find bool) string {
	if find {
		return "--find-renames"
	}
	return "--no-renames"
}

// lineCount is how many lines a file gained and lost.
type lineCount struct {
	added, removed int
	isBinary       bool
}

// counts returns the lines of each changed file of two trees, by its new path.
func (w *Worktree) counts(ctx context.Context, from, to string) (map[string]lineCount, error) {
	out, err := w.git(ctx, call{}, "diff-tree", "-r", "-z", "--numstat", "--find-renames", "--no-ext-diff", "--no-textconv", from, to)
	if err != nil {
		return nil, err
	}
	found := map[string]lineCount{}
	for out != "" {
		var head string
		head, out, _ = strings.Cut(out, "\x00")
		fields := strings.SplitN(head, "\t", 3)
		if len(fields) != 3 {
			return nil, errors.New("worktree: the output of git diff-tree has an unknown format")
		}
		path := fields[2]
		if path == "" { // a move: both names follow
			_, out, _ = strings.Cut(out, "\x00")
			path, out, _ = strings.Cut(out, "\x00")
		}
		var n lineCount
		n.isBinary = fields[0] == "-"
		n.added, _ = strconv.Atoi(fields[0])
		n.removed, _ = strconv.Atoi(fields[1])
		found[path] = n
	}
	return found, nil
}

// writeIndex makes an index of some files and returns its tree.
func (w *Worktree) writeIndex(ctx context.Context, index string, files map[string]entry) (string, error) {
	c := call{index: index}
	if _, err := w.git(ctx, c, "read-tree", "--empty"); err != nil {
		return "", err
	}
	var text strings.Builder
	for path, e := range files {
		if e.exists() {
			text.WriteString(e.mode + " " + e.id + "\t" + path + "\x00")
		}
	}
	c.stdin = text.String()
	if c.stdin != "" {
		if _, err := w.git(ctx, c, "update-index", "-z", "--index-info"); err != nil {
			return "", err
		}
	}
	return w.line(ctx, c, "write-tree", "--missing-ok")
}

func copyIndex(to, from string) error {
	return CopyFile(filepath.Dir(to), filepath.Dir(from), filepath.Base(from), 1<<30)
}
