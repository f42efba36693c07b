package git

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/internal/paths"
)

// maxParts bounds the folders that are looked at besides the first.
const maxParts = 16

// Options configure a look.
type Options struct {
	// Scratch says where git works.
	Scratch Scratch
	// Roots are absolute paths of further folders to look at.
	Roots []string
	// Files is how many files git may read that differ from its index. In a folder without a
	// repository it reads all, and at most a twentieth of this number. Default: [setting.DefaultFiles].
	Files int
}

// Before is the content of a folder at one moment, and that of further folders. It is not safe
// for concurrent use.
type Before struct {
	first *look
	parts []part
	gaps  []Gap // of the parts
}

// part is a look at a further folder.
type part struct {
	look *look
	// at is the path as in the changes, with a slash at its end.
	at string
	// below is true if the part is below the root.
	below bool
	// gone is true if it could not be compared.
	gone bool
}

// Look looks at the working tree that contains dir, an absolute path, or at dir itself outside of a
// repository. What it cannot look at of the further folders is among [Before.Gaps]. If the folder
// is too large, the error wraps [ErrLarge]. Without a sandbox on this system git does not run, and the
// error wraps [box.ErrUnavailable]. Remove deletes the files of the look.
func Look(ctx context.Context, dir string, o *Options) (*Before, error) {
	dir = realPath(dir) // other paths are compared with the root
	root := Root(dir)
	first, err := take(ctx, cmp.Or(root, dir), o, root == "")
	if err != nil {
		return nil, fmt.Errorf("git: %w", err)
	}
	b := &Before{first: first}
	if name, ok := first.ignores(dir); ok {
		b.add(ctx, name, dir, true, o)
	}
	for _, root := range o.Roots {
		root = realPath(root)
		if !b.Covers(root) && root != first.root {
			b.add(ctx, root, cmp.Or(Root(root), root), false, o)
		}
	}
	return b, nil
}

