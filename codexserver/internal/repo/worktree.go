package repo

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/codexmcp/codexmcp/internal/safefile"
)

// Worktree is the worktree of one thread. Several processes may use it at the same time. A
// value is not safe for concurrent use.
type Worktree struct {
	store   Store
	record  record
	private *private // since the current call has begun
}

// ID returns the id of the worktree.
func (w *Worktree) ID() string { return w.record.ID }

// ThreadID returns the id of the thread that works in it, or "" before [Worktree.Bind].
func (w *Worktree) ThreadID() string { return w.record.ThreadID }

// Path returns the top folder of the worktree.
func (w *Worktree) Path() string { return w.record.Path }

// Root returns the top folder of the caller's tree.
func (w *Worktree) Root() string { return w.record.Root }

// Base returns the commit that the worktree was made from.
func (w *Worktree) Base() string { return w.record.Base }

// Cwd returns the folder of the worktree that corresponds to the caller's folder, or the
// top folder if the worktree does not have it.
func (w *Worktree) Cwd() string {
	root, err := os.OpenRoot(w.record.Path)
	if err != nil {
		return w.record.Path
	}
	defer root.Close()
	if f, err := look(root, filepath.ToSlash(w.record.Folder)); err != nil || f == nil || !f.IsDir() {
		return w.record.Path
	}
	return filepath.Join(w.record.Path, w.record.Folder)
}

// Writable returns the folders that the thread's commands may write to.
func (w *Worktree) Writable() []string { return []string{w.record.Path} }

// ReadOnly returns the paths that stay read-only under every policy: the caller's tree,
// the repository's git folders including the worktree's own, the worktree's .git, and the
// records.
func (w *Worktree) ReadOnly() []string {
	all := []string{filepath.Join(w.record.Path, ".git"), w.record.admin(), w.record.CommonDir, w.record.Root, w.store.Records}
	if w.record.GitDir != w.record.CommonDir {
		all = append(all, w.record.GitDir)
	}
	return all
}

// begin locks the worktree, checks that its folders were not moved or replaced, and makes a
// folder for the files of the call. It bounds the time of the call.
func (w *Worktree) begin(ctx context.Context) (_ context.Context, scratch string, end func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	unlock, err := w.store.lock(ctx, w.record.ID)
	if err != nil {
		cancel()
		return ctx, "", nil, err
	}
	release := func() { unlock(); cancel() }
	if err = w.check(ctx); err == nil {
		var remove func()
		if scratch, remove, err = w.scratch(); err == nil {
			return ctx, scratch, func() { remove(); release() }, nil
		}
	}
	release()
	return ctx, "", nil, err
}

// check reads the record again and compares it with the folders on disk.
func (w *Worktree) check(ctx context.Context) error {
	fresh, err := w.store.load(w.record.ID)
	if err != nil {
		return err
	}
	w.record = fresh.record
	if w.record.Phase != phaseUse {
		return refuse("the worktree was discarded")
	}
	if real, err := filepath.EvalSymlinks(w.record.Path); err != nil || real != w.record.Path {
		return refuse("%s was moved or replaced", w.record.Path)
	}
	found, err := w.store.openCallers(ctx, w.record.Root, w.folder(), w.record.Path)
	if err != nil {
		return err
	}
	if found.root != w.record.Root || found.gitDir != w.record.GitDir || found.commonDir != w.record.CommonDir {
		return refuse("the git folder of %s was moved or replaced", w.record.Root)
	}
	w.use(found.source)
	return nil
}

// use runs git on the private git folder of the worktree. It does not read the user's
// configuration, because isolate has copied the needed settings.
func (w *Worktree) use(r source) {
	r.root = w.record.Path
	w.private = r.private(w.folder())
	w.private.env = append([]string{"GIT_INDEX_FILE=" + filepath.Join(w.folder(), "no-index")}, withoutUser...)
	// One flush for all new objects, not one for each; git before 2.36 has none.
	w.private.options = []string{"-c", "core.protectHFS=true", "-c", "core.fsyncMethod=batch"}
}

// folder has the record and the private git folder, and index has the worktree's content when
// it was last read.
func (w *Worktree) folder() string { return w.store.recordFolder(w.record.ID) }
func (w *Worktree) index() string  { return filepath.Join(w.folder(), "index") }

// scratch makes a folder for the files of one call.
func (w *Worktree) scratch() (dir string, remove func(), err error) {
	dir, err = os.MkdirTemp(w.folder(), "tmp-*")
	return dir, func() { _ = os.RemoveAll(dir) }, err
}

// pointer returns the content of the file .git of the worktree.
func (r *record) pointer() string { return "gitdir: " + filepath.ToSlash(r.admin()) + "\n" }

// notes returns sentences about changes that others made to the worktree.
func (w *Worktree) notes() []string {
	data, err := safefile.Read(filepath.Join(w.record.Path, ".git"), 64<<10)
	info, _ := os.Lstat(filepath.Join(w.record.Path, ".git"))
	if err == nil && info != nil && info.Mode().IsRegular() && strings.TrimSpace(string(data)) == strings.TrimSpace(w.record.pointer()) {
		return nil
	}
	return []string{"the worktree's .git was replaced: do not run git in the worktree"}
}
