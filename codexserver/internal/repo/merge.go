package repo

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
)

// merge fills a plan. It merges three versions of each file: the worktree's first, the
// worktree's current and the caller's.
func (w *Worktree) merge(ctx context.Context, p *Plan, root *os.Root, scratch string, changes []Change) error {
	conflicts := &ConflictError{}
	changes, p.moves = split(changes)
	gone := map[string]bool{}
	for _, c := range changes {
		gone[c.Path] = !c.new.exists()
	}
	var candidates []Change
	size := 0
	for _, c := range changes {
		before, err := read(root, c.Path)
		var place *placeError
		switch {
		case errors.As(err, &place) && place.isFolder && !c.new.exists():
			// Both sides removed the file.
		case errors.As(err, &place):
			conflicts.add(c.Path, place.reason)
			continue
		case err != nil:
			return err
		}
		if size += len(before.data); size > maxPlan {
			return refuse("the changed files together have more than %d MiB", maxPlan>>20)
		}
		if reason, err := blocked(root, c, gone); err != nil || reason != "" {
			if err != nil {
				return err
			}
			conflicts.add(c.Path, reason)
			continue
		}
		candidates = append(candidates, c)
		p.files = append(p.files, &plannedFile{path: c.Path, before: before})
	}
	if err := w.judge(ctx, p, scratch, candidates, conflicts); err != nil {
		return err
	}
	if len(conflicts.Conflicts) > 0 {
		return conflicts
	}
	if err := w.stage(ctx, p, scratch); err != nil {
		return err
	}
	for _, f := range p.files {
		if f.after.isLink && leadsOut(f.path, f.after.data) {
			conflicts.add(f.path, "it becomes a symbolic link out of the tree, or to git's files")
		}
	}
	if len(conflicts.Conflicts) > 0 {
		return conflicts
	}
	return nil
}

// split makes a deletion and an addition of each move. It also returns the moves, the new paths
// by the old ones.
func split(changes []Change) (all []Change, moves map[string]string) {
	moves = map[string]string{}
	for _, c := range changes {
		if c.Kind == Rename {
			moves[c.From] = c.Path
			all = append(all, Change{Path: c.From, old: c.old})
			c.old = entry{mode: modeNone}
		}
		all = append(all, c)
	}
	SortChanges(all)
	return all, moves
}

// blocked returns why the caller's tree cannot have a file of the worktree, or "".
func blocked(root *os.Root, c Change, gone map[string]bool) (string, error) {
	switch {
	case c.old.mode == modeModule || c.new.mode == modeModule:
		return "it is a submodule", nil
	case isGitName(c.Path):
		return "git reserves this name", nil
	}
	if !c.new.exists() {
		return "", nil
	}
	for dir := path.Dir(c.Path); dir != "."; dir = path.Dir(dir) {
		info, err := look(root, dir)
		if err != nil {
			return "", err
		}
		if info != nil && !info.IsDir() && !gone[dir] {
			return shown(dir) + " is not a folder", nil
		}
	}
	return "", nil
}

// judge determines the merged version of each file, and drops files that do not change.
func (w *Worktree) judge(ctx context.Context, p *Plan, scratch string, changes []Change, conflicts *ConflictError) error {
	now, filtered, err := w.caller(ctx, p, scratch)
	if err != nil {
		return err
	}
	var kept []*plannedFile
	for i, f := range p.files {
		c := changes[i]
		if was, differs := now[f.path]; differs {
			f.was = was
		} else {
			f.was = c.old
		}
		if !f.was.exists() {
			f.was = entry{mode: modeNone}
		}
		if reason := filtered[f.path]; reason != "" {
			p.isPart = true
			p.Skipped = append(p.Skipped, Skip{Path: f.path, Reason: filterReason(reason), Size: int64(len(f.before.data))})
			continue
		}
		var reason string
		if f.is, reason, err = w.mergeFile(ctx, scratch, c, f.was); err != nil {
			return err
		}
		switch {
		case reason != "":
			conflicts.add(f.path, reason)
		case f.is != f.was:
			kept = append(kept, f)
		}
	}
	p.files = kept
	return nil
}

// caller returns the plan's files that differ in the caller's tree, as git would store them,
// and the filters that files need.
func (w *Worktree) caller(ctx context.Context, p *Plan, scratch string) (now map[string]entry, filtered map[string]string, err error) {
	c := call{tree: w.record.Root, index: filepath.Join(scratch, "caller")}
	// With the old content in the index, git converts line ends as in the caller's tree.
	if _, err := w.private.git(ctx, c, "read-tree", w.record.Start); err != nil {
		return nil, nil, err
	}
	s := &selection{}
	all := make([]string, 0, len(p.files))
	for _, f := range p.files {
		all = append(all, f.path)
	}
	if filtered, err = w.private.filters(ctx, c, all); err != nil {
		return nil, nil, err
	}
	for _, f := range p.files {
		switch {
		case !f.before.exists():
			s.gone = append(s.gone, f.path)
		case filtered[f.path] == "":
			s.files = append(s.files, f.path)
		}
	}
	if err := w.private.store(ctx, c, s.files, s.gone); err != nil {
		return nil, nil, err
	}
	tree, err := w.private.line(ctx, c, "write-tree", "--missing-ok")
	if err != nil {
		return nil, nil, err
	}
	theirs, err := w.private.diffTrees(ctx, w.record.Start, tree, false, false)
	now = map[string]entry{}
	for _, c := range theirs {
		now[c.Path] = c.new
	}
	return now, filtered, err
}

