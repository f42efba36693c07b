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
	"sort"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/internal/paths"
	"github.com/codexmcp/codexmcp/internal/safefile"
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

// Indexes of a look, in the mirror's temporary folder.
const (
	firstIndex  = "first"  // the repository's own, as it was
	beforeIndex = "before" // with the files that differed from it
	afterIndex  = "after"
)

// look is the content of one folder at a moment: the whole working tree of a repository without
// ignored files, or a folder without one.
type look struct {
	*mirror
	part   bool // it is a further folder, in which git looks for no renames
	files  int  // how many files git may read
	begin  time.Time
	before content
	found  comparison // the last one
	index  index      // the repository's own, as it was
}

// comparison is what a folder has become.
type comparison struct {
	after  content
	tree   string   // of the index before, or "" if nothing was written since
	stored []Change // what differs between the indexes, in git's order
	others []Change // the other changes
	unsure []string // files whose line ends or encoding may have changed
}

// content is what is in a folder, as far as it differs from the first index.
type content struct {
	seen    map[string]stat        // the files that differ or are new, and those that are gone
	marks   map[string]bool        // those of them that are too large, or cannot be read
	nested  map[string]bool        // other repositories below the root
	modules map[string]bool        // submodules: true if there is a repository
	loose   map[string]bool        // submodules with files and without a repository
	special map[string]fs.FileMode // pipes, sockets and devices, with their type
	closed  map[string]bool        // folders that cannot be read
	ignored []string               // files that git ignores; a folder ends with a slash
}

// isRecent reports whether a file may have changed since the look, as the clock of its file system
// and the one of this system show.
func (l *look) isRecent(s stat) bool {
	return s.changed == 0 || s.changed >= l.begin.Add(-coarse).UnixNano()
}

// take looks at a folder. With own it does not use a repository.
func take(ctx context.Context, root string, o *Options, own bool) (*look, error) {
	l := &look{files: cmp.Or(o.Files, setting.DefaultFiles), begin: time.Now()}
	if own {
		l.files /= ownShare
	}
	r, err := o.Scratch.locate(root, own)
	if err == nil {
		_, err = r.program.programs.Confine() // git may not be needed before the comparison
	}
	if err == nil {
		l.mirror, err = o.Scratch.open(r)
	}
	if err != nil {
		return nil, err
	}
	if err = l.readIndex(ctx); err == nil {
		if l.before, err = l.see(ctx, nil); err == nil {
			err = l.store(ctx, beforeIndex, firstIndex, slices.Collect(maps.Keys(l.before.seen)), &l.before)
		}
	}
	if err != nil {
		return nil, errors.Join(err, l.remove())
	}
	return l, nil
}

// git runs git on the mirror, which has the copy of the index.
func (l *look) git(ctx context.Context, c call, args ...string) (string, error) {
	if _, err := os.Stat(l.gitDir); l.gitDir != "" && err != nil {
		return "", errors.New("its repository is gone")
	}
	if err := l.lay(ctx); err != nil {
		return "", err
	}
	return l.mirror.git(ctx, c, args...)
}

// find returns where an entry is or would be whose name has a text after the first bytes, which all
// have, and whether it is there.
func find(list []entry, bytes int, text string) (int, bool) {
	at := sort.Search(len(list), func(i int) bool { return list[i].name[bytes:] >= text })
	return at, at < len(list) && list[at].name[bytes:] == text
}

// entry returns the entry with a name, or nil.
func (l *look) entry(name string) *entry {
	if at, found := find(l.index.entries, 0, name); found {
		return &l.index.entries[at]
	}
	return nil
}

// below returns the entries in a folder.
func below(list []entry, dir string) []entry {
	from, _ := find(list, 0, dir+"/")
	to, _ := find(list, 0, dir+"0") // the character after a slash
	return list[from:to]
}

// path returns the path of a file in the system.
func (l *look) path(name string) string { return filepath.Join(l.root, filepath.FromSlash(name)) }

// inScratch reports whether a file belongs to a mirror.
func (l *look) inScratch(name string) bool {
	return paths.Below(l.path(name), filepath.Dir(l.scratch))
}

// isRepository reports whether the folder has a git folder of its own.
func (l *look) isRepository(name string) bool {
	_, err := os.Lstat(filepath.Join(l.path(name), ".git"))
	return err == nil
}