// realPath returns a path without links, or as it is.
func realPath(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

// ignores returns the name of a folder below the root, by its real path, and reports whether
// git ignores the whole folder.
func (l *look) ignores(dir string) (name string, ok bool) {
	rel, ok := paths.Within(dir, l.root)
	if !ok {
		return "", false
	}
	name = filepath.ToSlash(rel) + "/"
	return name, slices.ContainsFunc(l.before.ignored, func(i string) bool { return strings.HasSuffix(i, "/") && strings.HasPrefix(name, i) })
}

// add looks at a further folder. At is its path as in the changes. One that is below the root is
// looked at as one without a repository.
func (b *Before) add(ctx context.Context, at, dir string, below bool, o *Options) {
	at = strings.TrimSuffix(filepath.ToSlash(at), "/") + "/"
	if len(b.parts) == maxParts {
		b.gaps = append(b.gaps, Gap{at, "too many folders"})
		return
	}
	l, err := take(ctx, dir, o, below || Root(dir) != dir)
	if err != nil {
		b.gaps = append(b.gaps, Gap{at, why(err)})
		return
	}
	l.part = true
	b.parts = append(b.parts, part{look: l, at: at, below: below})
}

// why returns the reason in an error.
func why(err error) string {
	if errors.Is(err, os.ErrNotExist) {
		return "it does not exist"
	}
	return err.Error()
}

// Root returns the top of the working tree, or the folder itself outside a repository.
func (b *Before) Root() string { return b.first.root }

// Covers reports whether Compare finds changes of the file at an absolute path. It does
// not cover files outside the folders and in other repositories below them.
func (b *Before) Covers(file string) bool {
	return b.first.covers(file) || slices.ContainsFunc(b.parts, func(p part) bool { return !p.gone && p.look.covers(file) })
}

func (l *look) covers(file string) bool {
	rel, ok := paths.Within(file, l.root)
	if !ok {
		return false
	}
	for name := filepath.ToSlash(rel); name != "."; name = path.Dir(name) {
		if _, module := l.before.modules[name]; module || l.before.nested[name] {
			return false
		}
	}
	return true
}

// Compare returns the changes since the look, sorted by path. The paths of changes outside of the
// root are absolute. It compares contents. It does not matter who wrote them, and what git has
// recorded.
func (b *Before) Compare(ctx context.Context) ([]Change, error) {
	changes, err := b.first.compare(ctx)
	if err != nil {
		return nil, fmt.Errorf("git: %w", err)
	}
	for i := range b.parts {
		p := &b.parts[i]
		found, err := p.look.compare(ctx)
		if err != nil {
			p.gone = true
			b.gaps = append(b.gaps, Gap{p.at, why(err)})
			continue
		}
		for _, c := range found {
			c.Path = p.at + c.Path
			changes = append(changes, c)
		}
	}
	SortChanges(changes)
	return changes, nil
}

// Gap is a place where changes were not looked for.
type Gap struct {
	// Path is relative to the root, with slashes, or absolute. A folder ends with a slash. "" is
	// the root.
	Path string
	// Why is the reason.
	Why string
}

// Gaps returns where changes were not looked for, after Compare.
func (b *Before) Gaps() []Gap {
	var known []string // folders that git ignores, and that are looked at
	for _, p := range b.parts {
		if p.below && !p.gone {
			known = append(known, p.at)
		}
	}
	gaps := slices.Concat(b.first.gaps(known...), b.gaps)
	for _, p := range b.parts {
		if p.gone {
			continue
		}
		for _, g := range p.look.gaps() {
			g.Path = p.at + g.Path
			gaps = append(gaps, g)
		}
	}
	return gaps
}

// gaps returns where the last comparison did not look. Known are ignored folders that others look at.
func (l *look) gaps(known ...string) []Gap {
	var gaps []Gap
	for _, name := range both(l.before.closed, l.found.after.closed) {
		gaps = append(gaps, Gap{name + "/", "it cannot be read"})
	}
	for _, name := range both(l.before.loose, l.found.after.loose) {
		gaps = append(gaps, Gap{name + "/", "it is a submodule without a repository"})
	}
	for _, c := range l.found.stored {
		if c.filtered && c.Kind == Update {
			gaps = append(gaps, Gap{c.Path, "a filter changes how git stores it, so its content may be the same"})
		}
	}
	for _, name := range l.found.unsure {
		gaps = append(gaps, Gap{name, "git converts its line ends or its encoding, so whether they changed is not known"})
	}
	for _, name := range l.repositories() {
		gaps = append(gaps, Gap{name + "/", otherRepository})
	}
	ignored := slices.DeleteFunc(slices.Concat(l.before.ignored, l.found.after.ignored), func(name string) bool { return slices.Contains(known, name) })
	if why := ignoredWhy(ignored); why != "" {
		gaps = append(gaps, Gap{"", why})
	}
	if isFalse(l.settings["filemode"]) {
		gaps = append(gaps, Gap{"", "core.fileMode is false, so changed modes do not show"})
	}
	return gaps
}

// repositories returns the other repositories that were there before and after, into which nobody
// looked.
func (l *look) repositories() []string {
	is := func(r *content, name string) bool { return r.nested[name] || r.modules[name] }
	return slices.DeleteFunc(slices.Concat(both(l.before.nested, nil), both(l.before.modules, nil)),
		func(name string) bool { return !is(&l.before, name) || !is(&l.found.after, name) })
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

// Diff returns at most max bytes of a diff, in git's format, of the changes that Compare
// last found, and the changes that are not in it. `git apply` takes the diff: it has every
// section whole, and files that are not UTF-8 as binary patches. Changes outside of the root are
// not in the diff.
func (b *Before) Diff(ctx context.Context, max int) (string, []Omission, error) {
	diff, left, err := b.first.diff(ctx, max, "")
	if err != nil {
		return "", nil, fmt.Errorf("git: %w", err)
	}
	for _, p := range b.parts {
		var more string
		var out []Omission
		switch {
		case p.gone:
			continue
		case p.below:
			if more, out, err = p.look.diff(ctx, max-len(diff), p.at); err != nil {
				return "", nil, fmt.Errorf("git: %w", err)
			}
		default:
			for _, c := range slices.Concat(p.look.found.stored, p.look.found.others) {
				out = append(out, Omission{c, "outside of the folder"})
			}
		}
		diff += more
		for _, o := range out {
			o.Path = p.at + o.Path
			left = append(left, o)
		}
	}
	return diff, left, nil
}

// Remove deletes the files of the look.
func (b *Before) Remove() error {
	err := b.first.remove()
	for _, p := range b.parts {
		err = errors.Join(err, p.look.remove())
	}
	return err
}