// mergeFile merges one file. Was is the caller's version. If the file cannot be merged,
// reason says why.
func (w *Worktree) mergeFile(ctx context.Context, scratch string, c Change, was entry) (is entry, reason string, err error) {
	old, mine := c.old, c.new
	same := func(a, b entry) bool { return a.exists() == b.exists() && (!a.exists() || a == b) }
	switch {
	case same(was, old):
		return mine, "", nil
	case same(was, mine):
		return was, "", nil
	case !old.exists():
		return entry{}, "both have added it with different contents", nil
	case !mine.exists():
		return entry{}, "the worktree has deleted it, and the caller has changed it", nil
	case !was.exists():
		return entry{}, "the caller has deleted it, and the worktree has changed it", nil
	case !old.isFile() || !mine.isFile() || !was.isFile():
		return entry{}, "both have changed it, and it is not a regular file in all versions", nil
	}
	is = entry{mode: was.mode, id: was.id}
	if mine.mode != old.mode {
		is.mode = mine.mode
	}
	switch {
	case mine.id == old.id || mine.id == was.id:
		return is, "", nil
	case was.id == old.id:
		is.id = mine.id
		return is, "", nil
	}
	is.id, reason, err = w.mergeLines(ctx, scratch, old.id, mine.id, was.id)
	return is, reason, err
}

func (w *Worktree) mergeLines(ctx context.Context, scratch, old, mine, was string) (id, reason string, err error) {
	c := call{tree: scratch}
	merge := []string{"merge-file", "-p", "-q"}
	for _, version := range []string{was, old, mine} {
		name, err := w.private.line(ctx, c, "unpack-file", version)
		if err != nil {
			return "", "", err
		}
		merge = append(merge, name)
	}
	merged, err := w.private.git(ctx, c, merge...)
	var exit *exec.ExitError
	if errors.As(err, &exit) && ctx.Err() == nil {
		if exit.ExitCode() > 127 || exit.ExitCode() < 0 {
			return "", "both have changed it, and it is not text", nil
		}
		return "", "both have changed the same lines", nil
	}
	if err != nil {
		return "", "", err
	}
	id, err = w.private.line(ctx, call{stdin: merged}, "hash-object", "-w", "--no-filters", "--stdin")
	return id, "", err
}

// stage has git write the merged files to scratch, with the line ends for the caller's
// tree, and reads them.
func (w *Worktree) stage(ctx context.Context, p *Plan, scratch string) error {
	var list strings.Builder
	planned := map[string]*plannedFile{}
	for _, f := range p.files {
		planned[f.path] = f
		if f.is.exists() {
			fmt.Fprintf(&list, "%s %s\t%s\x00", f.is.mode, f.is.id, f.path)
		}
	}
	maps.DeleteFunc(p.moves, func(from, to string) bool { // the caller's tree may have one of them already
		old, new := planned[from], planned[to]
		return old == nil || new == nil || old.is.exists() || new.was.exists()
	})
	index := filepath.Join(scratch, "after")
	if list.Len() > 0 {
		if _, err := w.private.git(ctx, call{index: index, stdin: list.String()}, "update-index", "-z", "--index-info"); err != nil {
			return err
		}
	}
	dir := filepath.Join(scratch, "stage")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	c := call{tree: w.record.Root, index: index}
	if _, err := w.private.git(ctx, c, "checkout-index", "--all", "--quiet", "--prefix="+filepath.ToSlash(dir)+"/"); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	size := 0
	for _, f := range p.files {
		if !f.is.exists() {
			continue
		}
		if f.after, err = read(root, f.path); err != nil {
			return err
		}
		if !f.after.exists() {
			return refuse("git did not write the merged file %s", f.path)
		}
		if size += len(f.after.data); size > maxPlan {
			return refuse("the changed files together have more than %d MiB", maxPlan>>20)
		}
		f.after.perm = permissions(f)
	}
	return nil
}

// permissions returns the new permissions of a file: its old ones, with the right to
// execute as merged.
func permissions(f *plannedFile) os.FileMode {
	switch {
	case f.after.isLink:
		return 0
	case !f.before.isFile && f.is.mode == modeExec:
		return 0o777
	case !f.before.isFile:
		return 0o666
	case f.is.mode == f.was.mode:
		return f.before.perm
	case f.is.mode == modeExec:
		return f.before.perm | f.before.perm&0o444>>2
	}
	return f.before.perm &^ 0o111
}
