package permission

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/codexmcp/codexmcp/internal/paths"
)

// Limits of a look for what globs match.
const (
	maxMatches = 10_000
	maxSeen    = 1_000_000 // names on the way
)

// glob is a pattern of paths: *, ? and [ ] in one name, and ** for any folders. Braces mean themselves, as in Codex.
type glob struct {
	text  string
	key   string
	root  string   // the folder before the first name with such a character, free of symbolic links
	names []string // of the pattern below it
}

func isGlob(path string) bool { return strings.ContainsAny(path, "*?[]") }

func newGlob(text, key string) glob {
	names := strings.Split(filepath.ToSlash(text), "/")
	first := slices.IndexFunc(names, isGlob)
	g := glob{text: text, key: key, root: strings.Join(names[:first], "/"), names: names[first:]}
	for i, name := range g.names {
		for name != "**" && strings.Contains(name, "**") { // of which the library makes something else than of one
			name = strings.ReplaceAll(name, "**", "*")
		}
		g.names[i] = name
	}
	if g.names[len(g.names)-1] == "**" { // what is in a folder, and not the folder
		g.names = append(g.names, "*")
	}
	if g.root == "" || strings.HasSuffix(g.root, ":") {
		g.root += "/"
	}
	g.root = paths.Real(filepath.FromSlash(g.root))
	return g
}

// braces escapes what means nothing here.
var braces = strings.NewReplacer("{", `\{`, "}", `\}`)

// CheckGlob returns an error if a path is a pattern that cannot be matched, or that is about all files of the machine, which
// nobody can look through before each command.
func CheckGlob(pattern string) error {
	pattern = filepath.ToSlash(pattern)
	if first, _, _ := strings.Cut(strings.TrimPrefix(pattern, "/"), "/"); isGlob(first) {
		return fmt.Errorf("%q: a pattern needs a folder before it", pattern)
	}
	if isGlob(pattern) && !doublestar.ValidatePattern(braces.Replace(pattern)) {
		return fmt.Errorf("%q is not a pattern", pattern)
	}
	return nil
}

// matches reports whether the glob matches the path of a file below its root, with slashes.
func (g *glob) matches(rel string) bool {
	return doublestar.MatchUnvalidated(braces.Replace(strings.Join(g.names, "/")), rel)
}

// covers reports whether the glob matches a path, or a folder above it.
func (g *glob) covers(file string) bool {
	rel, within := paths.Within(file, g.root)
	for rel = filepath.ToSlash(rel); within && rel != "."; rel = path.Dir(rel) {
		if g.matches(rel) {
			return true
		}
	}
	return false
}

// Patterns returns the globs as regular expressions for whole paths, which also match what is below a folder.
func (s *Set) Patterns() (all []string) {
	for _, g := range s.globs {
		var b strings.Builder
		b.WriteString("^" + regexp.QuoteMeta(strings.TrimSuffix(g.root, "/")) + "/")
		for i, name := range g.names {
			last := i == len(g.names)-1
			switch {
			case name == "**" && last:
				b.WriteString(".*")
			case name == "**":
				b.WriteString("(.*/)?")
			default:
				b.WriteString(regexOf(name))
				if !last {
					b.WriteString("/")
				}
			}
		}
		b.WriteString("(/.*)?$")
		all = append(all, b.String())
	}
	return all
}

// regexOf returns the expression for a name of a pattern.
func regexOf(name string) string {
	var b strings.Builder
	for i := 0; i < len(name); i++ {
		end := strings.IndexByte(name[i:], ']')
		switch c := name[i]; {
		case c == '*':
			b.WriteString("[^/]*")
		case c == '?':
			b.WriteString("[^/]")
		case c == '[' && end > 0:
			b.WriteString(strings.Replace(name[i:i+end+1], "[!", "[^", 1))
			i += end
		default:
			b.WriteString(regexp.QuoteMeta(name[i : i+1]))
		}
	}
	return b.String()
}

// Match is what a glob matches.
type Match struct {
	Path string
	// Fixed are the folders on the way, from the glob's own on, that the glob names, so that a command must not rename them.
	// Loose is true if ** stands for others: then what is below the last of Fixed must stay below it.
	Fixed []string
	Loose bool
}

// Find returns what the globs match now, each once. It follows no symbolic links, but what one leads to that matches is
// found, too, and so is a folder that cannot be read: a command could change that. It fails if there is too much.
func (s *Set) Find() ([]Match, error) {
	if s == nil {
		return nil, nil
	}
	f := finder{depth: s.depth, found: map[string]bool{}}
	for _, g := range s.globs {
		f.glob = g
		if err := filepath.WalkDir(g.root, f.visit); err != nil {
			return nil, fmt.Errorf("%s: %w", g.key, err)
		}
	}
	return f.all, nil
}

type finder struct {
	glob
	depth int
	seen  int
	found map[string]bool
	all   []Match
}

// visit implements [fs.WalkDirFunc].
func (f *finder) visit(file string, entry fs.DirEntry, err error) error {
	rel, _ := paths.Within(file, f.root)
	rel = filepath.ToSlash(rel)
	if f.seen++; f.seen > maxSeen {
		return fmt.Errorf("it looks at more than %d names; set glob_scan_max_depth", maxSeen)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, fs.ErrPermission) && rel != ".":
		return f.add(file, rel)
	case err != nil:
		return err
	case rel == ".":
		return nil
	case f.matches(rel):
		if entry.Type()&fs.ModeSymlink != 0 { // nothing can be mounted on it
			if file, err = filepath.EvalSymlinks(file); err != nil {
				return nil
			}
		}
		if err = f.add(file, rel); err == nil && entry.IsDir() {
			err = fs.SkipDir // what is below is covered
		}
		return err
	case entry.IsDir() && strings.Count(rel, "/")+1 >= f.deepest():
		return fs.SkipDir
	}
	return nil
}

// deepest is how deep files can be that the glob matches.
func (f *finder) deepest() int {
	most := f.depth
	if !slices.Contains(f.names, "**") && (most == 0 || len(f.names) < most) {
		most = len(f.names)
	}
	if most == 0 {
		return maxSeen
	}
	return most
}

func (f *finder) add(file, rel string) error {
	if f.found[file] {
		return nil
	}
	if f.found[file] = true; len(f.found) > maxMatches {
		return fmt.Errorf("it matches more than %d names", maxMatches)
	}
	m := Match{Path: file, Fixed: []string{f.root}}
	above := strings.Split(rel, "/")
	above = above[:len(above)-1]
	first := slices.Index(f.names, "**")
	behind := len(f.names) - first - 2 // folders that are named behind it
	for i := range above {
		named := first < 0 || i < first || i >= len(above)-behind || slices.Contains(f.names[first+1:], "**")
		if named {
			m.Fixed = append(m.Fixed, filepath.Join(f.root, filepath.FromSlash(strings.Join(above[:i+1], "/"))))
		}
		m.Loose = m.Loose || !named
	}
	f.all = append(f.all, m)
	return nil
}
