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

	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/internal/paths"
	"github.com/codexmcp/codexmcp/internal/safefile"
)

// Limits of a snapshot. Those of a folder without a repository are lower, because git must
// read all of its files.
const (
	maxBytes    = 256 << 20 // bytes of the files that differ from the index, so that git must read them
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
	quiet   *still    // instead of private, as long as the tree is still
	begin   time.Time // when the snapshot was begun; zero until it is taken
	before  content
	touched map[string]indexed // what the index had of files that were written since

	// Of the last Compare.
	after  content
	stored []Change // what differs between the trees, in git's order
	others []Change // the other changes
	unsure []string // files whose line ends or encoding may have changed
}

// content is what is in a folder: the files of git's tree, and what git does not store.
type content struct {
	tree    string
	marks   map[string]mark // files that are too large, or cannot be read
	known   map[string]bool // files that are in the index and differ from it
	nested  map[string]bool // other repositories below the root
	modules map[string]bool // submodules: true if there is a repository
	seen    oddities
	bare    bool   // no file has attributes
	patch   string // the diff to it, with renames, or "" if git has not printed it yet
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
	return take(ctx, dir, scratch, 0, false)
}

// take is Take with a limit of files that git must read, 0 for the default. With own it does
// not use the repository that contains dir.
func take(ctx context.Context, dir string, scratch Scratch, files int, own bool) (*Snapshot, error) {
	// Other paths are compared with the root, so it must be a real path.
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	s := &Snapshot{files: cmp.Or(files, setting.DefaultFiles)}
	if !own {
		s.root = Root(dir)
	}
	if s.own = s.root == ""; s.own {
		s.root, s.files = dir, s.files/ownShare
	}
	begin := time.Now()
	err := s.take(ctx, scratch, begin)
	if s.begin = begin; err != nil {
		return nil, fmt.Errorf("repo: snapshot: %w", errors.Join(err, s.Remove()))
	}
	return s, nil
}

// take fills the snapshot.
func (s *Snapshot) take(ctx context.Context, scratch Scratch, begin time.Time) (err error) {
	r := source{root: s.root}
	if !s.own {
		r, err = scratch.locate(s.root)
	} else if r.program, err = scratch.find(os.Environ(), s.root); err == nil {
		err = os.MkdirAll(scratch.Dir, 0o700)
	}
	if err != nil {
		return err
	}
	if s.scratch, err = filepath.EvalSymlinks(scratch.Dir); err != nil {
		return err
	}
	if s.quiet = s.still(ctx, r, scratch, begin); s.quiet != nil {
		return nil
	}
	if err = r.configure(ctx, scratch.Dir); err != nil {
		return err
	}
	if s.private, err = scratch.reserve(r); err != nil {
		return err
	}
	if err = s.private.prepare(ctx); err != nil {
		return err
	}
	if !s.own {
		if err = copyIndex(s.private.dir, r.gitDir); err != nil {
			return err
		}
	}
	s.before, err = s.read(ctx, nil)
	return err
}

// prepare makes the private git folder of a snapshot, without an index. Git uses only its
// configuration, so that the user's filters do not run.
func (p *private) prepare(ctx context.Context) error {
	if err := p.make(ctx); err != nil {
		return err
	}
	p.options = []string{"-c", "core.fsync=none", "-c", "core.looseCompression=0"}
	return p.isolate(ctx)
}

// converts reports whether git converts the line ends of files without an attribute.
func (p *private) converts() bool {
	value := p.settings["core.autocrlf"]
	return value != "" && !isFalse(value)
}

// Root returns the top of the working tree, or the folder itself outside a repository.
func (s *Snapshot) Root() string { return s.root }

// Covers reports whether Compare finds changes of the file at an absolute path. It does
// not cover files outside the root and in other repositories below it.
func (s *Snapshot) Covers(file string) bool {
	rel, ok := paths.Within(file, s.root)
	if !ok {
		return false
	}
	for name := filepath.ToSlash(rel); name != "."; name = path.Dir(name) {
		if _, module := s.before.modules[name]; module || s.before.nested[name] {
			return false
		}
	}
	return true
}

// Remove deletes the snapshot.
func (s *Snapshot) Remove() error {
	var err error
	if s.quiet != nil {
		err = s.quiet.remove()
	}
	if s.private != nil {
		err = errors.Join(err, s.private.remove())
	}
	return err
}

// read updates the mirror's index from the folder, and writes its tree. What has changed is found,
// unless git must look for it.
func (s *Snapshot) read(ctx context.Context, found *newly) (r content, err error) {
	var names []string
	if found != nil {
		names, r = s.fresh(found)
	} else if names, r, err = s.stale(ctx); err != nil {
		return r, err
	}
	if r.tree = cmp.Or(s.after.tree, s.before.tree); r.tree == "" || len(names) > 0 {
		r.tree, err = s.store(ctx, names, &r)
	}
	return r, err
}

// onePack makes git write one pack. An object file for each of many files takes three times as long.
// Git writes large files to a pack, so all files count as large.
var onePack = []string{"-c", "core.bigFileThreshold=1"}

// store adds the content of files to the mirror's index, and writes its tree.
func (s *Snapshot) store(ctx context.Context, names []string, r *content) (tree string, err error) {
	present, gone, err := s.sort(ctx, names, r)
	if err != nil {
		return "", err
	}
	c := call{options: onePack}
	if err = s.private.store(ctx, c, present, gone); err != nil && ctx.Err() == nil {
		if present, err = s.markUnreadable(ctx, c, present, r); err == nil {
			err = s.private.store(ctx, c, present, nil)
		}
	}
	if err != nil {
		return "", err
	}
	return s.private.line(ctx, call{}, "write-tree", "--missing-ok")
}

