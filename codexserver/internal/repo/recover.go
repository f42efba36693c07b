package repo

import (
	"context"
	"errors"
	"github.com/codexmcp/codexmcp/codexserver/internal/safefile"
	"github.com/go-json-experiment/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const maxJournal = 64 << 20

// lockTree locks a caller's tree against other merges, and undoes an interrupted one.
func (s Store) lockTree(ctx context.Context, root string) (unlock func(), err error) {
	unlock, err = s.lock(ctx, "tree-"+treeKey(root))
	if err != nil {
		return nil, err
	}
	if err := s.undo(treeKey(root)); err != nil {
		unlock()
		return nil, err
	}
	return unlock, nil
}

// undo undoes an interrupted merge if there is a journal of it. The caller has locked the
// tree.
func (s Store) undo(key string) error {
	entries, err := os.ReadDir(s.journals())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), key+".tmp-") {
			continue
		}
		// The merge had not begun, or had ended.
		if err := os.RemoveAll(filepath.Join(s.journals(), entry.Name())); err != nil {
			return err
		}
	}
	path := filepath.Join(s.journals(), key, "journal.json")
	data, err := safefile.Read(path, maxJournal)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	j := &journal{}
	if err := json.Unmarshal(data, j, json.RejectUnknownMembers(true)); err != nil {
		return &RecordError{Path: path, Member: err.Error()}
	}
	if member := j.wrong(key); member != "" {
		return &RecordError{Path: path, Member: member}
	}
	j.store = s
	if real, err := filepath.EvalSymlinks(j.Root); err != nil || real != j.Root {
		return errors.Join(refuse("an interrupted merge cannot be undone, because %s was moved or replaced", j.Root), err)
	}
	root, err := os.OpenRoot(j.Root)
	if err != nil {
		return err
	}
	defer root.Close()
	return j.undo(root)
}

// wrong returns the first member that this package cannot have written, or "".
func (j *journal) wrong(key string) string {
	isName := func(name string) bool {
		native := filepath.FromSlash(name)
		return filepath.IsLocal(native) && filepath.ToSlash(filepath.Clean(native)) == name && name != "." && !isGitName(name)
	}
	switch {
	case j.Version != journalVersion:
		return "version"
	case !filepath.IsAbs(j.Root) || filepath.Clean(j.Root) != j.Root || treeKey(j.Root) != key:
		return "root"
	case j.Tag == "" || strings.Trim(j.Tag, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") != "":
		return "tag"
	}
	for _, n := range j.Files {
		if !isName(n.Path) {
			return "files"
		}
	}
	for _, dir := range append(append([]folderNote{}, j.Made...), j.Parents...) {
		if !isName(dir.Path) {
			return "made or parents"
		}
	}
	return ""
}

// recoverTrees undoes all interrupted merges that no other process works on.
func (s Store) recoverTrees() []error {
	entries, err := os.ReadDir(s.journals())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return []error{err}
	}
	var failed []error
	for _, entry := range entries {
		key := entry.Name()
		if len(key) != 32 || strings.Trim(key, "0123456789abcdef") != "" {
			continue
		}
		unlock, err := s.tryLock("tree-" + key)
		if errors.Is(err, safefile.ErrLocked) {
			continue
		}
		if err == nil {
			err = s.undo(key)
			unlock()
		}
		if err != nil {
			failed = append(failed, err)
		}
	}
	return failed
}
