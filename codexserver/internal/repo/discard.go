package repo

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// maxCommits is how many commits a list has at most.
const maxCommits = 50

// LossError reports the work that [Worktree.Discard] would lose.
type LossError struct {
	// Token makes Discard remove the worktree as it is now.
	Token string
	// Status is the state of the worktree, or nil if it cannot be determined.
	Status *Status
	// Commits are the commits that no branch has, by name and subject, the newest first.
	Commits []string
	// Unknown is the reason why the state cannot be determined, or "".
	Unknown string
}

// Error implements error.
func (e *LossError) Error() string {
	if e.Unknown != "" {
		return "worktree: the work that would be lost cannot be determined: " + e.Unknown
	}
	return fmt.Sprintf("worktree: work would be lost: %d changed files, %d files that were left out, %d commits",
		len(e.Status.Files)+e.Status.More, len(e.Status.Skipped), len(e.Commits))
}

// Discard removes the worktree. If that would lose work that was neither applied nor put
// on a branch, it returns a [*LossError] and removes nothing. Call it again with the token
// of the error to remove the worktree nevertheless. The token is no longer valid when the
// worktree has changed. Ignored files do not count as work.
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

// loss returns the work that would be lost, or nil.
func (w *Worktree) loss(ctx context.Context) (*LossError, error) {
	found := &LossError{}
	err := w.check(ctx)
	switch {
	case !exists(w.store.recordPath(w.record.ID)):
		return nil, err
	case w.record.Phase != phaseUse: // an earlier call has decided to remove it
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

// measure sets the status and the commits of found.
func (w *Worktree) measure(ctx context.Context, found *LossError) (tree string, err error) {
	scratch, remove, err := w.scratch()
	if err != nil {
		return "", err
	}
	defer remove()
	if found.Status, tree, err = w.status(ctx, scratch); err != nil {
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
	out, err := w.private.git(ctx, call{}, append([]string{"log", "--no-show-signature", "--no-color", "--format=%h %s", fmt.Sprintf("--max-count=%d", maxCommits), found.Status.Head}, not...)...)
	for line := range strings.Lines(out) {
		found.Commits = append(found.Commits, shown(strings.TrimSpace(line)))
	}
	return tree, err
}

// remove removes what exists of a worktree. It keeps the record until the worktree is
// gone, so that a later call can continue.
func (w *Worktree) remove() error {
	if w.record.Path != "" {
		if err := removeAll(filepath.Dir(w.record.Path)); err != nil {
			return err
		}
		if err := w.unregister(); err != nil {
			return err
		}
	}
	// A folder without a record means that nothing else exists.
	if err := os.Remove(w.store.recordPath(w.record.ID)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := removeAll(w.folder()); err != nil {
		return err
	}
	// A caller that waits for the lock will find no record.
	return os.Remove(w.store.lockPath(w.record.ID))
}

// unregister removes git's own folder for the worktree. It does nothing if that belongs to
// another worktree.
func (w *Worktree) unregister() error {
	admin := w.record.admin()
	for _, dir := range []string{filepath.Dir(admin), admin} {
		if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
			return nil
		}
	}
	if back, err := pointer(filepath.Join(admin, "gitdir"), ""); err == nil && back != filepath.Join(w.record.Path, ".git") {
		return nil
	}
	if err := os.RemoveAll(admin); err != nil {
		return err
	}
	_ = os.Remove(filepath.Dir(admin)) // fails while it has others
	return nil
}

// removeAll removes a folder, even if folders in it are read-only. It does not follow
// symbolic links.
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
