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
	own     bool // there is no repository
	part    bool // it is a further folder, in which git looks for no renames
	files   int  // how many files git may read
	begin   time.Time
	entries []entry // of the first index, sorted by name
	racy    bool    // the index was written just before, so git may take a changed file for the same
	before  content
	found   comparison // the last one
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
	seen    map[string]fs.FileInfo // the files that differ or are new; nil for one that is gone
	marks   map[string]mark        // those of them that are too large, or cannot be read
	nested  map[string]bool        // other repositories below the root
	modules map[string]bool        // submodules: true if there is a repository
	loose   map[string]bool        // submodules with files and without a repository
	special map[string]fs.FileMode // pipes, sockets and devices, with their type
	closed  map[string]bool        // folders that cannot be read
	ignored []string               // files that git ignores; a folder ends with a slash
}

// mark shows whether a file has changed, without reading the file.
type mark struct{ info fs.FileInfo }

func (m mark) equal(other mark) bool { return sameFile(m.info, other.info) }

// sameFile reports whether a file has the same inode, size and times as before.
func sameFile(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.Mode() == b.Mode() && a.ModTime().Equal(b.ModTime()) && changeTime(a).Equal(changeTime(b))
}

// isRecent reports whether a file may have changed since the look. File systems and indexes have coarse
// clocks.
func (l *look) isRecent(info fs.FileInfo) bool {
	t := changeTime(info)
	return t.IsZero() || !t.Before(l.begin.Add(-coarse))
}

// coarse is how exact times are at least.
const coarse = 2 * time.Second

// take looks at a folder. With own it does not use a repository.
func take(ctx context.Context, root string, o *Options, own bool) (*look, error) {
	l := &look{own: own, files: cmp.Or(o.Files, setting.DefaultFiles), begin: time.Now()}
	if own {
		l.files /= ownShare
	}
	r, err := o.Scratch.locate(root, own)
	if err == nil {
		l.mirror, err = o.Scratch.open(ctx, r)
	}
	if err != nil {
		return nil, err
	}
	if err = l.index(ctx); err == nil {
		if l.before, err = l.see(ctx, nil); err == nil {
			err = l.store(ctx, beforeIndex, firstIndex, slices.Collect(maps.Keys(l.before.seen)), &l.before)
		}
	}
	if err != nil {
		return nil, errors.Join(err, l.remove())
	}
	return l, nil
}

// entry is a file of the index.
type entry struct {
	name, mode string
	object     string
}

const modeModule = "160000"

// entry returns the entry with a name, and the ones below it if it is a folder.
func (l *look) entry(name string) (*entry, []entry) {
	compare := func(e entry, name string) int { return strings.Compare(e.name, name) }
	at, found := slices.BinarySearchFunc(l.entries, name, compare)
	if found {
		return &l.entries[at], nil
	}
	return nil, below(l.entries, name)
}

// below returns the entries in a folder.
func below(list []entry, dir string) []entry {
	compare := func(e entry, name string) int { return strings.Compare(e.name, name) }
	from, _ := slices.BinarySearchFunc(list, dir+"/", compare)
	to, _ := slices.BinarySearchFunc(list, dir+"0", compare) // the character after a slash
	return list[from:to]
}

