package worktree

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/internal/git"
)

// maxCommits bounds a list of commits.
const maxCommits = 50

// LossError says what [Worktree.Discard] would lose.
type LossError struct {
	// Token discards the worktree as it is now.
	Token string
	// Status is what it has, nil when that cannot be found out.
	Status *Status
	// Commits are those that no branch has, by name and subject, the newest first.
	Commits []string
	// Unknown says why it cannot be found out, "" when it can.
	Unknown string
}

// Error implements error.
func (e *LossError) Error() string {
	if e.Unknown != "" {
		return "worktree: what would be lost cannot be found out: " + e.Unknown
	}
	return fmt.Sprintf("worktree: work would be lost: %d changed files, %d files that were left out, %d commits",
		len(e.Status.Files)+e.Status.More, len(e.Status.Skipped), len(e.Commits))
}

// Discard removes the worktree. Where work would be lost that was neither applied
// nor put on a branch, it removes nothing and returns a [*LossError], whose token
// removes it, unless something has changed since. Ignored files do not count.
func (w *Worktree) Discard(ctx context.Context, token string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	unlock, err := w.store.lock(ctx, w.record.ID)
	if err != nil {
		return err
	}
	defer unlock()
	loss, err := w.loss(ctx)
	if err != nil {
		return err
	}
	if loss != nil && loss.Token != token {
		return loss
	}
	if err := w.update(func(r *record) { r.Phase = phaseDiscard }); err != nil {
		return err
	}
	return w.remove()
}

// loss returns what would be lost, nil for nothing.
func (w *Worktree) loss(ctx context.Context) (*LossError, error) {
	found := &LossError{}
	err := w.check(ctx)
	switch {
	case !exists(w.store.recordPath(w.record.ID)):
		return nil, err
	case w.record.Phase != phaseUse: // an earlier call was asked to
		return nil, nil
	}
	var tree string
	if err == nil {
		tree, err = w.measure(ctx, found)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		found.Status, found.Unknown = nil, err.Error()
	} else if w.isSaved(tree) && len(found.Status.Skipped) == 0 && len(found.Commits) == 0 {
		return nil, nil
	}
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%s\n%q\n%q\n", w.record.ID, tree, found.Commits, found.Unknown)
	if found.Status != nil {
		for _, skip := range found.Status.Skipped {
			when := ""
			if info, err := os.Lstat(filepath.Join(w.record.Path, filepath.FromSlash(skip.Path))); err == nil {
				when = info.ModTime().String()
			}
			fmt.Fprintf(h, "%q %d %s\n", skip.Path, skip.Size, when)
		}
	}
	found.Token = fmt.Sprintf("%x", h.Sum(nil)[:8])
	return found, nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// measure fills in what the worktree has.
func (w *Worktree) measure(ctx context.Context, found *LossError) (tree string, err error) {
	scratch, remove, err := w.scratch()
	if err != nil {
		return "", err
	}
	defer remove()
	tree, skipped, err := w.contents(ctx, scratch)
	if err != nil {
		return "", err
	}
	if found.Status, err = w.status(ctx, tree, skipped); err != nil {
		return "", err
	}
	if found.Status.Branch != "" || found.Status.Head == w.record.Base || found.Status.Head == w.record.Branched {
		return tree, nil
	}
	if found.Status.Head == "" {
		return "", errors.New("HEAD of the worktree cannot be read")
	}
	not := []string{"--not", w.record.Base}
	if w.record.Branched != "" {
		not = append(not, w.record.Branched)
	}
	out, err := w.git(ctx, call{}, append([]string{"log", "--no-show-signature", "--no-color", "--format=%h %s", fmt.Sprintf("--max-count=%d", maxCommits), found.Status.Head}, not...)...)
	for line := range strings.Lines(out) {
		found.Commits = append(found.Commits, shown(strings.TrimSpace(line)))
	}
	return tree, err
}

// remove removes all that is left of a worktree. Its record goes last, so that a later
// call can continue.
func (w *Worktree) remove() error {
	if w.record.Path != "" {
		if err := removeAll(filepath.Dir(w.record.Path)); err != nil {
			return err
		}
		if err := w.unregister(); err != nil {
			return err
		}
	}
	// The record without the rest says that nothing was made yet.
	if err := os.Remove(w.store.recordPath(w.record.ID)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := removeAll(w.folder()); err != nil {
		return err
	}
	// Who waits for the lock finds no record.
	return os.Remove(w.store.lockPath(w.record.ID))
}

// unregister removes git's own folder for the worktree. What is not that is left
// alone.
func (w *Worktree) unregister() error {
	admin := w.record.admin()
	for _, dir := range []string{filepath.Dir(admin), admin} {
		if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
			return nil
		}
	}
	if back, err := git.Pointer(filepath.Join(admin, "gitdir"), ""); err == nil && back != filepath.Join(w.record.Path, ".git") {
		return nil
	}
	if err := os.RemoveAll(admin); err != nil {
		return err
	}
	_ = os.Remove(filepath.Dir(admin)) // it stays while there are others
	return nil
}

// removeAll removes a folder, also where folders in it may not be written. It
// follows no symbolic link.
func removeAll(dir string) error {
	err := os.RemoveAll(dir)
	if err == nil {
		return nil
	}
	root, rootErr := os.OpenRoot(dir)
	if rootErr != nil {
		return err
	}
	defer root.Close()
	_ = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, _ error) error {
		if d != nil && d.IsDir() {
			_ = root.Chmod(name, 0o700)
		}
		return nil
	})
	return os.RemoveAll(dir)
}
