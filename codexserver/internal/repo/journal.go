package repo

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/internal/safefile"
	"github.com/go-json-experiment/json"
)

// journal records the files of a tree before others are written to it. It is a folder with
// journal.json and contents, which has the old contents one after the other. The folder is
// complete before the first file is written, and exists until after the last.
type journal struct {
	store Store
	old   strings.Builder // all old contents
	// touched are the indexes of the files that were written. It is nil in a journal of
	// another process, which may have written any.
	touched  map[int]bool
	contents []byte // read when first needed

	Version int    `json:"version"`
	Root    string `json:"root"`
	Tag     string `json:"tag"` // part of the temporary files' names
	Files   []note `json:"files"`
	// Made are the folders that are missing, Parents those that removals may leave empty.
	// Both have parents before children.
	Made    []folderNote `json:"made"`
	Parents []folderNote `json:"parents"`
}

// note is a file before and after.
type note struct {
	Path   string `json:"path"`
	Before digest `json:"before"`
	After  digest `json:"after"`
	At     int64  `json:"at"` // offset of the old content in contents
}

type folderNote struct {
	Path string      `json:"path"`
	Perm fs.FileMode `json:"perm"`
}

// digest identifies the content and mode of a file.
type digest struct {
	Kind string      `json:"kind"` // file, link, or "" for none
	Perm fs.FileMode `json:"perm"`
	Size int64       `json:"size"`
	Hash string      `json:"hash"`
}

func (f file) digest() digest {
	d := digest{Perm: f.perm, Size: int64(len(f.data))}
	switch {
	case f.isFile:
		d.Kind = "file"
	case f.isLink:
		d.Kind = "link"
	default:
		return d
	}
	d.Hash = fmt.Sprintf("%x", sha256.Sum256([]byte(f.data)))
	return d
}

const journalVersion = 1

// journal records the plan's files.
func (p *Plan) journal(root *os.Root) (*journal, error) {
	j := &journal{store: p.worktree.store, touched: map[int]bool{}, Version: journalVersion, Root: p.worktree.record.Root, Tag: rand.Text()[:12]}
	for _, f := range p.files {
		j.Files = append(j.Files, note{f.path, f.before.digest(), f.after.digest(), int64(j.old.Len())})
		j.old.WriteString(f.before.data)
		for _, dir := range above(f.path) {
			is := func(d folderNote) bool { return d.Path == dir }
			info, err := look(root, dir)
			switch {
			case err != nil:
				return nil, err
			case f.after.exists() && (info == nil || !info.IsDir()) && !slices.ContainsFunc(j.Made, is):
				j.Made = append(j.Made, folderNote{Path: dir})
			case !f.after.exists() && info != nil && info.IsDir() && !slices.ContainsFunc(j.Parents, is):
				j.Parents = append(j.Parents, folderNote{dir, info.Mode().Perm()})
			}
		}
	}
	return j, nil
}

func treeKey(root string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(root)))[:32] }

func (s Store) journals() string { return filepath.Join(s.Records, "journals") }

func (j *journal) folder() string { return filepath.Join(j.store.journals(), treeKey(j.Root)) }

