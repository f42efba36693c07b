package git

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/setting"
)

// Limits of a look. Those of a folder without a repository are lower, because git must
// read all of its files.
const (
	maxBytes    = 256 << 20 // bytes of the files that differ from the index, so that git must read them
	ownShare    = 20        // without a repository one of 20 files
	maxOwnBytes = 64 << 20
	maxContent  = 16 << 20 // bytes of one file; a larger one is compared by its size and times
)

// ErrLarge is wrapped by the error for a folder that is too large for a look.
var ErrLarge = errors.New("too large for a snapshot")

// look is the content of one folder at a moment: the whole working tree of a repository without
// ignored files, or a folder without one.
type look struct {
	*mirror
	at            string // the path as in the changes, with a slash at its end; "" for the first
	gone          string // why it could not be looked at or compared
	files         int    // how many files git may read
	before, after content
	changes       []Change // first those of stored files, in git's order
}

// content is what is in a folder, as far as it differs from the index: before from that of the repository,
// and after from that of the look.
type content struct {
	seen    map[string]stat  // the files that differ or are new, and those that are gone
	others  map[string]other // what git does not store
	ignored []string         // files that git ignores; a folder ends with a slash
	unread  []Gap

	// Of the look alone.
	begin    time.Time
	modules  map[string]bool // the submodules of the index
	folders  map[string]folder
	converts bool   // git may change files when it stores them
	tree     string // of the index
}

// stat is what the file system says of a file, without links. The zero value is that of no file.
type stat struct {
	exists            bool
	known             bool // the index has it
	mode              fs.FileMode
	size              int64
	modified, changed int64 // in nanoseconds since 1970; a program cannot set changed, which is 0 where it is not known
	inode             uint64
}

// now describes a file.
func (m *mirror) now(name string) (s stat) {
	file := m.path(name)
	if info, err := os.Lstat(file); err == nil {
		s = stat{exists: true, mode: info.Mode(), size: info.Size(), modified: info.ModTime().UnixNano()}
		s.changed, s.inode = changed(file)
	}
	return s
}

// isFile reports whether there is a file that git stores.
func (s stat) isFile() bool {
	return s.exists && (s.mode.IsRegular() || s.mode.Type() == fs.ModeSymlink)
}

// other is what git does not store: a file that is too large or cannot be read, a special file, or
// another repository, whose name ends with a slash.
type other struct {
	why string // it is not in a diff
	is  stat   // what shows that it has changed
}

// Reasons why git does not store a file.
const (
	tooLarge        = "too large"
	notStored       = tooLarge + ", or it cannot be read"
	specialFile     = "a special file"
	otherRepository = "another repository"
)

// take looks at a folder. Then the index has all of its files.
func take(ctx context.Context, root string, o *Options) (*look, error) {
	l := &look{files: cmp.Or(o.Files, setting.DefaultFiles), before: content{begin: time.Now(), modules: map[string]bool{}, folders: map[string]folder{}}}
	m, err := o.Scratch.open(root)
	if err != nil {
		return nil, err
	}
	if l.mirror = m; m.gitDir == "" {
		l.files /= ownShare
	}
	if err = l.lay(ctx); err == nil {
		err = l.see(ctx, &l.before)
	}
	if err == nil {
		err = l.store(ctx, &l.before)
	}
	if err == nil {
		err = l.age()
	}
	if err != nil {
		return nil, errors.Join(err, l.remove())
	}
	return l, nil
}

// call runs git on the mirror, which has the copy of the index.
func (l *look) call(ctx context.Context, c call, args ...string) (string, error) {
	if l.gitDir != "" && !exists(l.gitDir) {
		return "", errors.New("its repository is gone")
	}
	return l.mirror.call(ctx, c, args...)
}

// status asks git what differs from the index. The comparison with the commit, which nobody reads, fails if
// its objects are missing. Then it is done without a commit.
func (l *look) status(ctx context.Context) (string, error) {
	args := []string{"status", "--porcelain=v2", "-z", "--no-renames", "--untracked-files=normal", "--ignored=traditional", "--ignore-submodules=dirty"}
	out, err := l.call(ctx, call{}, args...)
	if err != nil && ctx.Err() == nil && l.scratch != "" {
		if err = os.WriteFile(filepath.Join(l.folder(), "HEAD"), []byte("ref: refs/heads/none/codex-mcp\n"), 0o600); err == nil {
			out, err = l.call(ctx, call{}, args...)
		}
	}
	return out, err
}

// see finds what differs from the index, and what git does not store.
func (l *look) see(ctx context.Context, r *content) error {
	r.seen, r.others = map[string]stat{}, map[string]other{}
	t := tour{l: l, r: r, ctx: ctx, skip: map[string]bool{}, fresh: map[string]bool{}}
	if _, err := os.Stat(l.root); err != nil {
		return err
	}
	out, err := l.status(ctx)
	if err != nil {
		return err
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(out, "\x00"), "\x00") {
		kind, name, _ := strings.Cut(line, " ")
		switch {
		case kind == "!":
			t.skip[name] = true
			r.ignored = append(r.ignored, name)
		case kind == "?" && strings.HasSuffix(name, "/"):
			t.fresh[name] = true
		case kind == "?":
			t.add(name, l.now(name))
		case len(line) > 4 && line[3] != '.': // fields, as many as the kind has, and the name
			fields := strings.SplitN(line, " ", map[string]int{"1": 9, "u": 11}[kind])
			name = fields[len(fields)-1]
			if !filepath.IsLocal(filepath.FromSlash(name)) {
				return errors.New("the index cannot be read")
			}
			var s stat
			if line[3] != 'D' { // or it is behind a link
				s = l.now(name)
			}
			s.known = true
			t.add(name, s)
		}
	}
	t.read("", false)
	return context.Cause(ctx)
}