// see finds what differs from the first index, and looks at what differed before. Git runs for it
// once, if there are new files.
func (l *look) see(ctx context.Context, before map[string]stat) (r content, err error) {
	r = content{
		seen: map[string]stat{}, marks: map[string]bool{}, nested: map[string]bool{}, modules: map[string]bool{}, loose: map[string]bool{},
		special: map[string]fs.FileMode{}, closed: map[string]bool{},
	}
	if _, err := os.Stat(l.root); err != nil {
		return r, err
	}
	for i := range l.index.entries {
		l.index.entries[i].met = false
	}
	var n news
	if err := l.tour(ctx, "", l.index.entries, &n, &r); err != nil {
		return r, err
	}
	for i := range l.index.entries {
		if e := &l.index.entries[i]; !e.met { // it is gone, or has another name on a disk without cases
			r.seen[e.name] = stat{}
			if e.mode == modeModule {
				r.modules[e.name] = false
			}
		}
	}
	if err := l.seeNew(ctx, &n, &r); err != nil {
		return r, err
	}
	for name := range before {
		r.seen[name] = stat{}
	}
	return r, l.sort(ctx, &r)
}

// seeModule looks at a submodule.
func (l *look) seeModule(e *entry, r *content) {
	is := l.isRepository(e.name)
	if r.modules[e.name] = is; is {
		if !l.isAtCommit(e) {
			r.seen[e.name] = stat{}
		}
	} else if entries, err := os.ReadDir(l.path(e.name)); err == nil && len(entries) > 0 {
		r.loose[e.name] = true
	}
}

// maxNew is how many new files git looks at by name. With more it looks at all folders.
const maxNew = 100

// news is what the index does not have: files, and folders without files of the index.
type news struct {
	files, folders []string
	replaced       bool // a file of the index is a folder, or the reverse
}

// seeNew finds the files that are not in the index, and what git does not look at. It does not look
// into other repositories and into ignored folders.
func (l *look) seeNew(ctx context.Context, n *news, r *content) error {
	if len(n.files)+len(n.folders) == 0 {
		return nil
	}
	args := []string{"ls-files", "-z", "--others", "--exclude-standard"}
	if !n.replaced && len(n.files)+len(n.folders) <= maxNew { // git need not look into all folders for a few names
		args = slices.Concat(args, []string{"--"}, n.files, n.folders)
	}
	out, err := l.git(ctx, call{index: firstIndex}, args...)
	if err != nil {
		return err
	}
	listed := map[string]bool{} // the new files, and the folders that have any
	for name := range strings.SplitSeq(out, "\x00") {
		dir, isDir := strings.CutSuffix(name, "/")
		switch {
		case name == "" || l.inScratch(dir):
			continue
		case isDir:
			r.nested[dir] = true
		default:
			r.seen[name] = stat{}
		}
		for at := dir; at != "." && !listed[at]; at = path.Dir(at) {
			listed[at] = true
		}
	}
	for _, name := range n.files {
		if !listed[name] && !l.inScratch(name) {
			r.ignored = append(r.ignored, name)
		}
	}
	for _, dir := range n.folders {
		if err := l.walk(ctx, dir, listed, r); err != nil {
			return err
		}
	}
	return nil
}

// tour looks at the folders with files of the index, and at these files. List are those below dir.
func (l *look) tour(ctx context.Context, dir string, list []entry, n *news, r *content) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	prefix := ""
	if dir != "" {
		prefix = dir + "/"
	}
	var folders []string
	err := readFolder(l.path(dir), func(base string, s stat) {
		if base == ".git" {
			return
		}
		at, known := find(list, len(prefix), base)
		isFile := s.mode.IsRegular() || s.isLink()
		if known && isFile && list[at].mode != modeModule {
			list[at].met = true
			if !l.index.isClean(&list[at], s) {
				r.seen[list[at].name] = stat{}
			}
			return
		}
		name := prefix + base
		switch {
		case known && s.mode.IsDir() && list[at].mode == modeModule:
			list[at].met = true
			l.seeModule(&list[at], r)
		case !isFile && !s.mode.IsDir():
			r.special[name] = s.mode.Type()
		case !known && s.mode.IsDir() && len(below(list, name)) > 0:
			if !l.inScratch(name) {
				folders = append(folders, name)
			}
		default:
			n.replaced = n.replaced || known || len(below(list, name)) > 0
			if s.mode.IsDir() {
				n.folders = append(n.folders, name)
			} else {
				n.files = append(n.files, name)
			}
		}
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.closed[dir] = true
	}
	for _, name := range folders {
		if err := l.tour(ctx, name, below(list, name), n, r); err != nil {
			return err
		}
	}
	return nil
}

// walk looks at a folder without files of the index. What git does not list is ignored.
func (l *look) walk(ctx context.Context, dir string, listed map[string]bool, r *content) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case r.nested[dir] || l.inScratch(dir):
		return nil
	case !listed[dir]:
		if l.hasFile(dir, 0) {
			r.ignored = append(r.ignored, dir+"/")
			return nil
		}
	}
	var folders []string
	err := readFolder(l.path(dir), func(base string, s stat) {
		switch name := dir + "/" + base; {
		case base == ".git":
		case s.mode.IsDir():
			folders = append(folders, name)
		case !s.mode.IsRegular() && !s.isLink():
			r.special[name] = s.mode.Type()
		case !listed[name]:
			r.ignored = append(r.ignored, name)
		}
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.closed[dir] = true
	}
	for _, name := range folders {
		if err := l.walk(ctx, name, listed, r); err != nil {
			return err
		}
	}
	return nil
}

