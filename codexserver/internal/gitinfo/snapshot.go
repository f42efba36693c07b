package gitinfo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/codexserver/internal/regularfile"
)

// Limits of a snapshot. Those of a folder without a repository are lower, because git must
// read all of its files.
const (
	maxFiles    = 100_000   // files that differ from the index, so that git must read them
	maxBytes    = 256 << 20 // bytes of these files together
	maxOwnFiles = 5_000     // the same without a repository
	maxOwnBytes = 64 << 20
	maxContent  = 16 << 20 // bytes of one file; a larger one is compared by its size and times
)

// ErrLarge is wrapped by the error for a folder that is too large for a snapshot.
var ErrLarge = errors.New("too large for a snapshot")

// Snapshot is the content of a folder at one moment, to compare with later ones. In a
// repository it is the whole working tree without ignored files. It is not safe for
// concurrent use.
type Snapshot struct {
	root    string
	scratch string
	own     bool // there is no repository
	mirror  *mirror
	tree    string // git's tree of the content
	now     string // git's tree of the content when Compare was last called
	rest    rest
}

// rest describes files and repositories that are not in git's tree.
type rest struct {
	marks   map[string]mark // files that are too large, or cannot be read
	known   map[string]bool // files that are in the index and differ from it
	nested  map[string]bool // other repositories below the root
	modules map[string]bool // submodules
}

// mark shows whether a file has changed, without reading the file.
type mark struct {
	info    fs.FileInfo
	changed time.Time // when the inode changed, if the system reports it
}

func (m mark) equal(other mark) bool {
	return os.SameFile(m.info, other.info) && m.info.Size() == other.info.Size() &&
		m.info.ModTime().Equal(other.info.ModTime()) && m.changed.Equal(other.changed)
}

