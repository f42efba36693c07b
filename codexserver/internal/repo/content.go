package repo

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Skip is a file that was left out. It does not change on either side.
type Skip struct {
	// Path is relative to the tree's top, with slashes.
	Path string
	// Reason is why, a phrase without a full stop.
	Reason string
	// Size is the file's size in bytes.
	Size int64
}

// snapshot writes the content of a working tree to our git folder as a tree, and updates
// the index: tracked files, and files that are neither tracked nor ignored.
func (w *Worktree) snapshot(ctx context.Context, dir, index string) (tree string, skipped []Skip, err error) {
	c := call{tree: dir, index: index}
	if err := refuseSpecial(ctx, dir); err != nil {
		return "", nil, err
	}
	tracked, err := w.private.git(ctx, c, "diff-files", "-z", "--name-only", "--no-renames", "--ignore-submodules=all")
	if err != nil {
		return "", nil, err
	}
	others, err := w.private.git(ctx, c, "ls-files", "-z", "--others", "--exclude-standard")
	if err != nil {
		return "", nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", nil, err
	}
	defer root.Close()
	s := &selection{root: root}
	for _, name := range names(tracked) {
		if err := s.add(name, true); err != nil {
			return "", nil, err
		}
	}
	for _, name := range names(others) {
		if err := s.add(name, false); err != nil {
			return "", nil, err
		}
	}
	if err := w.leaveFiltered(ctx, c, s); err != nil {
		return "", nil, err
	}
	if err := w.private.store(ctx, c, s.files, s.gone); err != nil {
		return "", nil, err
	}
	tree, err = w.private.line(ctx, c, "write-tree", "--missing-ok")
	return tree, s.skipped, err
}

func names(out string) []string {
	list := strings.FieldsFunc(out, func(r rune) bool { return r == 0 })
	slices.Sort(list)
	return slices.Compact(list)
}

// selection sorts changed names into files to read, deleted files and skipped files.
type selection struct {
	root        *os.Root
	files, gone []string
	sizes       map[string]int64
	skipped     []Skip
	all         int64
}

func (s *selection) skip(name, reason string) {
	s.skipped = append(s.skipped, Skip{Path: name, Reason: reason, Size: s.sizes[name]})
}

func (s *selection) add(name string, isTracked bool) error {
	if len(s.files)+len(s.gone)+len(s.skipped) >= maxNames {
		return refuse("more than %d files have changed", maxNames)
	}
	if before, ok := strings.CutSuffix(name, "/"); ok {
		s.skip(before, "it is a repository of its own")
		return nil
	}
	if isGitName(name) {
		s.skip(name, "git reserves this name")
		return nil
	}
	info, err := look(s.root, name)
	switch {
	case err != nil:
		return err
	case info == nil || info.IsDir():
		if isTracked {
			s.gone = append(s.gone, name)
		}
		return nil
	case !info.Mode().IsRegular() && info.Mode()&os.ModeSymlink == 0:
		s.skip(name, "it is a special file")
		return nil
	}
	if s.sizes == nil {
		s.sizes = map[string]int64{}
	}
	s.sizes[name] = info.Size()
	if info.Size() > maxFile {
		s.skip(name, fmt.Sprintf("it has more than %d MiB", maxFile>>20))
		return nil
	}
	if s.all += info.Size(); s.all > maxAll {
		return refuse("the changed files together have more than %d MiB", maxAll>>20)
	}
	s.files = append(s.files, name)
	return nil
}

// leaveFiltered skips the files that need a filter.
func (w *Worktree) leaveFiltered(ctx context.Context, c call, s *selection) error {
	filters, err := w.private.filters(ctx, c, s.files)
	if err != nil {
		return err
	}
	s.files = slices.DeleteFunc(s.files, func(name string) bool {
		filter, ok := filters[name]
		if ok {
			s.skip(name, filterReason(filter))
		}
		return ok
	})
	return nil
}

func filterReason(filter string) string {
	return fmt.Sprintf("it needs the filter %q, which is not run", filter)
}

// contents writes the worktree's content as a tree, and compares it with the first content. It
// keeps the index, so that the next call reads only files that have changed since.
func (w *Worktree) contents(ctx context.Context, scratch string, count bool) (tree string, changes []Change, skipped []Skip, err error) {
	index := filepath.Join(scratch, "index")
	if err := copyFile(scratch, w.folder(), "index", maxIndex); err != nil {
		return "", nil, nil, err
	}
	if tree, skipped, err = w.snapshot(ctx, w.record.Path, index); err != nil {
		return "", nil, nil, err
	}
	if changes, err = w.private.diffTrees(ctx, w.record.Start, tree, true, count); err != nil {
		return "", nil, nil, err
	}
	for _, c := range changes {
		if c.new.mode == modeModule {
			return "", nil, nil, refuse("%s has become a repository of its own", c.Path)
		}
	}
	return tree, changes, skipped, os.Rename(index, w.index())
}
