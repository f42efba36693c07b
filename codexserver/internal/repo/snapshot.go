package repo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/internal/safefile"
)

// Limits of a snapshot. Those of a folder without a repository are lower, because git must
// read all of its files.
const (
	maxFiles    = 100_000   // files that differ from the index, so that git must read them
	maxBytes    = 256 << 20 // bytes of these files together
	ownShare    = 20        // without a repository one of 20 files
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
	files   int  // how many files git may read
	private *private
	begin   time.Time // when the snapshot was begun; zero until it is taken
	tree    string    // git's tree of the content
	rest    rest

	// Of the last Compare.
	now    string   // git's tree of the content
	later  rest     // what is not in that tree
	stored []Change // what differs between the trees, in git's order
	others []Change // the other changes
}

// rest describes files and repositories that are not in git's tree.
type rest struct {
	marks   map[string]mark // files that are too large, or cannot be read
	known   map[string]bool // files that are in the index and differ from it
	nested  map[string]bool // other repositories below the root
	modules map[string]bool // submodules: true if there is a repository
	seen    oddities
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
func Take(ctx context.Context, dir string, scratch Scratch) (*Snapshot, error) {
	return take(ctx, dir, scratch, 0)
}

// take is Take with a limit of files that git must read. 0 means the default.
func take(ctx context.Context, dir string, scratch Scratch, files int) (*Snapshot, error) {
	// Other paths are compared with the root, so it must be a real path.
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	s := &Snapshot{root: Root(dir), files: cmp.Or(files, maxFiles)}
	if s.own = s.root == ""; s.own {
		s.root, s.files = dir, s.files/ownShare
	}
	var err error
	begin := time.Now()
	if s.private, err = newSnapshotFolder(ctx, s.root, scratch, s.own); err == nil {
		if s.scratch, err = filepath.EvalSymlinks(scratch.Dir); err == nil {
			s.tree, s.rest, err = s.read(ctx)
			s.begin = begin
		}
	}
	if err != nil {
		return nil, fmt.Errorf("repo: snapshot: %w", errors.Join(err, s.Remove()))
	}
	return s, nil
}

// newSnapshotFolder makes a private git folder with an index. Git uses only its configuration,
// so that the user's filters do not run.
func newSnapshotFolder(ctx context.Context, root string, scratch Scratch, own bool) (p *private, err error) {
	if own {
		var program program
		if program, err = scratch.find(os.Environ(), root); err == nil {
			err = os.MkdirAll(scratch.Dir, 0o700)
		}
		if err == nil {
			p, err = scratch.temporary(ctx, source{root: root, program: program})
		}
	} else if p, err = scratch.mirror(ctx, root); err == nil {
		err = copyIndex(p.dir, p.gitDir)
	}
	if err == nil {
		p.options = []string{"-c", "core.fsync=none", "-c", "core.looseCompression=0"}
		err = p.isolate(ctx)
	}
	return p, err
}

// converts reports whether git converts the line ends of files without an attribute.
func (p *private) converts() bool {
	value := p.settings["core.autocrlf"]
	return value != "" && !slices.Contains([]string{"false", "no", "off", "0"}, strings.ToLower(value))
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
		if _, module := s.rest.modules[name]; module || s.rest.nested[name] {
			return false
		}
	}
	return true
}

// Remove deletes the snapshot.
func (s *Snapshot) Remove() error {
	if s.private == nil {
		return nil
	}
	return s.private.remove()
}

// read updates the mirror's index from the folder, and writes its tree.
func (s *Snapshot) read(ctx context.Context) (tree string, r rest, err error) {
	names, r, err := s.stale(ctx)
	if err != nil {
		return "", r, err
	}
	if tree = cmp.Or(s.now, s.tree); tree == "" || len(names) > 0 {
		tree, err = s.store(ctx, names, &r)
	}
	return tree, r, err
}

// store adds the content of files to the mirror's index, and writes its tree.
func (s *Snapshot) store(ctx context.Context, names []string, r *rest) (tree string, err error) {
	present, gone, err := s.sort(ctx, names, r)
	if err != nil {
		return "", err
	}
	// Git would write an object file for each file, which takes three times as long as one
	// pack for many. It writes large files to a pack, so all files count as large.
	c := call{options: []string{"-c", "core.bigFileThreshold=1"}}
	if err = s.private.store(ctx, c, present, gone); err != nil && ctx.Err() == nil {
		err = s.private.store(ctx, c, s.markUnreadable(present, r), nil)
	}
	if err != nil {
		return "", err
	}
	return s.private.line(ctx, call{}, "write-tree", "--missing-ok")
}

