package tool

import (
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/internal/patch"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/lazyregexp"
	"github.com/codexmcp/codexmcp/internal/paths"
	"github.com/codexmcp/codexmcp/internal/safefile"
)

// Limits of a look for plants, for each writable folder.
const (
	plantDepth   = 2    // of folders below it in which the names are looked for
	plantEntries = 4000 // in these
	plantFiles   = 500  // that are compared
	plantBytes   = 1 << 20
)

// plants are the files in the writable folders that other programs run or obey, as they are before a command. What is
// mounted read-only for the command is among them, for there may be no mounts.
type plants struct {
	cwd    string
	roots  []string
	before map[string]string // what is at a path: a word for its kind, with its content
}

// plants looks at the writable folders, but those for temporary files.
func (t *Turn) plants() (p plants) {
	roots, err := t.roots()
	if err != nil {
		return p
	}
	p.cwd = paths.Real(t.Cwd)
	for _, root := range roots.Paths {
		if root != paths.Real("/tmp") && root != paths.Real(os.TempDir()) {
			p.roots = append(p.roots, root)
		}
	}
	p.before = p.look()
	return p
}

// after returns what a command that has ended made or changed, in words for the user and the model. A file by which git would
// take its configuration from elsewhere, or hooks, that were not there in a repository that was, get another name.
func (p plants) after() (words []string) {
	now := p.look()
	var made []string
	for name, content := range now {
		if before, was := p.before[name]; !was || before != content {
			made = append(made, name)
		}
	}
	slices.Sort(made)
	if len(made) == 0 {
		return nil
	}
	var shown []string
	for _, name := range made {
		short := name
		if rel, within := paths.Within(name, p.cwd); within {
			short = rel
		}
		word := elicit.ShowName(short)
		if to := p.disarm(name); to != "" {
			word += " (renamed to " + to + ")"
		}
		shown = append(shown, word)
	}
	return []string{"The command made or changed what other programs run or obey unasked: " + few(shown, 10) + "."}
}

// armed are the names in a git folder that must not come to be there.
var armed = []string{"commondir", "config.worktree", "hooks"}

// disarm renames what must not have come to be in the git folder of a writable folder, and returns its new name.
func (p plants) disarm(name string) (to string) {
	dot, base := filepath.Dir(name), filepath.Base(name)
	_, was := p.before[dot]
	_, armedBefore := p.before[name]
	if filepath.Base(dot) != ".git" || !was || armedBefore || !slices.Contains(armed, base) ||
		!slices.Contains(p.roots, filepath.Dir(dot)) {
		return ""
	}
	root, err := os.OpenRoot(filepath.Dir(dot)) // which follows no link out of it
	if err != nil {
		return ""
	}
	defer root.Close()
	to = base + ".made-in-the-sandbox"
	if _, err := root.Lstat(".git/" + to); err == nil {
		_ = root.RemoveAll(".git/" + to) // of an earlier command
	}
	if root.Rename(".git/"+base, ".git/"+to) != nil {
		return ""
	}
	return to
}

// look returns what is there.
func (p plants) look() map[string]string {
	found := map[string]string{}
	for _, name := range p.roots {
		root, err := os.OpenRoot(name)
		if err != nil {
			continue
		}
		s := sight{root: root, base: name, found: found, entries: plantEntries, files: plantFiles}
		s.search()
		_ = root.Close()
	}
	return found
}

// sight is a look at one folder.
type sight struct {
	root           *os.Root
	base           string
	found          map[string]string
	entries, files int
}

// search looks for the names, from the top down.
func (s *sight) search() {
	folders := []string{"."}
	for range plantDepth + 1 {
		var next []string
		for _, folder := range folders {
			for _, entry := range s.list(folder) {
				at := path.Join(folder, entry.Name())
				switch {
				case strings.EqualFold(entry.Name(), ".git"):
					s.git(at)
				case patch.Obeyed(entry.Name()):
					s.take(at, plantDepth)
				case entry.IsDir():
					next = append(next, at)
				}
			}
		}
		folders = next
	}
}

func (s *sight) list(folder string) (entries []fs.DirEntry) {
	f, err := s.root.Open(folder)
	if err != nil || s.entries <= 0 {
		return nil
	}
	defer f.Close()
	entries, _ = f.ReadDir(s.entries)
	s.entries -= len(entries)
	return entries
}

// git takes a git folder, or the file that names one, and what its configuration names below the root.
func (s *sight) git(at string) {
	s.take(at, 0)
	for _, name := range []string{"commondir", "config", "config.worktree", "gitdir"} {
		s.take(at+"/"+name, 0)
	}
	s.take(at+"/hooks", 1)
	const most = 20 // files that include each other
	configs := []string{at + "/config", at + "/config.worktree"}
	for i := 0; i < min(len(configs), most); i++ {
		for _, named := range s.named(configs[i], path.Dir(at)) {
			s.take(named, 1)
			configs = append(configs, named)
		}
	}
}

// gitNames are the lines by which a configuration of git names other files and folders of hooks.
var gitNames = lazyregexp.Regexp{Text: `(?im)^[ \t]*(?:\[[^\]\n]*\][ \t]*)?(hookspath|path)[ \t]*=[ ` +
	`\t]*"?([^"\n]*?)"?[ \t\r]*(?:[#;].*)?$`}

// named returns what a configuration names below the root: hooks from the working tree, other files from its own folder.
func (s *sight) named(config, tree string) (all []string) {
	f, err := safefile.OpenIn(s.root, config, os.O_RDONLY)
	if err != nil {
		return nil
	}
	defer f.Close()
	text, _ := io.ReadAll(io.LimitReader(f, plantBytes)) // what cannot be read names nothing
	home, _ := os.UserHomeDir()
	for _, line := range gitNames.Get().FindAllSubmatch(text, plantFiles) {
		name := string(line[2])
		if rest, ok := strings.CutPrefix(name, "~/"); ok {
			name = path.Join(home, rest)
		}
		rel, within := paths.Within(name, s.base)
		switch {
		case path.IsAbs(name) && within:
		case path.IsAbs(name):
			continue
		case strings.EqualFold(string(line[1]), "path"):
			rel = path.Join(path.Dir(config), name)
		default:
			rel = path.Join(tree, name)
		}
		if filepath.IsLocal(rel) && rel != "." {
			all = append(all, rel)
		}
	}
	return all
}

// take notes what is at a path, and what is below it.
func (s *sight) take(at string, depth int) {
	info, err := s.root.Lstat(at)
	if err != nil || s.files <= 0 {
		return
	}
	s.files--
	name := filepath.Join(s.base, filepath.FromSlash(at))
	switch {
	case info.IsDir():
		s.found[name] = "a folder"
		if depth == 0 {
			return
		}
		for _, entry := range s.list(at) {
			s.take(at+"/"+entry.Name(), depth-1)
		}
	case info.Mode()&fs.ModeSymlink != 0:
		to, _ := s.root.Readlink(at)
		s.found[name] = "a link to " + to
	case info.Mode().IsRegular():
		f, err := safefile.OpenIn(s.root, at, os.O_RDONLY) // it may be a pipe by now
		if err != nil {
			s.found[name] = "a file that cannot be read"
			return
		}
		defer f.Close()
		sum := sha256.New()
		_, _ = io.Copy(sum, io.LimitReader(f, plantBytes)) // what cannot be read compares as it is
		s.found[name] = fmt.Sprintf("a file of %d bytes, %v, %x", info.Size(), info.Mode(), sum.Sum(nil))
	default:
		s.found[name] = "something else"
	}
}
