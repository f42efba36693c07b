package worktree

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/codexserver/internal/regularfile"
)

// Worktree is the worktree of one thread. Its methods are safe for concurrent use
// by several processes; one value is for one goroutine.
type Worktree struct {
	store   Store
	record  record
	program git.Program
}

// ID names the worktree.
func (w *Worktree) ID() string { return w.record.ID }

// ThreadID is the thread's that works in it, "" before [Worktree.Bind].
func (w *Worktree) ThreadID() string { return w.record.ThreadID }

// Path is the worktree's top folder, Root that of the tree that it was made from.
func (w *Worktree) Path() string { return w.record.Path }

// Root is the top folder of the caller's tree.
func (w *Worktree) Root() string { return w.record.Root }

// Base is the commit that it was made from.
func (w *Worktree) Base() string { return w.record.Base }

// Cwd is the folder of the worktree that corresponds to the one that it was asked
// for in, or its top where that one was not committed.
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

// Writable are the folders that the thread's commands may write.
func (w *Worktree) Writable() []string { return []string{w.record.Path} }

// ReadOnly are the places that stay read-only whatever else a policy leaves
// writable: the caller's tree, the repository's git folders with the worktree's
// own, the file that names it, and our records.
func (w *Worktree) ReadOnly() []string {
	all := []string{filepath.Join(w.record.Path, ".git"), w.record.admin(), w.record.CommonDir, w.record.Root, w.store.Records}
	if w.record.GitDir != w.record.CommonDir {
		all = append(all, w.record.GitDir)
	}
	return all
}

// begin locks the worktree and makes sure that everything is where it was.
func (w *Worktree) begin(ctx context.Context) (end func(), err error) {
	unlock, err := w.store.lock(ctx, w.record.ID)
	if err != nil {
		return nil, err
	}
	if err := w.check(ctx); err != nil {
		unlock()
		return nil, err
	}
	return unlock, nil
}

// check reads the record again and compares it with the disk.
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
		return refuse("%s is not the folder that it was", w.record.Path)
	}
	found, err := openRepository(ctx, w.record.Root, w.folder())
	if err != nil {
		return err
	}
	if found.root != w.record.Root || found.gitDir != w.record.GitDir || found.commonDir != w.record.CommonDir {
		return refuse("the repository of %s is not where it was", w.record.Root)
	}
	w.program, err = git.Find(os.Environ(), w.record.Root, w.record.Path)
	return err
}

// pointer is what the file .git of the worktree says.
func (r *record) pointer() string { return "gitdir: " + filepath.ToSlash(r.admin()) + "\n" }

// notes are sentences about what others did to the worktree.
func (w *Worktree) notes() []string {
	data, err := regularfile.Read(filepath.Join(w.record.Path, ".git"), 64<<10)
	info, _ := os.Lstat(filepath.Join(w.record.Path, ".git"))
	if err == nil && info != nil && info.Mode().IsRegular() && strings.TrimSpace(string(data)) == strings.TrimSpace(w.record.pointer()) {
		return nil
	}
	return []string{"the worktree's .git was replaced: do not run git in there"}
}
