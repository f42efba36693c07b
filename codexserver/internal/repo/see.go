package repo

import (
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
)

// oddities are what a walk finds that git does not look at.
type oddities struct {
	special map[string]fs.FileMode // pipes, sockets and devices, with their type
	closed  map[string]bool        // folders that cannot be read
	ignored []string               // files that git ignores; a folder ends with a slash
	loose   map[string]bool        // submodules with files and without a repository
}

// maxNew is how many new files git looks at by name. With more it looks at all folders.
const maxNew = 100

// see returns the files that are not in the index, and adds to r the repositories below the
// root and what git does not look at. It does not look into other repositories and into
// ignored folders.
func (s *Snapshot) see(ctx context.Context, x index, r *content) (names []string, err error) {
	r.seen = oddities{special: map[string]fs.FileMode{}, closed: map[string]bool{}, loose: map[string]bool{}}
	for name, isRepository := range r.modules {
		if entries, err := os.ReadDir(s.path(name)); err == nil && len(entries) > 0 && !isRepository {
			r.seen.loose[name] = true
		}
	}
	var n news
	if err := s.tour(ctx, "", x, &n, &r.seen); err != nil || len(n.files)+len(n.folders) == 0 && !n.replaced {
		return nil, err
	}
	var only []string // git need not look into all folders for a few names
	if !n.replaced && len(n.files)+len(n.folders) <= maxNew {
		only = slices.Concat([]string{"--"}, n.files, n.folders)
	}
	list := func(options ...string) (string, error) {
		return s.private.git(ctx, call{}, slices.Concat([]string{"ls-files", "-z", "--others", "--exclude-standard"}, options, only)...)
	}
	others, err := list()
	if err != nil {
		return nil, err
	}
	ignored, err := list("--ignored", "--directory")
	if err != nil {
		return nil, err
	}
	for name := range strings.SplitSeq(others, "\x00") {
		if dir, isDir := strings.CutSuffix(name, "/"); isDir {
			r.nested[dir] = true
		} else if name != "" && !s.inScratch(name) {
			names = append(names, name)
		}
	}
	skip := maps.Clone(r.nested)
	for name := range strings.SplitSeq(ignored, "\x00") {
		dir := strings.TrimSuffix(name, "/")
		if name != "" && !s.inScratch(dir) {
			skip[dir] = true
			r.seen.ignored = append(r.seen.ignored, name)
		}
	}
	for _, dir := range n.folders {
		if skip[dir] || s.inScratch(dir) {
			continue
		}
		if err := s.walk(ctx, dir, skip, &r.seen); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// news is what the index does not have: files, and folders without files of the index.
type news struct {
	files, folders []string
	replaced       bool // a file of the index is a folder, or the reverse
}

// tour looks at the folders with files of the index. X are those below dir.
func (s *Snapshot) tour(ctx context.Context, dir string, x index, n *news, found *oddities) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	entries, err := os.ReadDir(s.path(dir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		found.closed[dir] = true
	}
	for _, entry := range entries {
		name := entry.Name()
		if name == ".git" {
			continue
		}
		if dir != "" {
			name = dir + "/" + name
		}
		kind, known := entry.Type(), x.entry(name)
		isFile := kind.IsRegular() || kind&fs.ModeSymlink != 0
		switch {
		case known != nil && (isFile || known.isModule()):
		case isFile && len(x.below(name)) == 0:
			n.files = append(n.files, name)
		case !isFile && !entry.IsDir():
			found.special[name] = kind
		case known == nil && entry.IsDir() && len(x.below(name)) > 0:
			if s.inScratch(name) {
				continue
			}
			if err := s.tour(ctx, name, x.below(name), n, found); err != nil {
				return err
			}
		case known == nil && entry.IsDir():
			n.folders = append(n.folders, name)
		default:
			n.replaced = true
			if entry.IsDir() {
				n.folders = append(n.folders, name)
			}
		}
	}
	return nil
}

// walk looks at folders without files of the index.
func (s *Snapshot) walk(ctx context.Context, dir string, skip map[string]bool, found *oddities) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	entries, err := os.ReadDir(s.path(dir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		found.closed[dir] = true
	}
	for _, entry := range entries {
		name := path.Join(dir, entry.Name())
		switch kind := entry.Type(); {
		case entry.Name() == ".git" || skip[name]:
		case entry.IsDir():
			if s.inScratch(name) {
				continue
			}
			if err := s.walk(ctx, name, skip, found); err != nil {
				return err
			}
		case !kind.IsRegular() && kind&fs.ModeSymlink == 0:
			found.special[name] = kind
		}
	}
	return nil
}

// isRepository reports whether the folder has a git folder of its own.
func (s *Snapshot) isRepository(name string) bool {
	_, err := os.Lstat(filepath.Join(s.path(name), ".git"))
	return err == nil
}

// compareSeen returns the changes of special files, and of submodules that were checked
// out or removed.
func (s *Snapshot) compareSeen(now content) []Change {
	var changes []Change
	for name, kind := range now.seen.special {
		if before, ok := s.before.seen.special[name]; !ok {
			changes = append(changes, Change{Path: name, Kind: Add, special: true})
		} else if before != kind {
			changes = append(changes, Change{Path: name, Kind: Update, special: true})
		}
	}
	for name := range s.before.seen.special {
		if _, ok := now.seen.special[name]; !ok {
			changes = append(changes, Change{Path: name, Kind: Delete, special: true})
		}
	}
	for name, after := range now.modules {
		if before, ok := s.before.modules[name]; ok && before != after {
			kind := Delete
			if after {
				kind = Add
			}
			changes = append(changes, Change{Path: name + "/", Kind: kind})
		}
	}
	return changes
}

// merge makes one change of the changes of a file that a special file replaced, or the
// reverse. The first change of a path keeps its place.
func merge(changes []Change) []Change {
	at := map[string]int{}
	var out []Change
	for _, c := range changes {
		i, twice := at[c.Path]
		if !twice {
			at[c.Path] = len(out)
			out = append(out, c)
		} else if c.special || out[i].special {
			out[i] = Change{Path: c.Path, Kind: Update, special: true}
		}
	}
	return out
}

// Gap is a place where changes were not looked for.
type Gap struct {
	// Path is relative to the root of the snapshot, with slashes, or absolute. A folder
	// ends with a slash. "" is the root.
	Path string
	// Why is the reason.
	Why string
}

// gaps returns where the last Compare did not look. Known are ignored folders that others look at.
func (s *Snapshot) gaps(known ...string) []Gap {
	var gaps []Gap
	for _, name := range both(s.before.seen.closed, s.after.seen.closed) {
		gaps = append(gaps, Gap{name + "/", "it cannot be read"})
	}
	for _, name := range both(s.before.seen.loose, s.after.seen.loose) {
		gaps = append(gaps, Gap{name + "/", "it is a submodule without a repository"})
	}
	for _, c := range s.stored {
		if c.filtered && c.Kind == Update {
			gaps = append(gaps, Gap{c.Path, "a filter changes how git stores it, so its content may be the same"})
		}
	}
	for _, name := range s.unsure {
		gaps = append(gaps, Gap{name, "git converts its line ends or its encoding, so whether they changed is not known"})
	}
	ignored := slices.DeleteFunc(slices.Concat(s.before.seen.ignored, s.after.seen.ignored), func(name string) bool { return slices.Contains(known, name) })
	if why := ignoredWhy(ignored); why != "" {
		gaps = append(gaps, Gap{"", why})
	}
	if s.private != nil && isFalse(s.private.settings["core.filemode"]) {
		gaps = append(gaps, Gap{"", "core.fileMode is false, so changed modes do not show"})
	}
	return gaps
}

// both returns the names in either set, sorted.
func both(a, b map[string]bool) []string {
	all := map[string]bool{}
	maps.Copy(all, a)
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
}

// maxIgnored bounds the ignored files that a gap names.
const maxIgnored = 3

// ignoredWhy names ignored files, or returns "" if there are none.
func ignoredWhy(names []string) string {
	slices.Sort(names)
	names = slices.Compact(names)
	switch n := len(names); {
	case n == 0:
		return ""
	case n > maxIgnored:
		return fmt.Sprintf("git ignores %s and %d more", strings.Join(names[:maxIgnored], ", "), n-maxIgnored)
	}
	return "git ignores " + strings.Join(names, ", ")
}
