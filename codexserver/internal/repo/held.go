package repo

import (
	"bytes"
	"context"
	"crypto/sha1"
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

	"github.com/codexmcp/codexmcp/internal/safefile"
)

// Limits of the files that a look without git keeps in memory.
const (
	maxHeld      = 100       // files
	maxHeldBytes = 256 << 10 // of all of them; each turn that runs has as much
	maxAttrs     = 100       // files with attributes that are read for it
)

// held is a file that differs from the index, or that the index does not have, as it was when the
// snapshot was taken.
type held struct {
	indexed
	raw   []byte // what an index says about the file before its hash
	data  []byte
	known bool // the index has it
	gone  bool // there is no such file
}

// finds is what a look at a tree finds besides the files of the index.
type finds struct {
	changed []string // files of the index that differ
	others  []string // names that the index does not have
	most    int      // of both
}

func (f *finds) full() bool { return len(f.changed)+len(f.others) >= f.most }

// hold keeps what was found in memory. It reports false if git must look at it: too much, a link or a
// special file, another repository, a file with a filter or another encoding, or patterns that git may read in
// another way. No file may have changed after newest. All are the files of the index.
func (x *still) hold(ctx context.Context, root string, all index, found finds, newest time.Time) bool {
	top, err := os.OpenRoot(root)
	if err != nil {
		return false
	}
	defer top.Close()
	x.held = map[string]held{}
	h := holder{ctx: ctx, root: top, still: x, newest: newest, left: maxHeldBytes, most: found.most, ignored: map[string]map[string]bool{}}
	h.take = h.file
	x.ignored = h.ignored
	if h.encodes(all) || len(found.others) > 0 && !h.patterns() {
		return false
	}
	return !slices.ContainsFunc(found.changed, func(name string) bool { return !h.file(name, true) }) &&
		!slices.ContainsFunc(found.others, func(name string) bool { return !h.other(name, false) })
}

// encodes reports whether attributes may name an encoding, in which git may not be able to store a
// file, or a filter, with which it stores another content.
func (h *holder) encodes(all index) bool {
	names := func(data []byte) bool {
		return bytes.Contains(data, []byte("encoding")) || bytes.Contains(data, []byte("filter"))
	}
	if names(h.still.small["info/attributes"]) || outerAttributes(h.still.program) {
		return true
	}
	read := 0
	for i := range all {
		if name := all[i].name; strings.HasSuffix(name, ".gitattributes") {
			data, ok := h.small(name)
			if read++; !ok || names(data) || read > maxAttrs {
				return true
			}
		}
	}
	return false
}

// small returns the content of a small file, nil if there is none.
func (h *holder) small(name string) (data []byte, ok bool) {
	switch info, err := look(h.root, name); {
	case err != nil || info != nil && !info.Mode().IsRegular():
		return nil, false
	case info == nil:
		return nil, true
	}
	f, err := safefile.OpenIn(h.root, filepath.FromSlash(name), os.O_RDONLY)
	if err != nil {
		return nil, false
	}
	data, err = f.ReadAll(maxSmallFile)
	return data, errors.Join(err, f.Close()) == nil
}

// holder holds the files of one look.
type holder struct {
	ctx     context.Context
	root    *os.Root
	still   *still
	newest  time.Time
	left    int64             // bytes
	most    int               // files
	rules   map[string]*Rules // of folders
	ignored map[string]map[string]bool
	take    func(name string, known bool) bool // a file that is not ignored
}

// patterns reads the patterns that count everywhere.
func (h *holder) patterns() bool {
	x := h.still
	if strings.Contains(strings.ToLower(string(x.config)), "ignorecase") || !x.program.silent("excludesfile") {
		return false
	}
	all := x.excludes()
	x.user = append([]byte{}, all...) // not nil
	h.rules = map[string]*Rules{"": (*Rules)(nil).parse(all, 0).parse(x.small["info/exclude"], 0)}
	return h.read("")
}

// excludes returns the user's patterns, which git reads if no configuration names others.
func (x *still) excludes() []byte {
	if file := defaultExcludes(); isList(file) {
		if data, err := safefile.Read(file, maxSmallFile); err == nil {
			return data
		}
		return []byte("[") // which is not plain
	}
	return nil
}

// read adds the patterns of a folder to the rules that it has from above.
func (h *holder) read(dir string) bool {
	data, ok := h.small(path.Join(dir, ".gitignore"))
	if !ok {
		return false
	}
	depth := 0
	if dir != "" {
		depth = strings.Count(dir, "/") + 1
	}
	h.rules[dir] = h.rules[dir].parse(data, depth)
	return !h.rules[dir].isOdd()
}

