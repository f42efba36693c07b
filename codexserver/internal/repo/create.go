package repo

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/internal/paths"
	"github.com/codexmcp/codexmcp/internal/safefile"
)

// CreateOptions are the options of [Store.Create].
type CreateOptions struct {
	// Cwd is the caller's folder in the repository, an absolute path.
	Cwd string
	// ThreadID is the id of the thread that works in the worktree. If it is not known yet,
	// [Worktree.Bind] records it later.
	ThreadID string
	// Uncommitted copies the caller's uncommitted work: changes to tracked files, and
	// files that are neither tracked nor ignored.
	Uncommitted bool
}

// Create makes a worktree from the HEAD of the repository that contains o.Cwd. Skipped are
// uncommitted files that could not be copied, which are as in HEAD, and submodules, which the
// worktree does not have. The error is a
// [*RefusedError] if the repository cannot have a worktree.
func (s Store) Create(ctx context.Context, o CreateOptions) (w *Worktree, skipped []Skip, err error) {
	ctx, cancel := context.WithTimeout(ctx, createTimeout)
	defer cancel()
	if !filepath.IsAbs(o.Cwd) {
		return nil, nil, refuse("the folder %q is not an absolute path", o.Cwd)
	}
	if s, err = s.make(); err != nil {
		return nil, nil, err
	}
	if other, err := s.Find(o.ThreadID); err == nil {
		return nil, nil, fmt.Errorf("worktree: the thread %s already has the worktree %s: %w", o.ThreadID, other.record.ID, fs.ErrExist)
	}
	id := make([]byte, 8)
	rand.Read(id)
	w = &Worktree{store: s, record: record{Version: recordVersion, ID: hex.EncodeToString(id), Phase: phaseMake, ThreadID: o.ThreadID, Created: time.Now().UTC()}}
	unlock, err := s.tryLock(w.record.ID)
	if err != nil {
		return nil, nil, err
	}
	defer unlock()
	if err := os.Mkdir(w.folder(), 0o700); err != nil {
		return nil, nil, err
	}
	if skipped, err = w.make(ctx, o); err != nil {
		return nil, nil, errors.Join(err, w.remove())
	}
	return w, skipped, nil
}

func (w *Worktree) make(ctx context.Context, o CreateOptions) ([]Skip, error) {
	r, err := w.store.openCallers(ctx, o.Cwd, w.folder())
	if err != nil {
		return nil, err
	}
	if err := w.place(r, o.Cwd); err != nil {
		return nil, err
	}
	// Save the record first, so that everything made after it can be found and removed.
	if err := w.store.save(&w.record); err != nil {
		return nil, err
	}
	if w.store.Programs != nil {
		w.store.Programs.Given(w.record.Path)
	}
	w.use(r.source)
	if err := w.private.make(ctx); err != nil {
		return nil, err
	}
	if err := w.private.isolate(ctx); err != nil {
		return nil, err
	}
	found, err := w.private.git(ctx, call{tree: w.folder()}, "rev-parse", r.head+"^{commit}", r.head+"^{tree}")
	commit, tree, _ := strings.Cut(strings.TrimSpace(found), "\n")
	if err != nil || commit != r.head {
		return nil, refuse("HEAD of %s is not a commit: %v", r.root, err)
	}
	var skipped []Skip
	if w.record.Start = tree; o.Uncommitted {
		if skipped, err = w.takeAlong(ctx, r); err != nil {
			return nil, err
		}
	}
	if err := os.MkdirAll(w.record.Path, 0o700); err != nil {
		return nil, err
	}
	if err := w.checkOut(ctx); err != nil {
		return nil, err
	}
	modules, err := w.submodules()
	if err != nil {
		return nil, err
	}
	skipped = append(skipped, modules...)
	if err := w.register(ctx); err != nil {
		return nil, err
	}
	return skipped, w.update(func(record *record) { record.Phase, record.Start = phaseUse, w.record.Start })
}

