package permission

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/internal/paths"
)

// Limits of a look for what globs match.
const (
	maxMatches = 10_000
	maxSeen    = 1_000_000 // names on the way
)

// glob is a pattern of paths: *, ? and [ ] in one name, and ** for any folders.
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
		g.names[i] = strings.ReplaceAll(name, "[!", "[^")
	}
	if g.root == "" || strings.HasSuffix(g.root, ":") {
		g.root += "/"
	}
	g.root = paths.Real(filepath.FromSlash(g.root))
	return g
}

// CheckGlob returns an error if a path is a pattern that cannot be matched, or that is about all files of the machine, which
// nobody can look through before each command.
func CheckGlob(pattern string) error {
	if first, _, _ := strings.Cut(strings.TrimPrefix(filepath.ToSlash(pattern), "/"), "/"); isGlob(first) {
		return fmt.Errorf("%q: a pattern needs a folder before it", pattern)
	}
	for _, name := range strings.Split(filepath.ToSlash(pattern), "/") {
		if _, err := path.Match(strings.ReplaceAll(name, "[!", "[^"), ""); err != nil {
			return fmt.Errorf("%q is not a pattern: %q: %w", pattern, name, err)
		}
	}
	return nil
}

// covers reports whether the glob matches a path, or a folder above it.
func (g *glob) covers(file string) bool {
	rel, within := paths.Within(file, g.root)
	if !within || rel == "." {
		return false
	}
	return covers(g.names, strings.Split(filepath.ToSlash(rel), "/"))
}

// covers reports whether a pattern matches the names, or some from the first one on. It looks at each name once.
func covers(pattern, names []string) bool {
	here := make([]bool, len(pattern)) // which names of the pattern may be the next
	here[0] = true
	for _, name := range names {
		next := make([]bool, len(pattern))
		for i, want := range pattern {
			ends := i == len(pattern)-1
			switch ok := false; {
			case !here[i]:
			case want == "**" && ends:
				return true
			case want == "**":
				next[i], here[i+1] = true, true // it stands for no folder, too
			default:
				if ok, _ = path.Match(want, name); ok && ends {
					return true
				}
				if ok {
					next[i+1] = true
				}
			}
		}
		here = next
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
			b.WriteString(name[i : i+end+1])
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
	// Fixed are the folders on the way, from the glob's own on, which a command must not rename: the glob names them.
	// Loose is true if it leaves others to **: then what is below the last of Fixed must stay below it.
	Fixed []string
	Loose bool
	Key   string
}

// Find returns what the globs match now, each once. It follows no symbolic links, but what one leads to that matches is
// found, too. It fails if that is too much, or a folder cannot be read.
func (s *Set) Find() ([]Match, error) {
	if s == nil {
		return nil, nil
	}
	f := finder{depth: s.depth, found: map[string]bool{}}
	for _, g := range s.globs {
		f.glob = g
		if err := f.walk(g.root, g.names, []string{g.root}, false, 0); err != nil {
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

// walk looks for the names of a pattern in a folder. Fixed are the folders that the pattern names so far.
func (f *finder) walk(dir string, pattern, fixed []string, loose bool, depth int) error {
	if f.depth > 0 && depth >= f.depth {
		return nil
	}
	if len(pattern) > 1 && pattern[0] == "**" && pattern[1] == "**" {
		return f.walk(dir, pattern[1:], fixed, loose, depth)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		if info, gone := os.Lstat(dir); gone != nil || !info.IsDir() || os.IsPermission(err) {
			return nil // a command of the same user reads no more
		}
		return err
	}
	f.seen += len(entries)
	if f.seen > maxSeen {
		return fmt.Errorf("it looks at more than %d names; set glob_scan_max_depth", maxSeen)
	}
	deep := pattern[0] == "**"
	rest := pattern
	if deep {
		rest = pattern[1:]
	}
	for _, entry := range entries {
		file := filepath.Join(dir, entry.Name())
		ok := len(rest) == 0
		if !ok {
			ok, _ = path.Match(rest[0], entry.Name())
		}
		switch {
		case ok && len(rest) <= 1:
			if err := f.add(file, entry, fixed, loose); err != nil {
				return err
			}
			continue // what is below is covered
		case ok && entry.IsDir():
			if err := f.walk(file, rest[1:], append(slices.Clip(fixed), file), loose, depth+1); err != nil {
				return err
			}
		}
		if deep && entry.IsDir() {
			if err := f.walk(file, pattern, fixed, true, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *finder) add(file string, entry fs.DirEntry, fixed []string, loose bool) error {
	names := []string{file}
	if entry.Type()&fs.ModeSymlink != 0 {
		names = nil // nothing can be mounted on it
		if real, err := filepath.EvalSymlinks(file); err == nil {
			names = []string{real}
		}
	}
	for _, name := range names {
		if f.found[name] {
			continue
		}
		f.found[name] = true
		f.all = append(f.all, Match{Path: name, Fixed: fixed, Loose: loose, Key: f.key})
	}
	if len(f.all) > maxMatches {
		return fmt.Errorf("it matches more than %d names", maxMatches)
	}
	return nil
}