// hasFile reports whether there is a file in a folder or below it.
func (l *look) hasFile(dir string, depth int) bool {
	entries, _ := os.ReadDir(l.path(dir))
	return slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		if e.IsDir() {
			return depth > 50 || l.hasFile(dir+"/"+e.Name(), depth+1)
		}
		return e.Type().IsRegular() || e.Type()&fs.ModeSymlink != 0
	})
}

// sort describes the files that git must read, and marks those that are too large.
func (l *look) sort(ctx context.Context, r *content) error {
	left := int64(maxBytes)
	if l.gitDir == "" {
		left = maxOwnBytes
	}
	if len(r.seen) > l.files {
		return fmt.Errorf("%w: %d files, and at most %d may be read", ErrLarge, len(r.seen), l.files)
	}
	links := map[string]bool{}
	for name := range r.seen {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if l.behindLink(path.Dir(name), links) {
			continue
		}
		s, err := lstat(l.path(name))
		if err != nil {
			continue
		}
		r.seen[name] = s
		switch {
		case !s.mode.IsRegular():
		case s.size > maxContent:
			r.marks[name] = true
		default:
			if left -= s.size; left < 0 {
				return fmt.Errorf("%w: its new and changed files have too many bytes", ErrLarge)
			}
		}
	}
	return nil
}

// behindLink reports whether a folder below the root is or lies behind a symbolic link, and
// remembers it.
func (l *look) behindLink(dir string, known map[string]bool) bool {
	if dir == "." {
		return false
	}
	is, ok := known[dir]
	if !ok {
		s, err := lstat(l.path(dir))
		is = err == nil && s.isLink() || l.behindLink(path.Dir(dir), known)
		known[dir] = is
	}
	return is
}

// onePack makes git write one pack. An object file for each of many files takes three times as long.
// Git writes large files to a pack, so all files count as large.
var onePack = []string{"-c", "core.bigFileThreshold=1"}

// store makes an index from another one and the files of the working tree that are named.
func (l *look) store(ctx context.Context, to, from string, names []string, r *content) error {
	if len(names) == 0 {
		return nil
	}
	if err := l.lay(ctx); err != nil {
		return err
	}
	if err := l.again(to, from); err != nil {
		return err
	}
	var present, gone []string
	for _, name := range names {
		s := r.seen[name]
		_, module := r.modules[name]
		switch {
		case r.marks[name]:
		case s.exists() && (s.mode.IsRegular() || s.isLink() || module):
			present = append(present, name)
		default:
			gone = append(gone, name)
		}
	}
	slices.Sort(present)
	if to == afterIndex {
		for _, name := range present { // git may take it for the one of the look, whose time it has in seconds
			before, now := l.before.seen[name], r.seen[name]
			if before.exists() && before.size == now.size && before.changed/int64(time.Second) == now.changed/int64(time.Second) {
				gone = append(gone, name)
			}
		}
	}
	update := func(names []string, flags ...string) error {
		if len(names) == 0 {
			return nil
		}
		_, err := l.git(ctx, call{index: to, options: onePack, stdin: zeros(names)}, slices.Concat([]string{"update-index"}, flags, []string{"-z", "--stdin"})...)
		return err
	}
	add := []string{"--add", "--remove", "--replace"}
	if err := update(gone, "--force-remove"); err != nil {
		return err
	}
	err := update(present, add...)
	if err == nil || ctx.Err() != nil {
		return err
	}
	if present, err = l.markUnreadable(ctx, present, r, func(names ...string) error { return update(names, add...) }); err == nil {
		err = update(present, add...)
	}
	return err
}

// maxEncoded bounds the files that are stored one by one because they have an encoding.
const maxEncoded = 100

// markUnreadable marks the files that cannot be read, and those that do not have the encoding
// that .gitattributes says, at which git fails. It returns the others.
func (l *look) markUnreadable(ctx context.Context, names []string, r *content, update func(...string) error) ([]string, error) {
	wrong := map[string]bool{}
	err := l.attributes(ctx, names, []string{"working-tree-encoding"}, func(file, _, value string) {
		if value != "unspecified" && value != "unset" {
			wrong[file] = len(wrong) >= maxEncoded || update(file) != nil
		}
	})
	return slices.DeleteFunc(names, func(name string) bool {
		if !r.seen[name].mode.IsRegular() {
			return false
		}
		if !wrong[name] {
			if f, err := safefile.Open(l.path(name)); err == nil {
				f.Close()
				return false
			}
		}
		r.marks[name] = true
		return true
	}), err
}