// index copies the repository's index, in which git then looks at each file that is there. It
// removes those that are not checked out.
func (l *look) index(ctx context.Context) error {
	if l.own {
		return nil
	}
	var err error
	if l.racy, err = l.copyIndex(firstIndex, l.begin); err != nil {
		return err
	}
	out, err := l.git(ctx, call{env: l.onIndex(firstIndex)}, "ls-files", "-z", "-s", "-v")
	if err != nil {
		return err
	}
	var flags strings.Builder
	for line := range strings.SplitSeq(strings.TrimSuffix(out, "\x00"), "\x00") {
		if line == "" {
			continue
		}
		head, name, _ := strings.Cut(line, "\t")
		words := strings.Fields(head) // a tag, the mode, the object and the stage
		if len(words) != 4 {
			return fmt.Errorf("git ls-files prints %q", line)
		}
		tag := words[0]
		if strings.EqualFold(tag, "s") {
			if _, err := os.Lstat(l.path(name)); err != nil {
				fmt.Fprintf(&flags, "0 %s\t%s\x00", words[2], name)
				continue
			}
		}
		if strings.EqualFold(tag, "s") || tag == strings.ToLower(tag) && tag != "?" {
			fmt.Fprintf(&flags, "%s %s %s\t%s\x00", words[1], words[2], words[3], name)
		}
		if n := len(l.entries); n == 0 || l.entries[n-1].name != name { // a file in conflict has many
			l.entries = append(l.entries, entry{name: name, mode: words[1], object: words[2]})
		}
	}
	if err := l.useModes(); err != nil || flags.Len() == 0 {
		return err
	}
	_, err = l.git(ctx, call{env: l.onIndex(firstIndex), stdin: flags.String()}, "update-index", "-z", "--index-info")
	if err != nil {
		return err
	}
	then := l.begin.Add(-coarse)
	return os.Chtimes(filepath.Join(l.scratch, firstIndex), then, then)
}

// someFiles is how many files show whether a file system keeps modes.
const someFiles = 1000

