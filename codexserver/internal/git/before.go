package git

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/internal/paths"
)

// maxParts bounds the folders that are looked at, with the first.
const maxParts = 17

// Options configure a look.
type Options struct {
	Scratch Scratch
	Roots   []string // absolute paths of further folders to look at
	// Files is how many files git may read that differ from its index. In a folder without a
	// repository it reads all, and at most a twentieth of this number. Default: 100,000.
	Files int
	// Withheld, unless it is nil, fails for an absolute path whose content must not be in a diff.
	Withheld func(path string) error
}

// Before is the content of a folder at one moment, and that of further folders. It is not safe for concurrent use.
type Before struct{ parts []*look }

// Look looks at the working tree that contains dir, an absolute path, or at dir itself outside of a
// repository. What it cannot look at of the further folders is among [Before.Gaps]. Without a sandbox on this
// system git does not run, and the error wraps [box.ErrUnavailable]. Remove deletes the files of the look.
func Look(ctx context.Context, dir string, o *Options) (*Before, error) {
	dir = paths.Real(dir) // other paths are compared with the root
	first, err := take(ctx, cmp.Or(Root(dir), dir), o)
	if err != nil {
		return nil, fmt.Errorf("git: %w", err)
	}
	first.withheld = o.Withheld
	b := &Before{[]*look{first}}
	if rel, ok := paths.Within(dir, first.root); ok {
		name := filepath.ToSlash(rel) + "/"
		if slices.ContainsFunc(first.before.ignored,
			func(i string) bool { return strings.HasSuffix(i, "/") && strings.HasPrefix(name, i) }) {
			b.add(ctx, name, dir, o)
		}
	}
	for _, root := range o.Roots {
		root = paths.Real(root)
		if !b.Covers(root) && root != first.root {
			b.add(ctx, root, cmp.Or(Root(root), root), o)
		}
	}
	return b, nil
}

// add looks at a further folder. At is its path as in the changes.
func (b *Before) add(ctx context.Context, at, dir string, o *Options) {
	l, err := &look{}, errors.New("too many folders")
	if len(b.parts) < maxParts {
		l, err = take(ctx, dir, o)
	}
	if err != nil {
		l = &look{gone: why(err)}
	}
	l.at = strings.TrimSuffix(filepath.ToSlash(at), "/") + "/"
	b.parts = append(b.parts, l)
}

func why(err error) string {
	if errors.Is(err, os.ErrNotExist) {
		return "it does not exist"
	}
	return err.Error()
}

// Root returns the top of the working tree, or the folder itself outside a repository.
func (b *Before) Root() string { return b.parts[0].root }

// Covers reports whether Compare finds changes of the file at an absolute path.
func (b *Before) Covers(file string) bool {
	return slices.ContainsFunc(b.parts, func(l *look) bool {
		if l.gone != "" {
			return false
		}
		rel, ok := paths.Within(file, l.root)
		for name := filepath.ToSlash(rel); ok && name != "."; name = path.Dir(name) {
			ok = l.before.others[name+"/"] == other{} && !slices.Contains(l.modules, name)
		}
		return ok
	})
}

// Compare returns the changes since the look, sorted by path. The paths of changes outside of the root are absolute. It
// compares contents. It does not matter who wrote them, and what git has recorded. It must be called once.
//
// Compare returns at most max bytes of a diff, in git's format. `git apply` takes the diff: it has every section whole.
// Text that is not UTF-8, what git would convert as it applies the diff, and changes outside of the root are not in it.
func (b *Before) Compare(ctx context.Context, max int) (changes []Change, diff string, err error) {
	for i, l := range b.parts {
		if l.gone != "" {
			continue
		}
		more, err := l.compare(ctx, max-len(diff))
		if err != nil && i == 0 {
			return nil, "", fmt.Errorf("git: %w", err)
		}
		if err != nil {
			l.gone = why(err)
			continue
		}
		diff += more
		for _, c := range l.changes {
			c.Path = l.at + c.Path
			changes = append(changes, c)
		}
	}
	SortChanges(changes)
	return changes, diff, nil
}

// Gap is a place where changes were not looked for.
type Gap struct {
	Path string // relative to the root, with slashes, or absolute; a folder ends with a slash, and "" is the root
	Why  string
}

// Gaps returns where changes were not looked for, after Compare.
func (b *Before) Gaps() []Gap {
	var gaps []Gap
	for i, l := range b.parts {
		if l.gone != "" {
			gaps = append(gaps, Gap{l.at, l.gone})
			continue
		}
		ignored := slices.Concat(l.before.ignored, l.after.ignored)
		if i == 0 { // but a folder that is looked at
			ignored = slices.DeleteFunc(ignored, func(name string) bool {
				return slices.ContainsFunc(b.parts, func(p *look) bool { return p.gone == "" && p.at == name })
			})
		}
		for _, g := range l.gaps(ignored) {
			gaps = append(gaps, Gap{l.at + g.Path, g.Why})
		}
	}
	return gaps
}

func (l *look) gaps(ignored []string) []Gap {
	gaps := slices.Concat(l.before.unread, l.after.unread)
	for _, c := range l.changes {
		if c.Kind == Update && c.Why == converted {
			gaps = append(gaps, Gap{c.Path, converted + ", so its content may be the same"})
		}
	}
	for name, o := range l.before.others {
		if o.why == otherRepository && o.why == l.after.others[name].why {
			gaps = append(gaps, Gap{name, o.why})
		}
	}
	if why := ignoredWhy(ignored); why != "" {
		gaps = append(gaps, Gap{"", why})
	}
	if l.modeless() {
		gaps = append(gaps, Gap{"", "core.fileMode is false, so changed modes do not show"})
	}
	if l.includes {
		gaps = append(gaps, Gap{"", "the repository's configuration includes other files, which are not read"})
	}
	slices.SortFunc(gaps, func(a, b Gap) int { return cmp.Or(cmp.Compare(a.Why, b.Why), cmp.Compare(a.Path, b.Path)) })
	return slices.Compact(gaps)
}

// maxIgnored bounds the ignored files that a gap names.
const maxIgnored = 3

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

// Remove deletes the files of the look.
func (b *Before) Remove() (err error) {
	for _, l := range b.parts {
		if l.mirror != nil {
			err = errors.Join(err, l.remove())
		}
	}
	return err
}