// of returns the rules in a folder. It reports false if the folder is ignored.
func (h *holder) of(dir string) (*Rules, bool) {
	if dir == "." {
		dir = ""
	}
	if r, ok := h.rules[dir]; ok {
		return r, true
	}
	above, ok := h.of(path.Dir(dir))
	if !ok || above.Ignores(strings.Split(dir, "/"), true) {
		return nil, false
	}
	h.rules[dir] = above
	return h.rules[dir], h.read(dir)
}

// other holds a file that the index does not have, or all files of a folder, or notes that it is
// ignored. Nothing below a folder that is held may be ignored: git would name the folder if all is.
func (h *holder) other(name string, below bool) bool {
	info, err := look(h.root, name)
	if err != nil || info == nil || h.ctx.Err() != nil || isGitName(name) {
		return false
	}
	rules, ok := h.of(path.Dir(name))
	if !ok {
		return false
	}
	dir, base := path.Split(name)
	inner, err := look(h.root, name+"/.git")
	switch ignored := rules.Ignores(strings.Split(name, "/"), info.IsDir()); {
	case info.IsDir() && (err != nil || inner != nil):
		return false
	case !info.IsDir() && !info.Mode().IsRegular():
		return false
	case ignored && (below || base == ".gitignore" || base == ".gitattributes"):
		return false
	case ignored:
		if h.ignored[dir] == nil {
			h.ignored[dir] = map[string]bool{}
		}
		h.ignored[dir][base] = info.IsDir()
		return true
	case !info.IsDir():
		return base != ".gitattributes" && h.take(name, false)
	}
	f, err := h.root.Open(filepath.FromSlash(name))
	if err != nil {
		return false
	}
	defer f.Close()
	entries, err := f.ReadDir(maxHeld + 1)
	if err != nil || len(entries) > maxHeld { // an empty folder, too
		return false
	}
	return !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return !h.other(name+"/"+e.Name(), true) })
}

// file holds a file.
func (h *holder) file(name string, known bool) bool {
	if len(h.still.held) == h.most || isGitName(name) || !filepath.IsLocal(filepath.FromSlash(name)) || path.Clean(name) != name {
		return false
	}
	info, err := look(h.root, name)
	if err != nil {
		return false
	}
	if info == nil {
		h.still.held[name] = held{known: known, gone: true}
		return known
	}
	if !info.Mode().IsRegular() || !changeTime(info).Before(h.newest) || !info.ModTime().Before(h.newest) {
		return false
	}
	f, err := safefile.OpenIn(h.root, filepath.FromSlash(name), os.O_RDONLY)
	if err != nil {
		return false
	}
	data, err := f.ReadAll(h.left)
	opened := f.Info()
	if errors.Join(err, f.Close()) != nil || int64(len(data)) != info.Size() {
		return false
	}
	after, err := look(h.root, name)
	if err != nil || after == nil || !(mark{info, changeTime(info)}).equal(mark{after, changeTime(after)}) || !os.SameFile(info, opened) {
		return false
	}
	h.left -= int64(len(data))
	e, raw, ok := statEntry(name, info)
	h.still.held[name] = held{indexed: e, raw: raw, data: data, known: known}
	return ok
}

// now returns the files of an index as the tree has them.
func (x *still) now(all index) index {
	if len(x.held) == 0 {
		return all
	}
	left := len(x.held)
	known := 0
	for _, e := range all {
		h, ok := x.held[e.name]
		if ok {
			left--
		}
		if ok && h.gone {
			continue
		}
		if ok {
			e = h.indexed
		}
		all[known] = e
		known++
	}
	all = all[:known]
	if left == 0 {
		return all
	}
	for name, h := range x.held {
		if i := all.find(name); !h.gone && (i == len(all) || all[i].name != name) {
			all = slices.Insert(all, i, h.indexed)
		}
	}
	return all
}

