package repo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/internal/patch"
)

// Plan is the effect of a worktree's changes on the caller's current tree.
type Plan struct {
	worktree *Worktree
	info     fs.FileInfo // of the caller's tree
	tree     string      // the worktree's content
	files    []*plannedFile
	changed  []string          // the files that the worktree has changed, also those that the tree has
	moves    map[string]string // new paths by old paths
	isPart   bool              // some of the worktree's changes are left out
	// Skipped are the files that were left out.
	Skipped []Skip

	written int    // how many files Apply has written or removed
	step    func() // for tests
}

// plannedFile is one file of the caller's tree before and after.
type plannedFile struct {
	path          string
	before, after file
	was, is       entry // in git's form
}

// Conflict is a file that cannot be merged.
type Conflict struct {
	// Path is relative to the tree's top, with slashes.
	Path string
	// Reason is why, a phrase without a full stop.
	Reason string
}

// ConflictError reports that a worktree's changes cannot be merged with the caller's tree.
type ConflictError struct {
	// Conflicts are the files, by path; More is how many others there are.
	Conflicts []Conflict
	More      int
}

// Error implements error.
func (e *ConflictError) Error() string {
	first := e.Conflicts[0]
	return fmt.Sprintf("worktree: %d files cannot be merged; %s: %s", len(e.Conflicts)+e.More, shown(first.Path), first.Reason)
}

func (e *ConflictError) add(path, reason string) {
	if len(e.Conflicts) >= maxListed {
		e.More++
		return
	}
	e.Conflicts = append(e.Conflicts, Conflict{path, reason})
}

// ChangedError reports that a file was changed after the plan was made.
type ChangedError struct {
	// Path is the absolute path.
	Path string
}

// Error implements error.
func (e *ChangedError) Error() string {
	return shown(e.Path) + " was changed after the changes were shown; request the changes again"
}

// maxPlan is how many bytes all files of a plan may have together.
const maxPlan = 256 << 20

// Plan merges the worktree's changes with the caller's tree, without writing to it. The
// error is a [*ConflictError] if a file cannot be merged.
func (w *Worktree) Plan(ctx context.Context) (*Plan, error) {
	ctx, scratch, end, err := w.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	unlock, err := w.store.lockTree(ctx, w.record.Root)
	if err != nil {
		return nil, err
	}
	defer unlock()
	root, err := os.OpenRoot(w.record.Root)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	p := &Plan{worktree: w, step: func() {}}
	if p.info, err = root.Stat("."); err != nil {
		return nil, err
	}
	var changes []Change
	if p.tree, changes, p.Skipped, err = w.contents(ctx, scratch, false); err != nil {
		return nil, err
	}
	for _, c := range changes {
		p.changed = append(p.changed, c.Path)
	}
	if err := w.merge(ctx, p, root, scratch, changes); err != nil {
		return nil, err
	}
	return p, p.unchanged(root)
}

// unchanged fails with a [*ChangedError] if a file of the caller's tree was changed.
func (p *Plan) unchanged(root *os.Root) error {
	for _, f := range p.files {
		now, err := read(root, f.path)
		var place *placeError
		if errors.As(err, &place) || err == nil && now != f.before {
			return &ChangedError{Path: p.absolute(f.path)}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *Plan) absolute(name string) string {
	return filepath.Join(p.worktree.record.Root, filepath.FromSlash(name))
}

// Len returns the number of files that change.
func (p *Plan) Len() int { return len(p.files) }

// Protected reports whether the plan changes files that other programs run or trust, see
// [patch.Plan.Protected].
func (p *Plan) Protected() bool {
	paths := make([]string, len(p.files))
	for i, f := range p.files {
		paths[i] = p.absolute(f.path)
	}
	return patch.AreProtected(paths, []string{p.worktree.record.Root})
}

// Notes returns sentences about changes that [Plan.Changes] cannot show: symbolic links,
// executable files, and files that are left out.
func (p *Plan) Notes() []string {
	var notes []string
	for _, f := range p.files {
		name := shown(f.path)
		switch {
		case f.after.isLink:
			notes = append(notes, fmt.Sprintf("%s becomes a symbolic link to %q.", name, f.after.data))
		case f.is.mode == modeExec && f.was.mode != modeExec:
			notes = append(notes, name+" becomes executable.")
		case f.was.mode == modeExec && f.is.mode == modeFile:
			notes = append(notes, name+" is no longer executable.")
		}
	}
	for _, skip := range p.Skipped {
		notes = append(notes, fmt.Sprintf("%s is left out: %s.", shown(skip.Path), skip.Reason))
	}
	return notes
}

// leadsOut reports whether a symbolic link at a name leads out of its tree, or to
// git's files in it.
func leadsOut(name, to string) bool {
	to = filepath.ToSlash(to)
	if to == "" || path.IsAbs(to) || filepath.IsAbs(to) || filepath.VolumeName(to) != "" || strings.Contains(to, `\`) {
		return true
	}
	// A cleaned path may differ if it leads through another link, so check each step.
	at := path.Dir(name)
	for part := range strings.SplitSeq(to, "/") {
		at = path.Join(at, part)
		if at == ".." || strings.HasPrefix(at, "../") {
			return true
		}
	}
	return isGitName(at)
}