// place sets the paths of the record.
func (w *Worktree) place(r *callers, cwd string) error {
	cwd, err := filepath.EvalSymlinks(cwd)
	if err != nil {
		return err
	}
	record := &w.record
	if record.Folder, err = filepath.Rel(r.root, cwd); err != nil {
		return err
	}
	for _, dir := range []string{w.store.Trees, w.store.Records} {
		if paths.Below(dir, r.root) {
			return refuse("the folder for worktrees, %s, lies in the repository", dir)
		}
	}
	name := filepath.Base(r.root)
	if !filepath.IsLocal(name) || name == "." {
		name = "tree"
	}
	record.Root, record.GitDir, record.CommonDir = r.root, r.gitDir, r.commonDir
	record.Base, record.Start = r.head, r.head
	record.Path = filepath.Join(w.store.Trees, record.ID, name)
	if member := w.store.wrong(record, record.ID); member != "" {
		return refuse("a worktree of %s cannot be recorded: %s", r.root, member)
	}
	return nil
}

// takeAlong makes the caller's content the worktree's first content.
func (w *Worktree) takeAlong(ctx context.Context, r *callers) (skipped []Skip, err error) {
	// The copy of the index is in our git folder, because git looks there for a second part.
	if err := copyIndex(w.private.dir, r.gitDir); err != nil {
		return nil, err
	}
	if w.record.Start, skipped, err = w.snapshot(ctx, r.root, filepath.Join(w.private.dir, "index")); err != nil {
		return nil, err
	}
	// Copy the objects that are only staged: the caller may unstage them, and git then
	// removes them.
	return skipped, w.pack(ctx, call{tree: w.folder()}, filepath.Join(w.private.common, "objects", "pack"), w.record.Start)
}

// makeAdmin makes git's own folder for the worktree. It tries again when the folder above
// disappears: git removes that with the last worktree in it.
func (w *Worktree) makeAdmin() error {
	admin := w.record.admin()
	all := filepath.Dir(admin)
	for try := 1; ; try++ {
		if err := os.Mkdir(all, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if info, err := os.Lstat(all); err == nil && !info.IsDir() {
			return refuse("%s is not a folder", all)
		}
		if err := os.Mkdir(admin, 0o777); !errors.Is(err, fs.ErrNotExist) || try == 10 {
			return err
		}
	}
}

// checkOut writes the files of the worktree.
func (w *Worktree) checkOut(ctx context.Context) error {
	c := call{index: w.index()}
	if _, err := w.private.git(ctx, c, "read-tree", w.record.Start); err != nil {
		return err
	}
	c.writes = []string{w.record.Path}
	_, err := w.private.git(ctx, c, "checkout-index", "--all", "--quiet", "-u")
	return err
}

// submodules returns the submodules, of which the worktree has only empty folders.
func (w *Worktree) submodules() (found []Skip, err error) {
	data, err := safefile.Read(w.index(), maxRead)
	if err != nil {
		return nil, err
	}
	all, ok := parseIndex(string(data), w.private.hashSize())
	if !ok {
		return nil, errors.New("the index of the worktree cannot be read")
	}
	for i := range all {
		if all[i].isModule() {
			found = append(found, Skip{Path: all[i].name, Reason: "it is a submodule"})
		}
	}
	return found, nil
}

// register makes git's own folder for the worktree in the repository, as git does, so that
// commands and people can use git in the worktree. A lock prevents that git prunes the
// folder and the objects that it refers to.
func (w *Worktree) register(ctx context.Context) error {
	if err := w.makeAdmin(); err != nil {
		return err
	}
	admin := w.record.admin()
	// Unlike ours, this index has the content of HEAD, so that git shows the copied
	// uncommitted work as changes.
	if err := copyFile(admin, w.folder(), "index", maxIndex); err != nil {
		return err
	}
	c := call{index: filepath.Join(admin, "index"), writes: []string{admin}}
	if _, err := w.private.git(ctx, c, "read-tree", "-m", w.record.Base); err != nil {
		return err
	}
	dot := filepath.Join(w.record.Path, ".git")
	for name, text := range map[string]string{
		"commondir": "../..\n",
		"gitdir":    filepath.ToSlash(dot) + "\n",
		"HEAD":      w.record.Base + "\n",
		"locked":    "a thread of codex-mcp works here\n",
	} {
		if err := safefile.Write(filepath.Join(admin, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return writeNew(dot, []byte(w.record.pointer()), 0o644)
}