// stale returns the files that differ from the index, and those that it does not have. It
// also looks at files that the index marks as unchanged.
func (s *Snapshot) stale(ctx context.Context) (names []string, r content, err error) {
	r = content{marks: map[string]mark{}, known: map[string]bool{}, nested: map[string]bool{}, modules: map[string]bool{}}
	x, err := s.private.index(ctx)
	if err != nil {
		return nil, r, err
	}
	for i := range x {
		if x[i].isModule() {
			r.modules[x[i].name] = s.isRepository(x[i].name)
		}
	}
	s.useModes(x)
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
	names = append(names, again...)
	s.touch(x, names)
	return names, r, err
}

// someFiles is how many files show whether a file system keeps modes.
const someFiles = 1000

// useModes makes git compare the modes of files, if core.fileMode is false although the file
// system keeps them: it does not if most files seem to be programs that are none.
func (s *Snapshot) useModes(x index) {
	if !s.begin.IsZero() || !isPosix || !isFalse(s.private.settings["core.filemode"]) {
		return
	}
	plain, programs := 0, 0
	for i := range x {
		if x[i].mode != 0o100644 || plain == someFiles {
			continue
		}
		if info, err := os.Lstat(s.path(x[i].name)); err == nil && info.Mode().IsRegular() {
			if plain++; info.Mode()&0o100 != 0 {
				programs++
			}
		}
	}
	if programs <= plain/2 {
		s.private.settings["core.filemode"] = "true"
		s.private.options = append(s.private.options, "-c", "core.fileMode=true")
	}
}

// touch remembers what the index has of files that were written since the snapshot.
func (s *Snapshot) touch(x index, names []string) {
	if s.begin.IsZero() {
		return
	}
	if s.touched == nil {
		s.touched = map[string]indexed{}
	}
	for _, name := range names {
		e := x.entry(name)
		if _, known := s.touched[name]; known || e == nil || e.isModule() {
			continue
		}
		if info, err := os.Lstat(s.path(name)); err == nil {
			if t := changeTime(info); e.nanos == 0 || t.Unix() != int64(e.changed) || t.Nanosecond() != int(e.nanos) {
				s.touched[name] = *e
			}
		}
	}
}

// unmark makes git look at the files that the index marks as unchanged. Of those that are not
// checked out, a file that is there only now was not there before: unmark removes it from the
// tree of the snapshot.
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
	if err := s.uncover(ctx, x, skipped); err != nil {
		return err
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

// uncover removes files from the tree of the snapshot, if it is taken. Submodules stay, because
// [Snapshot.compareSeen] returns them.
func (s *Snapshot) uncover(ctx context.Context, x index, names []string) error {
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return x.entry(name).isModule() })
	switch {
	case s.begin.IsZero() || len(names) == 0:
		return nil
	case len(names) > s.files:
		return fmt.Errorf("%w: %d files are newly checked out, and at most %d may be read", ErrLarge, len(names), s.files)
	}
	c := call{index: filepath.Join(s.private.scratch, "uncovered")}
	_, err := s.private.git(ctx, c, "read-tree", s.before.tree)
	if err == nil {
		err = s.private.store(ctx, c, nil, names)
	}
	if err != nil {
		return err
	}
	if s.after.tree == "" {
		s.after.tree = s.before.tree // that of the index
	}
	s.before.tree, err = s.private.line(ctx, c, "write-tree", "--missing-ok")
	return err
}

// again returns files that git takes for unchanged, although their inodes have changed since
// about the snapshot: many builds of git compare times in seconds, and programs can set the
// time of a file. Git sees it if the inode had changed seconds before the snapshot. Again
// removes the files from the mirror's index.
func (s *Snapshot) again(ctx context.Context, x index, r *content) ([]string, error) {
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
			names, r.known[name] = append(names, name), true
		}
	}
	if len(names) == 0 {
		return nil, nil
	}
	return names, s.private.store(ctx, call{}, nil, names)
}

// inScratch reports whether a file belongs to a mirror.
func (s *Snapshot) inScratch(name string) bool {
	return paths.Below(s.path(name), s.scratch)
}

func (s *Snapshot) path(name string) string { return filepath.Join(s.root, filepath.FromSlash(name)) }

// sort separates the files that git must read from those that it cannot store, and marks
// those that are too large.
func (s *Snapshot) sort(ctx context.Context, names []string, r *content) (present, gone []string, err error) {
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

// maxEncoded bounds the files that are stored one by one because they have an encoding.
const maxEncoded = 100

// markUnreadable marks the files that cannot be read, and those that do not have the encoding
// that .gitattributes says, at which git fails. It returns the others.
func (s *Snapshot) markUnreadable(ctx context.Context, c call, names []string, r *content) ([]string, error) {
	wrong := map[string]bool{}
	err := s.private.attributes(ctx, call{}, names, []string{"working-tree-encoding"}, func(file, _, value string) {
		if value != "unspecified" && value != "unset" {
			wrong[file] = len(wrong) >= maxEncoded || s.private.store(ctx, c, []string{file}, nil) != nil
		}
	})
	return slices.DeleteFunc(names, func(name string) bool {
		info, err := os.Lstat(s.path(name))
		if err != nil || !info.Mode().IsRegular() {
			return false
		}
		if !wrong[name] {
			f, err := safefile.Open(s.path(name))
			if err == nil {
				f.Close()
				return false
			}
		}
		r.marks[name] = mark{info, changeTime(info)}
		return true
	}), err
}