// useModes makes git compare the modes of files, if core.fileMode is false although the file
// system keeps them: it does not if most files seem to be programs that are none.
func (l *look) useModes() error {
	if !isPosix || !isFalse(l.settings["core.filemode"]) {
		return nil
	}
	plain, programs := 0, 0
	for _, e := range l.entries {
		if e.mode != "100644" || plain == someFiles {
			continue
		}
		if info, err := os.Lstat(l.path(e.name)); err == nil && info.Mode().IsRegular() {
			if plain++; info.Mode()&0o100 != 0 {
				programs++
			}
		}
	}
	if programs > plain/2 {
		return nil
	}
	l.settings["core.filemode"] = "true"
	return l.configure()
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

// see finds what differs from the first index, and looks at what differed before. Two commands of git
// run for it at most.
func (l *look) see(ctx context.Context, before map[string]fs.FileInfo) (r content, err error) {
	r = content{
		seen: map[string]fs.FileInfo{}, marks: map[string]mark{}, nested: map[string]bool{}, modules: map[string]bool{}, loose: map[string]bool{},
		special: map[string]fs.FileMode{}, closed: map[string]bool{},
	}
	for _, e := range l.entries {
		if e.mode == modeModule {
			is := l.isRepository(e.name)
			r.modules[e.name] = is
			if entries, err := os.ReadDir(l.path(e.name)); err == nil && len(entries) > 0 && !is {
				r.loose[e.name] = true
			}
		}
	}
	if len(l.entries) > 0 {
		dirty, err := l.git(ctx, call{env: l.onIndex(firstIndex)}, "diff-files", "-z", "--name-only", "--no-renames", "--ignore-submodules=dirty")
		if err != nil {
			return r, err
		}
		for name := range strings.SplitSeq(dirty, "\x00") {
			if name != "" {
				r.seen[name] = nil
			}
		}
	} else if _, err := os.Stat(l.root); err != nil {
		return r, err
	}
	if err := l.seeNew(ctx, &r); err != nil {
		return r, err
	}
	for name := range before {
		if _, ok := r.seen[name]; !ok {
			r.seen[name] = nil
		}
	}
	if l.racy && before != nil {
		for _, e := range l.entries {
			if info, err := os.Lstat(l.path(e.name)); err == nil && l.isRecent(info) && e.mode != modeModule {
				r.seen[e.name] = nil
			}
		}
	}
	return r, l.sort(ctx, &r)
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
func (l *look) seeNew(ctx context.Context, r *content) error {
	var n news
	if err := l.tour(ctx, "", l.entries, &n, r); err != nil || len(n.files)+len(n.folders) == 0 {
		return err
	}
	args := []string{"ls-files", "-z", "--others", "--exclude-standard"}
	if !n.replaced && len(n.files)+len(n.folders) <= maxNew { // git need not look into all folders for a few names
		args = slices.Concat(args, []string{"--"}, n.files, n.folders)
	}
	out, err := l.git(ctx, call{env: l.onIndex(firstIndex)}, args...)
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
			r.seen[name] = nil
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

// tour looks at the folders with files of the index. List are those below dir.
func (l *look) tour(ctx context.Context, dir string, list []entry, n *news, r *content) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	entries, err := os.ReadDir(l.path(dir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.closed[dir] = true
	}
	for _, one := range entries {
		name := one.Name()
		if name == ".git" {
			continue
		}
		if dir != "" {
			name = dir + "/" + name
		}
		kind := one.Type()
		isFile := kind.IsRegular() || kind&fs.ModeSymlink != 0
		at, known := slices.BinarySearchFunc(list, name, func(e entry, name string) int { return strings.Compare(e.name, name) })
		switch {
		case known && (isFile || list[at].mode == modeModule):
		case isFile && len(below(list, name)) == 0:
			n.files = append(n.files, name)
		case !isFile && !one.IsDir():
			r.special[name] = kind
		case !known && one.IsDir() && len(below(list, name)) > 0:
			if l.inScratch(name) {
				continue
			}
			if err := l.tour(ctx, name, below(list, name), n, r); err != nil {
				return err
			}
		case !known && one.IsDir():
			n.folders = append(n.folders, name)
		default:
			n.replaced = true
			if one.IsDir() {
				n.folders = append(n.folders, name)
			} else {
				n.files = append(n.files, name)
			}
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
	entries, err := os.ReadDir(l.path(dir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.closed[dir] = true
	}
	for _, one := range entries {
		name := dir + "/" + one.Name()
		switch kind := one.Type(); {
		case one.Name() == ".git":
		case one.IsDir():
			if err := l.walk(ctx, name, listed, r); err != nil {
				return err
			}
		case !kind.IsRegular() && kind&fs.ModeSymlink == 0:
			r.special[name] = kind
		case !listed[name]:
			r.ignored = append(r.ignored, name)
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
	if l.own {
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
		info, err := os.Lstat(l.path(name))
		if err != nil {
			continue
		}
		r.seen[name] = info
		switch {
		case !info.Mode().IsRegular():
		case info.Size() > maxContent:
			r.marks[name] = mark{info}
		default:
			if left -= info.Size(); left < 0 {
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
		info, err := os.Lstat(l.path(dir))
		is = err == nil && info.Mode()&os.ModeSymlink != 0 || l.behindLink(path.Dir(dir), known)
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
	if err := l.again(to, from); err != nil {
		return err
	}
	var present, gone []string
	for _, name := range names {
		info := r.seen[name]
		_, marked := r.marks[name]
		_, module := r.modules[name]
		switch {
		case marked:
		case info != nil && (info.Mode().IsRegular() || info.Mode()&fs.ModeSymlink != 0 || module):
			present = append(present, name)
		default:
			gone = append(gone, name)
		}
	}
	slices.Sort(present)
	for _, name := range present { // git may take it for the one of the look, whose time it has in seconds
		if before := l.before.seen[name]; before != nil && before != r.seen[name] && changeTime(before).Unix() == changeTime(r.seen[name]).Unix() {
			gone = append(gone, name)
		}
	}
	update := func(names []string, flags ...string) error {
		if len(names) == 0 {
			return nil
		}
		_, err := l.git(ctx, call{env: l.onIndex(to), options: onePack, stdin: zeros(names)}, slices.Concat([]string{"update-index"}, flags, []string{"-z", "--stdin"})...)
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
		info := r.seen[name]
		if !info.Mode().IsRegular() {
			return false
		}
		if !wrong[name] {
			if f, err := safefile.Open(l.path(name)); err == nil {
				f.Close()
				return false
			}
		}
		r.marks[name] = mark{info}
		return true
	}), err
}