// tour is a way through a folder.
type tour struct {
	l     *look
	r     *content
	ctx   context.Context
	skip  map[string]bool // what git ignores
	fresh map[string]bool // folders without files of the index
}

// add adds a file that differs.
func (t *tour) add(name string, s stat) {
	t.r.seen[name] = s
	t.l.before.converts = t.l.before.converts || gives(name)
}

// folder is a folder at the look, and the folders in it.
type folder struct {
	is stat
	in []string
}

// same reports whether a folder has the names that it had at the look, and visits the folders in it if so.
func (t *tour) same(dir string) bool {
	f, before := t.l.before.folders[dir], &t.l.before
	if f.is.changed == 0 || f.is != t.l.now(dir) || f.is.changed >= before.begin.Add(-coarse).UnixNano() {
		return false
	}
	for name, o := range before.others {
		if o.why == specialFile && path.Dir(name) == path.Clean(dir) {
			t.r.others[name] = o
		}
	}
	for _, name := range f.in {
		t.folder(name, false)
	}
	return true
}

// read finds what git does not store in a folder, and all files if it is a new one. It does not look into other
// repositories and into what git ignores.
func (t *tour) read(dir string, fresh bool) {
	if t.r == &t.l.after && !fresh && t.same(dir) {
		return
	}
	f := folder{is: t.l.now(dir)}
	entries, err := os.ReadDir(t.l.path(dir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.r.unread = append(t.r.unread, Gap{strings.TrimPrefix(dir+"/", "/"), "it cannot be read"})
	}
	for _, e := range entries {
		kind := e.Type()
		if kind.IsRegular() && !fresh {
			continue
		}
		name := path.Join(dir, e.Name())
		switch {
		case e.Name() == ".git", t.skip[name], t.ctx.Err() != nil:
		case kind.IsDir():
			f.in = append(f.in, name)
			t.folder(name, fresh)
		case !kind.IsRegular() && kind != fs.ModeSymlink:
			t.r.others[name] = other{specialFile, stat{mode: kind}}
		case fresh:
			t.add(name, t.l.now(name))
		}
	}
	if err == nil && t.r == &t.l.before {
		t.r.folders[dir] = f
	}
}

// folder looks at a folder in a folder.
func (t *tour) folder(name string, fresh bool) {
	switch {
	case t.skip[name+"/"], t.l.inScratch(name):
	case isTop(t.l.path(name)):
		t.r.others[name+"/"] = other{why: otherRepository}
	case t.l.before.modules[name]:
		if entries, err := os.ReadDir(t.l.path(name)); err == nil && len(entries) > 0 {
			t.r.unread = append(t.r.unread, Gap{name + "/", "it is a submodule without a repository"})
		}
	default:
		t.read(name, fresh || t.fresh[name+"/"] || t.r.seen[name].known) // or it was a file
	}
}

// onePack makes git write one pack. An object file for each of many files takes three times as long.
// Git writes large files to a pack, so all files count as large.
var onePack = []string{"-c", "core.bigFileThreshold=1"}

// split says which of the files that differ git reads, and which it takes from the index.
func (l *look) split(r *content) (present, gone []string, err error) {
	left := int64(maxBytes)
	if l.gitDir == "" {
		left = maxOwnBytes
	}
	for _, name := range slices.Sorted(maps.Keys(r.seen)) {
		s, before := r.seen[name], l.before.seen[name]
		switch {
		case s.isFile() && s.mode.IsRegular() && s.size > maxContent:
			r.others[name] = other{notStored, s}
		case s.isFile(), s.exists && s.mode.IsDir() && l.before.modules[name]:
			left -= s.size
			present = append(present, name)
			if r == &l.after && before.exists && s.size == before.size && inSecond(s.changed, before.changed) {
				gone = append(gone, name) // or git may take it for the one of the look
			}
		default:
			gone = append(gone, name)
		}
	}
	switch {
	case len(r.seen) > l.files:
		err = fmt.Errorf("%w: %d files, and at most %d may be read", ErrLarge, len(r.seen), l.files)
	case left < 0:
		err = fmt.Errorf("%w: its new and changed files have too many bytes", ErrLarge)
	}
	return present, gone, err
}

// store puts the files that differ into the index.
func (l *look) store(ctx context.Context, r *content) error {
	present, gone, err := l.split(r)
	if err == nil {
		err = l.update(ctx, gone, "--force-remove")
	}
	if err == nil {
		left := maxRefused
		err = l.storeEach(ctx, present, r, &left)
	}
	return err
}

// maxRefused bounds the files that git cannot store.
const maxRefused = 100

// storeEach stores files. Git fails if it cannot read one, or if one does not have the encoding that
// .gitattributes says: then it gets half of them.
func (l *look) storeEach(ctx context.Context, names []string, r *content, left *int) error {
	err := l.update(ctx, names, "--add", "--remove", "--replace")
	switch half := len(names) / 2; {
	case err == nil || ctx.Err() != nil || *left == 0:
		return err
	case half == 0:
		*left--
		r.others[names[0]] = other{notStored, r.seen[names[0]]}
		return nil
	default:
		return cmp.Or(l.storeEach(ctx, names[:half], r, left), l.storeEach(ctx, names[half:], r, left))
	}
}

// update changes the files of the index that are named.
func (l *look) update(ctx context.Context, names []string, flags ...string) error {
	if len(names) == 0 {
		return nil
	}
	_, err := l.call(ctx, call{options: onePack, stdin: zeros(names)}, slices.Concat([]string{"update-index"}, flags, []string{"-z", "--stdin"})...)
	return err
}
