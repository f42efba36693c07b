package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/codexmcp/codexmcp/internal/lazyregexp"
	"github.com/codexmcp/codexmcp/internal/paths"
	"github.com/codexmcp/codexmcp/internal/safefile"
	"github.com/go-json-experiment/json"
)

// Record is what is kept of a worktree beside its folder, where no command of its conversation writes. All that git does
// there for the server is told by it, and never by the .git of the worktree.
type Record struct {
	// Root is the top of the working tree that the worktree was made for, CommonDir the git folder that both share, and
	// GitDir the worktree's own, in CommonDir.
	Root      string `json:"root"`
	CommonDir string `json:"commonDir"`
	GitDir    string `json:"gitDir"`
	// Cwd is the folder in it that corresponds to the one that it was made for: its top folder, if the commit has no such one.
	Cwd string `json:"cwd"`
	// Branch is the name of its branch, and Base the commit at which that began.
	Branch string `json:"branch"`
	Base   string `json:"base"`
	// Thread is the id of the conversation that works there, "" before it began.
	Thread string `json:"thread,omitzero"`
}

// branchPrefix begins the names of the branches, which end with those of the folders.
const branchPrefix = "codex/"

// treeName is the name of the folder of a worktree.
var treeName = lazyregexp.Regexp{Text: `^[0-9a-f]{8}$`}

// FindWorktree returns the worktree that contains cwd, an absolute path, by its record in the folder of all worktrees. It
// returns nil if cwd is in none, or in one that has no record. Nothing says that the worktree is still there.
func (s Scratch) FindWorktree(trees, cwd string) (*Worktree, error) {
	trees, cwd = paths.Real(trees), paths.Real(cwd)
	rel, ok := paths.Within(cwd, trees)
	name, _, _ := strings.Cut(filepath.ToSlash(rel), "/")
	if !ok || !treeName.Get().MatchString(name) {
		return nil, nil
	}
	w := &Worktree{Path: filepath.Join(trees, name), scratch: s}
	data, err := safefile.Read(w.recordFile(), maxSmallFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &w.Record)
	}
	in := filepath.Join(w.CommonDir, "worktrees")
	if err == nil && (w.Branch != branchPrefix+name || filepath.Dir(w.GitDir) != in || !paths.Below(w.Cwd, w.Path) ||
		!filepath.IsAbs(w.CommonDir) || !filepath.IsAbs(w.Root) || !isHash(w.Base)) {
		err = errors.New("it does not describe the worktree")
	}
	if err != nil {
		return nil, fmt.Errorf("the record of the worktree %s: %w", w.Path, err)
	}
	return w, nil
}

// Owner records the thread that works in the worktree.
func (w *Worktree) Owner(thread string) error {
	w.Thread = thread
	return w.write()
}

func (w *Worktree) recordFile() string { return w.Path + ".json" }

func (w *Worktree) write() error {
	data, err := json.Marshal(w.Record)
	if err == nil {
		err = safefile.Write(w.recordFile(), data, 0o600)
	}
	return err
}

// describe fills the record of a worktree that was just made, in which nothing has run yet.
func (w *Worktree) describe(m *mirror) error {
	gitDir, _, err := folders(w.Path)
	if err == nil {
		gitDir, err = filepath.EvalSymlinks(gitDir)
	}
	if err != nil {
		return err
	}
	if filepath.Dir(gitDir) != filepath.Join(m.commonDir, "worktrees") {
		return fmt.Errorf("the git folder of the worktree is %s", gitDir)
	}
	w.Root, w.CommonDir, w.GitDir = m.root, m.commonDir, gitDir
	return nil
}

// forget removes the record.
func (w *Worktree) forget() error {
	err := os.Remove(w.recordFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// mirror returns the mirror of the worktree, as its record describes it. The caller must call remove.
func (w *Worktree) mirror() (*mirror, error) {
	m := &mirror{root: w.Path, place: w.scratch, gitDir: w.GitDir, commonDir: w.CommonDir}
	m.settings = map[string]string{}
	var err error
	m.program, err = w.scratch.find(w.Path, w.Root)
	return m, err
}

// tip returns the commit of the branch.
func (w *Worktree) tip(ctx context.Context) (string, error) {
	if commit, branch, plain := plainHead(w.GitDir, w.CommonDir); plain && branch == w.Branch {
		return commit, nil
	}
	m, err := w.mirror()
	if err != nil {
		return "", err
	}
	commit, err := m.commit(ctx, "refs/heads/"+w.Branch)
	return commit, errors.Join(err, m.remove())
}
