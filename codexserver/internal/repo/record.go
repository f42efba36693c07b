package repo

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"github.com/codexmcp/codexmcp/internal/safefile"
	"github.com/go-json-experiment/json"
	"io/fs"
	"path/filepath"
	"strings"
	"time"
	"unicode"
)

const (
	recordVersion = 1
	maxRecord     = 64 << 10
	// adminPrefix begins the name of git's own folder for a worktree.
	adminPrefix = "codex-mcp-"
)

// The phases of a worktree: it is being made, in use, or being removed.
const (
	phaseMake    = "make"
	phaseUse     = "use"
	phaseDiscard = "discard"
)

// record is the state of a worktree. Commands cannot write to its file.
type record struct {
	Version  int       `json:"version"`
	ID       string    `json:"id"`
	Phase    string    `json:"phase"`
	ThreadID string    `json:"threadId"`
	Created  time.Time `json:"created"`
	// Root is the caller's working tree, GitDir its git folder, and CommonDir the one that
	// it shares with all other working trees.
	Root      string `json:"root"`
	GitDir    string `json:"gitDir"`
	CommonDir string `json:"commonDir"`
	// Folder is the caller's folder, relative to Root.
	Folder string `json:"folder"`
	Path   string `json:"path"`
	// Base is the commit that the worktree was made from. Start is the tree of its first
	// content: that of the commit, or the content of the caller's tree.
	Base  string `json:"base"`
	Start string `json:"start"`
	// Saved are the trees that were applied or put on a branch.
	Saved []string `json:"saved,omitempty"`
	// Branched is the commit of the last branch.
	Branched string `json:"branched,omitempty"`
	// Applying is set before the changes are written to the caller's tree, and removed after:
	// what was checked out there.
	Applying string `json:"applying,omitempty"`
}

// admin returns git's own folder for the worktree.
func (r *record) admin() string {
	return filepath.Join(r.CommonDir, "worktrees", adminPrefix+r.ID)
}

// RecordError reports a record that this package has not written.
type RecordError struct {
	// Path is the file. Member is the wrong member, or another reason.
	Path, Member string
}

// Error implements error.
func (e *RecordError) Error() string {
	return fmt.Sprintf("the worktree record %s is not valid: %s", e.Path, e.Member)
}

func (s Store) recordPath(id string) string { return filepath.Join(s.recordFolder(id), "record.json") }

func (s Store) save(r *record) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return safefile.Write(s.recordPath(r.ID), data, 0o600)
}

// load reads a record and checks all of its members.
func (s Store) load(id string) (*Worktree, error) {
	path := s.recordPath(id)
	f, err := safefile.Open(path)
	if err != nil {
		return nil, err
	}
	data, err := f.ReadAll(maxRecord)
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	if f.Info().Mode().Perm()&0o022 != 0 && isPosix {
		return nil, &RecordError{Path: path, Member: "other users may write to it"}
	}
	return s.parse(data, id)
}

func (s Store) parse(data []byte, id string) (*Worktree, error) {
	path := s.recordPath(id)
	r := &record{}
	if err := json.Unmarshal(data, r, json.RejectUnknownMembers(true)); err != nil {
		return nil, &RecordError{Path: path, Member: err.Error()}
	}
	if member := s.wrong(r, id); member != "" {
		return nil, &RecordError{Path: path, Member: member}
	}
	return &Worktree{store: s, record: *r}, nil
}

// wrong returns the first member that this package cannot have written, or "".
func (s Store) wrong(r *record, id string) string {
	isFolder := func(path string) bool {
		return filepath.IsAbs(path) && filepath.Clean(path) == path && filepath.Dir(path) != path && isPlain(path)
	}
	hashes := append([]string{r.Base, r.Start}, r.Saved...)
	if r.Branched != "" {
		hashes = append(hashes, r.Branched)
	}
	for _, hash := range hashes {
		if !isHash(hash) || len(hash) != len(r.Base) {
			return "base, start, saved or branched is not the name of a git object"
		}
	}
	switch {
	case r.Version != recordVersion:
		return "version"
	case r.ID != id || !isID(id):
		return "id"
	case r.Phase != phaseMake && r.Phase != phaseUse && r.Phase != phaseDiscard:
		return "phase"
	case len(r.ThreadID) > 200 || !isPlain(r.ThreadID):
		return "threadId"
	case !isFolder(r.Root):
		return "root"
	case !isFolder(r.GitDir):
		return "gitDir"
	case !isFolder(r.CommonDir) || r.GitDir != r.CommonDir && filepath.Dir(r.GitDir) != filepath.Join(r.CommonDir, "worktrees"):
		return "commonDir"
	case !filepath.IsLocal(r.Folder) || filepath.Clean(r.Folder) != r.Folder || !isPlain(r.Folder):
		return "folder"
	case !isFolder(r.Path) || filepath.Dir(r.Path) != filepath.Join(s.Trees, id):
		return "path"
	case len(r.Saved) > maxSaved:
		return "saved"
	case len(r.Applying) > 2*maxPlace || !isPlain(r.Applying):
		return "applying"
	}
	return ""
}

// isPlain reports whether a text has no control characters.
func isPlain(text string) bool { return !strings.ContainsFunc(text, unicode.IsControl) }

func isID(name string) bool {
	b, err := hex.DecodeString(name)
	return err == nil && len(b) == 8 && strings.ToLower(name) == name
}

// maxSaved is how many saved trees a record keeps. They are the last ones.
const maxSaved = 20

// update changes the record in memory and on disk. The caller has locked the worktree.
func (w *Worktree) update(change func(*record)) error {
	fresh, err := w.store.load(w.record.ID)
	if err != nil {
		return err
	}
	change(&fresh.record)
	if extra := len(fresh.record.Saved) - maxSaved; extra > 0 {
		fresh.record.Saved = fresh.record.Saved[extra:]
	}
	if err := w.store.save(&fresh.record); err != nil {
		return err
	}
	w.record = fresh.record
	return nil
}

// Bind records the thread that works in the worktree.
func (w *Worktree) Bind(ctx context.Context, threadID string) error {
	if threadID == "" || len(threadID) > 200 || !isPlain(threadID) {
		return fmt.Errorf("worktree: %q is not a thread's id", threadID)
	}
	if other, err := w.store.Find(threadID); err == nil && other.record.ID != w.record.ID {
		return fmt.Errorf("worktree: the thread %s already has the worktree %s: %w", threadID, other.record.ID, fs.ErrExist)
	}
	unlock, err := w.store.lock(ctx, w.record.ID)
	if err != nil {
		return err
	}
	defer unlock()
	return w.update(func(r *record) { r.ThreadID = threadID })
}