// stale returns the files that differ from the index, and those that it does not have. It
// also looks at files that the index marks as unchanged.
func (s *Snapshot) stale(ctx context.Context) (names []string, r rest, err error) {
	r = rest{marks: map[string]mark{}, known: map[string]bool{}, nested: map[string]bool{}, modules: map[string]bool{}}
	x, err := s.private.index(ctx)
	if err != nil {
		return nil, r, err
	}
	for i := range x {
		if x[i].isModule() {
			r.modules[x[i].name] = s.isRepository(x[i].name)
		}
	}
	if err := s.unmark(ctx, x); err != nil {
		return nil, r, err
	}
	var walk sync.WaitGroup
	var walkErr error
	walk.Go(func() { names, walkErr = s.see(ctx, x, &r) })
	dirty, err := s.private.git(ctx, call{}, "diff-files", "-z", "--name-only", "--no-renames", "--ignore-submodules=dirty")
	walk.Wait()
	if err = cmp.Or(err, walkErr); err != nil {
		return nil, r, err
	}
	for name := range strings.SplitSeq(dirty, "\x00") {
		if name != "" && !r.known[name] { // git names a file in conflict twice
			r.known[name] = true
			names = append(names, name)
		}
	}
	again, err := s.again(ctx, x, &r)
	return append(names, again...), r, err
}

// unmark makes git look at the files that the index marks as unchanged.
func (s *Snapshot) unmark(ctx context.Context, x index) error {
	var assumed, skipped []string
	for i := range x {
		if x[i].assumed {
			assumed = append(assumed, x[i].name)
		}
		if x[i].skipped {
			if _, err := os.Lstat(s.path(x[i].name)); err == nil {
				skipped = append(skipped, x[i].name)
			}
		}
	}
	for flag, flagged := range map[string][]string{"--no-assume-unchanged": assumed, "--no-skip-worktree": skipped} {
		if len(flagged) == 0 {
			continue
		}
		if _, err := s.private.git(ctx, call{stdin: zeros(flagged)}, "update-index", flag, "-z", "--stdin"); err != nil {
			return err
		}
	}
	return nil
}

// again returns files that git takes for unchanged, although their inodes have changed since
// about the snapshot: many builds of git compare times in seconds, and programs can set the
// time of a file. Git sees it if the inode had changed seconds before the snapshot. Again
// removes the files from the mirror's index.
func (s *Snapshot) again(ctx context.Context, x index, r *rest) ([]string, error) {
	if s.begin.IsZero() {
		return nil, nil
	}
	since := s.begin.Add(-2 * time.Second)
	var names []string
	for i := range x {
		if int64(x[i].changed) < since.Unix() || r.known[x[i].name] {
			continue
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		name := x[i].name
		info, err := os.Lstat(s.path(name))
		if err == nil && info.Mode().IsRegular() && changeTime(info).After(since) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil, nil
	}
	return names, s.private.store(ctx, call{}, nil, names)
}

// inScratch reports whether a file belongs to a mirror.
func (s *Snapshot) inScratch(name string) bool {
	rel, err := filepath.Rel(s.scratch, s.path(name))
	return err == nil && filepath.IsLocal(rel)
}

func (s *Snapshot) path(name string) string { return filepath.Join(s.root, filepath.FromSlash(name)) }

// sort separates the files that git must read from those that it cannot store, and marks
// those that are too large.
func (s *Snapshot) sort(ctx context.Context, names []string, r *rest) (present, gone []string, err error) {
	bytes := int64(maxBytes)
	if s.own {
		bytes = maxOwnBytes
	}
	if len(names) > s.files {
		return nil, nil, fmt.Errorf("%w: %d files, and at most %d may be read", ErrLarge, len(names), s.files)
	}
	links := map[string]bool{}
	for _, name := range names {
		if ctx.Err() != nil {
			return nil, nil, context.Cause(ctx)
		}
		info, err := os.Lstat(s.path(name))
		_, module := r.modules[name]
		switch {
		case s.behindLink(path.Dir(name), links):
			gone = append(gone, name)
		case err != nil || info.Mode()&os.ModeSymlink != 0 || module:
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

// behindLink reports whether a folder below the root is or lies behind a symbolic link, and
// remembers it.
func (s *Snapshot) behindLink(dir string, known map[string]bool) bool {
	if dir == "." {
		return false
	}
	is, ok := known[dir]
	if !ok {
		info, err := os.Lstat(s.path(dir))
		is = err == nil && info.Mode()&os.ModeSymlink != 0 || s.behindLink(path.Dir(dir), known)
		known[dir] = is
	}
	return is
}

// markUnreadable marks the files that cannot be read, and returns the others.
func (s *Snapshot) markUnreadable(names []string, r *rest) []string {
	return slices.DeleteFunc(names, func(name string) bool {
		info, err := os.Lstat(s.path(name))
		if err != nil || !info.Mode().IsRegular() {
			return false
		}
		f, err := safefile.Open(s.path(name))
		if err == nil {
			f.Close()
			return false
		}
		r.marks[name] = mark{info, changeTime(info)}
		return true
	})
}