// begin writes the journal. It takes effect when it is renamed.
func (j *journal) begin() error {
	dir := j.folder() + ".tmp-" + j.Tag
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	text, err := json.Marshal(j)
	if err == nil {
		err = writeNew(filepath.Join(dir, "journal.json"), text, 0o600)
	}
	if err == nil {
		err = writeNew(filepath.Join(dir, "contents"), []byte(j.old.String()), 0o600)
	}
	if err == nil {
		err = os.Rename(dir, j.folder())
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	return nil
}

// end removes the journal, so that the written files stay.
func (j *journal) end() error {
	done := j.folder() + ".tmp-" + j.Tag
	if err := os.Rename(j.folder(), done); err != nil {
		return err
	}
	return os.RemoveAll(done)
}

// prune removes the folders that removals left empty, the deepest first.
func (j *journal) prune(root *os.Root) {
	for _, dir := range slices.Backward(sorted(j.Parents)) {
		_ = root.Remove(filepath.FromSlash(dir.Path)) // fails unless it is empty
	}
}

func sorted(dirs []folderNote) []folderNote {
	dirs = slices.Clone(dirs)
	slices.SortFunc(dirs, func(a, b folderNote) int { return len(a.Path) - len(b.Path) })
	return dirs
}

// RecoveryError reports files that others changed after an interrupted merge had written
// to them, so that they could not be restored.
type RecoveryError struct {
	// Paths are the absolute paths of the files.
	Paths []string
	// Folder has their old contents.
	Folder string
}

// Error implements error.
func (e *RecoveryError) Error() string {
	return fmt.Sprintf("worktree: an interrupted merge could not be undone in %q, because these files were changed since; their old contents are in %s", e.Paths, e.Folder)
}

// undo restores all files and removes the journal.
func (j *journal) undo(root *os.Root) error {
	var strange []string
	var lost []note
	for i, n := range slices.Backward(j.Files) {
		if j.touched != nil && !j.touched[i] {
			continue
		}
		ok, err := j.putBack(root, i, n)
		if err != nil {
			return fmt.Errorf("put back %s: %w", n.Path, err)
		}
		if !ok {
			strange, lost = append(strange, filepath.Join(j.Root, filepath.FromSlash(n.Path))), append(lost, n)
		}
	}
	j.dropMade(root, "")
	if len(strange) == 0 {
		return j.end()
	}
	for i, n := range lost { // for a person to read
		if old, err := j.content(n); err == nil && n.Before.Kind != "" {
			_ = os.WriteFile(filepath.Join(j.folder(), fmt.Sprintf("%d-%s", i, filepath.Base(n.Path))), []byte(old.data), 0o600)
		}
	}
	kept := j.folder() + ".kept-" + j.Tag
	return errors.Join(&RecoveryError{Paths: strange, Folder: kept}, os.Rename(j.folder(), kept))
}

// putBack restores a file. It returns false if the file was changed meanwhile.
func (j *journal) putBack(root *os.Root, i int, n note) (bool, error) {
	temporary := j.temporary(n.Path, i)
	if err := j.forget(root, n.Path, temporary); err != nil {
		return false, err
	}
	defer j.dropMade(root, n.Path) // the folders may be left from a new file
	now, err := read(root, n.Path)
	var place *placeError
	if errors.As(err, &place) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	is := now.digest()
	switch {
	case is == n.Before:
		return true, nil
	case is.Kind != n.After.Kind || is.Hash != n.After.Hash:
		return false, nil
	}
	if n.Before.Kind == "" {
		return true, root.Remove(filepath.FromSlash(n.Path))
	}
	old, err := j.content(n)
	if err != nil {
		return false, err
	}
	for _, dir := range sorted(j.Parents) {
		if !isAbove(dir.Path, n.Path) {
			continue
		}
		name := filepath.FromSlash(dir.Path)
		err := root.Mkdir(name, 0o777)
		if err == nil {
			err = root.Chmod(name, dir.Perm)
		}
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return false, err
		}
	}
	return true, putFile(root, n.Path, old, temporary, !now.exists(), true, func() {})
}

// content returns a file as it was before.
func (j *journal) content(n note) (file, error) {
	if j.contents == nil {
		var err error
		if j.contents, err = safefile.Read(filepath.Join(j.folder(), "contents"), maxPlan); err != nil {
			return file{}, err
		}
	}
	f := file{isFile: n.Before.Kind == "file", isLink: n.Before.Kind == "link", perm: n.Before.Perm}
	if size := int64(len(j.contents)); n.At >= 0 && n.At <= size && n.Before.Size >= 0 && n.Before.Size <= size-n.At {
		f.data = string(j.contents[n.At : n.At+n.Before.Size])
	}
	if f.digest() != n.Before {
		return file{}, fmt.Errorf("the journal %s was changed", j.folder())
	}
	return f, nil
}

// dropMade removes empty folders that were made for the file name, or for any file if name
// is "".
func (j *journal) dropMade(root *os.Root, name string) {
	for _, dir := range slices.Backward(sorted(j.Made)) {
		if info, err := look(root, dir.Path); err != nil || info == nil || !info.IsDir() {
			continue
		}
		if name == "" || isAbove(dir.Path, name) {
			_ = root.Remove(filepath.FromSlash(dir.Path)) // fails unless it is empty
		}
	}
}

// forget removes the temporary file that a killed process may have left.
func (j *journal) forget(root *os.Root, name, temporary string) error {
	if info, err := look(root, filepath.ToSlash(temporary)); err != nil || info == nil {
		return err
	}
	return removeIfThere(root, temporary)
}