// Take takes a snapshot of the working tree that contains dir, an absolute path, or of dir
// itself outside a repository. If the folder is too large, the error wraps [ErrLarge].
// Scratch is as for [Read]. Remove deletes the snapshot's files there.
func Take(ctx context.Context, dir string, scratch git.Scratch) (*Snapshot, error) {
	// Other paths are compared with the root, so it must be a real path.
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	s := &Snapshot{root: Root(dir)}
	if s.own = s.root == ""; s.own {
		s.root = dir
	}
	var err error
	if s.mirror, err = newSnapshotMirror(ctx, s.root, scratch, s.own); err == nil {
		if s.scratch, err = filepath.EvalSymlinks(scratch.Dir); err == nil {
			s.tree, s.rest, err = s.read(ctx)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("gitinfo: snapshot: %w", errors.Join(err, s.Remove()))
	}
	return s, nil
}

// newSnapshotMirror makes a mirror with an index. Git uses only the mirror's configuration,
// so that the user's filters do not run. The user's global ignore patterns still count.
func newSnapshotMirror(ctx context.Context, root string, scratch git.Scratch, own bool) (m *mirror, err error) {
	if own {
		m, err = newEmptyMirror(ctx, root, scratch)
	} else {
		m, err = newMirror(ctx, root, scratch)
	}
	if err != nil {
		return m, err
	}
	if !own {
		if err := m.copyIndex(); err != nil {
			return m, err
		}
	}
	userSettings, err := m.git("", "config", "-z", "--get-regexp", `^core\.(excludesfile|autocrlf|eol)$`)
	if err != nil && ctx.Err() != nil {
		return m, err
	}
	m.program.Env = append(m.program.Env, "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1")
	m.options = []string{"-c", "core.untrackedCache=false", "-c", "core.splitIndex=false", "-c", "core.fsync=none", "-c", "core.looseCompression=0"}
	for entry := range strings.SplitSeq(userSettings, "\x00") { // git fails if none is set
		if key, value, ok := strings.Cut(entry, "\n"); ok && !strings.Contains(value, "\n") {
			m.options = append(m.options, "-c", key+"="+value)
		}
	}
	return m, nil
}

// newEmptyMirror makes an empty repository for a folder without one.
func newEmptyMirror(ctx context.Context, root string, scratch git.Scratch) (*mirror, error) {
	m := &mirror{ctx: ctx, root: root}
	var err error
	if m.program, err = scratch.Find(os.Environ(), m.root); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(scratch.Dir, 0o700); err != nil {
		return nil, err
	}
	return m, m.make(scratch.Dir, nil)
}

// Root returns the top of the working tree, or the folder itself outside a repository.
func (s *Snapshot) Root() string { return s.root }

// Covers reports whether Compare finds changes of the file at an absolute path. It does
// not cover files outside the root and in other repositories below it.
func (s *Snapshot) Covers(file string) bool {
	rel, err := filepath.Rel(s.root, file)
	if err != nil || !filepath.IsLocal(rel) {
		return false
	}
	for name := filepath.ToSlash(rel); name != "."; name = path.Dir(name) {
		if s.rest.nested[name] || s.rest.modules[name] {
			return false
		}
	}
	return true
}

// Complete reports whether Compare finds all changes below the root.
func (s *Snapshot) Complete() bool { return !s.own || len(s.rest.nested) == 0 }

// Remove deletes the snapshot.
func (s *Snapshot) Remove() error {
	if s.mirror == nil {
		return nil
	}
	return s.mirror.remove()
}

// read updates the mirror's index from the folder, and writes its tree.
func (s *Snapshot) read(ctx context.Context) (tree string, r rest, err error) {
	s.mirror.ctx = ctx
	names, r, err := s.stale()
	if err != nil {
		return "", r, err
	}
	present, gone, err := s.sort(names, &r)
	if err != nil {
		return "", r, err
	}
	if err = s.index(present); err != nil && ctx.Err() == nil {
		err = s.index(s.markUnreadable(present, &r))
	}
	if err != nil {
		return "", r, err
	}
	if len(gone) > 0 {
		if _, err := s.mirror.git(zeros(gone), "update-index", "--force-remove", "-z", "--stdin"); err != nil {
			return "", r, err
		}
	}
	tree, err = s.mirror.git("", "write-tree", "--missing-ok")
	return strings.TrimSpace(tree), r, err
}

// index adds files to git's index. Git would write an object file for each, which takes
// three times as long as one pack for many files. It writes large files to a pack, so
// index makes all files count as large.
func (s *Snapshot) index(names []string) error {
	if len(names) == 0 {
		return nil
	}
	m := *s.mirror
	m.options = append(slices.Clone(m.options), "-c", "core.bigFileThreshold=1")
	_, err := m.git(zeros(names), "update-index", "--add", "--remove", "--replace", "-z", "--stdin")
	return err
}

// stale returns the files that differ from the index, and those that it does not have. It
// also looks at files that the index marks as unchanged.
func (s *Snapshot) stale() (names []string, r rest, err error) {
	r = rest{marks: map[string]mark{}, known: map[string]bool{}, nested: map[string]bool{}, modules: map[string]bool{}}
	list, err := s.mirror.git("", "ls-files", "-z", "-v", "--stage", "--others", "--exclude-standard")
	if err != nil {
		return nil, r, err
	}
	var assumed, skipped []string
	for entry := range strings.SplitSeq(list, "\x00") {
		if entry == "" {
			continue
		}
		tag, name := entry[0], entry[min(2, len(entry)):]
		if tag == '?' {
			if dir, isDir := strings.CutSuffix(name, "/"); isDir {
				r.nested[dir] = true
			} else if !s.inScratch(name) {
				names = append(names, name)
			}
			continue
		}
		stage, name, _ := strings.Cut(name, "\t")
		if strings.HasPrefix(stage, "160000 ") {
			r.modules[name] = true
		}
		if tag >= 'a' {
			assumed = append(assumed, name)
		}
		if tag == 'S' || tag == 's' {
			if _, err := os.Lstat(s.path(name)); err == nil {
				skipped = append(skipped, name)
			}
		}
	}
	for flag, flagged := range map[string][]string{"--no-assume-unchanged": assumed, "--no-skip-worktree": skipped} {
		if len(flagged) == 0 {
			continue
		}
		if _, err := s.mirror.git(zeros(flagged), "update-index", flag, "-z", "--stdin"); err != nil {
			return nil, r, err
		}
	}
	dirty, err := s.mirror.git("", "diff-files", "-z", "--name-only", "--no-renames", "--ignore-submodules=dirty")
	if err != nil {
		return nil, r, err
	}
	for name := range strings.SplitSeq(dirty, "\x00") {
		if name != "" && !r.known[name] { // git names a file in conflict twice
			r.known[name] = true
			names = append(names, name)
		}
	}
	return names, r, nil
}

// inScratch reports whether a file belongs to a mirror.
func (s *Snapshot) inScratch(name string) bool {
	rel, err := filepath.Rel(s.scratch, s.path(name))
	return err == nil && filepath.IsLocal(rel)
}

func (s *Snapshot) path(name string) string { return filepath.Join(s.root, filepath.FromSlash(name)) }

// sort separates the files that git must read from those that it cannot store, and marks
// those that are too large.
func (s *Snapshot) sort(names []string, r *rest) (present, gone []string, err error) {
	files, bytes := maxFiles, int64(maxBytes)
	if s.own {
		files, bytes = maxOwnFiles, maxOwnBytes
	}
	if len(names) > files {
		return nil, nil, fmt.Errorf("%w: %d files", ErrLarge, len(names))
	}
	for _, name := range names {
		if s.mirror.ctx.Err() != nil {
			return nil, nil, context.Cause(s.mirror.ctx)
		}
		info, err := os.Lstat(s.path(name))
		switch {
		case err != nil || info.Mode()&os.ModeSymlink != 0 || r.modules[name]:
			present = append(present, name)
		case !info.Mode().IsRegular(): // git reports that the file is deleted
			gone = append(gone, name)
		case info.Size() > maxContent:
			r.marks[name] = mark{info, changeTime(info)}
		default:
			if bytes -= info.Size(); bytes < 0 {
				return nil, nil, fmt.Errorf("%w: its new and changed files have too many bytes", ErrLarge)
			}
			present = append(present, name)
		}
	}
	return present, gone, nil
}

// markUnreadable marks the files that cannot be read, and returns the others.
func (s *Snapshot) markUnreadable(names []string, r *rest) []string {
	return slices.DeleteFunc(names, func(name string) bool {
		info, err := os.Lstat(s.path(name))
		if err != nil || !info.Mode().IsRegular() {
			return false
		}
		f, err := regularfile.Open(s.path(name))
		if err == nil {
			f.Close()
			return false
		}
		r.marks[name] = mark{info, changeTime(info)}
		return true
	})
}

// zeros joins names as a command reads them from its input.
func zeros(names []string) string { return strings.Join(names, "\x00") + "\x00" }
