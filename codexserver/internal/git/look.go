package git

import (
	"cmp"
	"context"
	"encoding/hex"
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

	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/internal/paths"
	"github.com/codexmcp/codexmcp/internal/safefile"
)

// Limits of a look. Those of a folder without a repository are lower, because git must
// read all of its files.
const (
	defaultFiles = 100_000
	maxBytes     = 256 << 20 // bytes of the files that differ from the index, so that git must read them
	ownShare     = 20        // without a repository one of 20 files
	maxOwnBytes  = 64 << 20
	maxContent   = 16 << 20 // bytes of one file; a larger one is compared by its size and times
)

// errLarge begins the error for a folder that is too large for a look.
var errLarge = errors.New("too large for a snapshot")

// look is the content of one folder at a moment: the whole working tree of a repository without
// ignored files, or a folder without one.
type look struct {
	*mirror
	at    string // the path as in the changes, with a slash at its end; "" for the first
	gone  string // why it could not be looked at or compared
	files int    // how many files git may read
	// What was written from this moment on may have been written after the look, as the clock of the
	// file system and the one of this system show.
	since         time.Time
	index         index // the repository's own, as it was
	before, after content
	changes       []Change // first those of stored files, in git's order
}

// content is what is in a folder, as far as it differs from the first index.
type content struct {
	seen    map[string]stat  // the files that differ or are new, and those that are gone
	others  map[string]other // what git does not store
	ignored []string         // files that git ignores; a folder ends with a slash
	unread  []Gap
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

// take looks at a folder.
func take(ctx context.Context, root string, o *Options) (*look, error) {
	l := &look{files: cmp.Or(o.Files, defaultFiles), since: time.Now().Add(-coarse)}
	m, err := o.Scratch.open(root)
	if err == nil {
		err = box.Available() // git may not be needed before the comparison
	}
	if err != nil {
		return nil, err
	}
	if l.mirror = m; m.gitDir == "" {
		l.files /= ownShare
	}
	if err = l.readIndex(ctx); err == nil {
		l.before, err = l.see(ctx)
	}
	if err == nil {
		err = l.store(ctx, slices.Collect(maps.Keys(l.before.seen)), &l.before)
	}
	if err != nil {
		return nil, errors.Join(err, l.remove())
	}
	return l, nil
}

// git runs git on the mirror, which has the copy of the index.
func (l *look) git(ctx context.Context, c call, args ...string) (string, error) {
	if l.gitDir != "" && !exists(l.gitDir) {
		return "", errors.New("its repository is gone")
	}
	if err := l.lay(ctx); err != nil {
		return "", err
	}
	return l.mirror.git(ctx, c, args...)
}

// now describes a file, which is not behind a link.
func (l *look) now(name string) stat {
	file := l.path(name)
	s, err := lstat(file)
	if dir := filepath.Dir(file); err != nil || paths.Real(dir) != dir {
		return stat{}
	}
	return s
}

// see finds what differs from the first index, and looks at what differed before. Git runs for it
// once, if there are new files.
func (l *look) see(ctx context.Context) (content, error) {
	r := content{seen: map[string]stat{}, others: map[string]other{}}
	if _, err := os.Stat(l.root); err != nil {
		return r, err
	}
	t := tour{l: l, r: &r, ctx: ctx, unknown: map[string]stat{}}
	if err := t.read(""); err != nil {
		return r, err
	}
	for dir, files := range l.index.folders {
		for base, e := range files {
			if !e.met { // it is gone, or has another name on a disk without cases
				name := path.Join(dir, base)
				r.seen[name] = l.now(name)
			}
			e.met = false
		}
	}
	if err := t.ask(); err != nil {
		return r, err
	}
	for name, s := range t.unknown {
		if err := t.visit(name, s); err != nil {
			return r, err
		}
	}
	for name := range l.before.seen {
		if _, seen := r.seen[name]; !seen {
			r.seen[name] = l.now(name)
		}
	}
	return r, nil
}

// tour is a way through a folder.
type tour struct {
	l        *look
	r        *content
	ctx      context.Context
	unknown  map[string]stat // files and folders without files of the index
	replaced bool            // a file of the index is a folder, or the reverse
	skip     map[string]bool // what git ignores, once it has been asked
}

// read looks at what is in a folder, but for git's folder.
func (t *tour) read(dir string) error {
	if t.ctx.Err() != nil {
		return context.Cause(t.ctx)
	}
	in, prefix, files := map[string]stat{}, strings.TrimPrefix(dir+"/", "/"), t.l.index.folders[dir]
	var special error
	failed := readFolder(t.l.path(dir), func(base string, s stat) {
		switch e := files[base]; {
		case e != nil && t.l.index.isClean(e, s):
			e.met = true
		case !s.is(modeFile) && !s.is(modeLink) && !s.is(modeFolder) && isRead(base): // git could wait for it
			special = &safefile.KindError{Path: t.l.path(prefix + base), Mode: fs.ModeIrregular}
		case s.is(modeFolder):
			in[prefix+base] = s
		case base != ".git":
			_ = t.visit(prefix+base, s) // which fails only at folders
		}
	})
	if special != nil {
		return special
	}
	if failed != nil && !errors.Is(failed, fs.ErrNotExist) {
		t.r.unread = append(t.r.unread, Gap{dir + "/", "it cannot be read"})
	}
	for name, s := range in {
		if path.Base(name) == ".git" {
			continue
		}
		if err := t.visit(name, s); err != nil {
			return err
		}
	}
	return nil
}

// isRead reports whether git reads files of that name in each folder.
func isRead(base string) bool {
	return strings.EqualFold(base, ".gitattributes") || strings.EqualFold(base, ".gitignore")
}

// visit looks at a file, or at what is in a folder. It does not look into other repositories and into what git
// ignores. Git is asked about unknown files before they are visited again.
func (t *tour) visit(name string, s stat) error {
	e := t.l.index.entry(name)
	_, folder := t.l.index.folders[name]
	isFile := s.is(modeFile) || s.is(modeLink)
	t.l.index.attributes = t.l.index.attributes || e == nil && gives(name)
	switch {
	case e != nil && isFile && e.mode != modeModule:
		e.met = true
		t.r.seen[name] = s
	case e != nil && s.is(modeFolder) && e.mode == modeModule:
		e.met = true
		t.module(name, e, s)
	case s.is(modeFolder) && t.l.inScratch(name):
	case s.is(modeFolder) && folder:
		return t.read(name)
	case t.skip == nil:
		t.replaced = t.replaced || e != nil || folder
		t.unknown[name] = s
	case t.skip[name], t.skip[name+"/"]:
	case isFile:
		t.r.seen[name] = s
	case !s.is(modeFolder):
		t.r.others[name] = other{specialFile, stat{mode: s.mode & modeType}}
	case isTop(t.l.path(name)):
		t.r.others[name+"/"] = other{why: otherRepository}
	default:
		return t.read(name)
	}
	return nil
}

// module looks at a submodule.
func (t *tour) module(name string, e *entry, s stat) {
	gitDir, commonDir, err := folders(t.l.path(name))
	if err == nil {
		t.r.others[name+"/"] = other{why: otherRepository}
		if commit, _, ok := plainHead(gitDir, commonDir); !ok || commit != hex.EncodeToString([]byte(e.object)) {
			t.r.seen[name] = s
		}
	} else if entries, err := os.ReadDir(t.l.path(name)); err == nil && len(entries) > 0 {
		t.r.unread = append(t.r.unread, Gap{name + "/", "it is a submodule without a repository"})
	}
}

// maxNew is how many new files git looks at by name. With more it looks at all folders.
const maxNew = 100

// ask asks git which of the unknown files it ignores.
func (t *tour) ask() error {
	if len(t.unknown) == 0 {
		return nil
	}
	args := []string{"ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory"}
	if !t.replaced && len(t.unknown) <= maxNew { // git need not look into all folders for a few names
		args = slices.AppendSeq(append(args, "--"), maps.Keys(t.unknown))
	}
	out, err := t.l.git(t.ctx, call{}, args...)
	t.skip = map[string]bool{}
	within := "/" // a folder that git ignores, of which it lists the content too
	for name := range strings.SplitSeq(strings.TrimSuffix(out, "\x00"), "\x00") {
		if name == "" || strings.HasPrefix(name, within) {
			continue
		}
		t.skip[name] = true
		t.r.ignored = append(t.r.ignored, name)
		if strings.HasSuffix(name, "/") {
			within = name
		}
	}
	return err
}

// onePack makes git write one pack. An object file for each of many files takes three times as long.
// Git writes large files to a pack, so all files count as large.
var onePack = []string{"-c", "core.bigFileThreshold=1"}

// split says which of the named files git reads, and which it takes from the index.
func (l *look) split(names []string, r *content) (present, gone []string, err error) {
	left := int64(maxBytes)
	if l.gitDir == "" {
		left = maxOwnBytes
	}
	slices.Sort(names)
	for _, name := range names {
		s, before := r.seen[name], l.before.seen[name]
		e := l.index.entry(name)
		switch isFile := s.is(modeFile); {
		case isFile && (s.size > maxContent || !readable(l.path(name))):
			r.others[name] = other{notStored, s}
			continue
		case isFile:
			left -= s.size
		case !s.is(modeLink) && (!s.is(modeFolder) || e == nil || e.mode != modeModule):
			gone = append(gone, name)
			continue
		}
		present = append(present, name)
		// Git may take it for the one of the look, whose time it has in seconds.
		if r == &l.after && before.exists() && s.size == before.size && s.changed/int64(time.Second) == before.changed/int64(time.Second) {
			gone = append(gone, name)
		}
	}
	switch {
	case len(names) > l.files:
		err = fmt.Errorf("%w: %d files, and at most %d may be read", errLarge, len(names), l.files)
	case left < 0:
		err = fmt.Errorf("%w: its new and changed files have too many bytes", errLarge)
	}
	return present, gone, err
}

// maxNames bounds the bytes of the names that git gets as arguments.
const maxNames = 100 << 10

// store puts the named files of the working tree into the index as they are, and takes those that are gone out of it.
func (l *look) store(ctx context.Context, names []string, r *content) error {
	present, gone, err := l.split(names, r)
	if err != nil {
		return err
	}
	args := []string{"update-index", "--force-remove"}
	switch names := zeros(gone); {
	case len(gone)+len(present) == 0:
		return nil
	case len(names) > maxNames:
		if _, err := l.git(ctx, call{stdin: names}, append(args, "-z", "--stdin")...); err != nil {
			return err
		}
	default: // in one call with the others
		for _, name := range gone {
			args = append(args, "./"+name) // it may begin with a hyphen
		}
	}
	args = append(args, "--no-force-remove", "--add", "--remove", "--replace", "-z", "--stdin")
	_, err = l.git(ctx, call{options: onePack, stdin: zeros(present)}, args...)
	return err
}