// lay adds what is held to the index of a private git folder, as git would have added it from the
// tree when the snapshot was taken.
func (x *still) lay(ctx context.Context, p *private) error {
	if len(x.held) == 0 {
		return nil
	}
	dir := filepath.Join(p.scratch, "held")
	names := slices.SortedFunc(maps.Keys(x.held), func(a, b string) int { // as stale returns them
		if x.held[a].known != x.held[b].known {
			if x.held[b].known {
				return -1
			}
			return 1
		}
		return strings.Compare(a, b)
	})
	for name, h := range x.held {
		if h.gone {
			continue
		}
		file := filepath.Join(dir, filepath.FromSlash(name))
		perm := fs.FileMode(0o600)
		if h.mode == 0o100755 {
			perm = 0o700
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, h.data, perm)); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := p.store(ctx, call{tree: dir, options: onePack}, names, nil); err != nil {
		return err
	}
	return x.restat(filepath.Join(p.dir, "index"))
}

// restat writes into an index when the held files changed, which git took from their copies.
func (x *still) restat(file string) error {
	data, err := safefile.Read(file, maxRead)
	if err != nil {
		return err
	}
	all, ok := parseIndex(string(data), sha1.Size)
	if !ok {
		return errors.New("git's index cannot be read")
	}
	eachEntry(string(data), all, func(at int, e *indexed) {
		if h, ok := x.held[e.name]; ok {
			copy(data[at:at+indexStat], h.raw)
		}
	})
	if sum := data[len(data)-sha1.Size:]; !bytes.Equal(sum, make([]byte, sha1.Size)) {
		now := sha1.Sum(data[:len(data)-sha1.Size])
		copy(sum, now[:])
	}
	if err := os.WriteFile(file, data, 0o600); err != nil {
		return fmt.Errorf("git's index: %w", err)
	}
	return nil
}

// ignoredNames returns what git ignores, as it lists it.
func ignoredNames(ignored map[string]map[string]bool) (names []string) {
	for dir, in := range ignored {
		for name, isDir := range in {
			if isDir {
				name += "/"
			}
			names = append(names, dir+name)
		}
	}
	slices.Sort(names)
	return names
}

// newly is what has changed in a still tree, if git need not look for it.
type newly struct {
	names   []string // new and changed files
	known   map[string]bool
	ignored []string
	files   index  // as they were
	bare    bool   // no file has attributes
	tree    string // of the files as they were, or ""
	data    string // of the index
}

// news sorts what a later look has found. It returns nil if git must look: for what [still.hold] leaves
// to it, where patterns or attributes have changed, and where git could miss a change because the
// seconds are the same.
func (x *still) news(ctx context.Context, root, tree string, all index, found finds) *newly {
	top, err := os.OpenRoot(root)
	if err != nil {
		return nil
	}
	defer top.Close()
	n := &newly{known: map[string]bool{}, files: all, tree: tree}
	h := holder{ctx: ctx, root: top, still: x, ignored: map[string]map[string]bool{}}
	h.take = func(name string, _ bool) bool {
		n.names = append(n.names, name)
		return len(n.names) <= maxHeld
	}
	if len(found.others) > 0 && !h.patterns() || slices.ContainsFunc(found.others, func(name string) bool { return !h.other(name, false) }) {
		return nil
	}
	slices.Sort(n.names)
	n.names = append(n.names, found.changed...)
	for _, name := range n.names {
		if base := path.Base(name); base == ".gitignore" || base == ".gitattributes" {
			return nil
		}
	}
	for _, name := range found.changed {
		info, err := look(h.root, name)
		if e := all.entry(name); err != nil || e == nil || info != nil && changeTime(info).Unix() == int64(e.changed) {
			return nil
		}
		n.known[name] = true
	}
	n.ignored = append(ignoredNames(x.ignored), ignoredNames(h.ignored)...)
	n.bare = len(x.small["info/attributes"]) == 0 && !outerAttributes(x.program) &&
		!slices.ContainsFunc(all, func(e indexed) bool { return strings.HasSuffix(e.name, ".gitattributes") })
	return n
}

// outerAttributes reports whether the user or the system may have attributes for all repositories.
func outerAttributes(p program) bool {
	return isList(filepath.Join(filepath.Dir(defaultExcludes()), "attributes")) || slices.ContainsFunc(p.system("gitattributes"), isList)
}

// fresh is [Snapshot.stale] with what a look without git has found.
func (s *Snapshot) fresh(n *newly) ([]string, content) {
	s.touch(n.files, n.names)
	r := content{marks: map[string]mark{}, known: n.known, nested: map[string]bool{}, modules: map[string]bool{}, bare: n.bare}
	r.seen = oddities{special: map[string]fs.FileMode{}, closed: map[string]bool{}, loose: map[string]bool{}, ignored: n.ignored}
	return n.names, r
}
