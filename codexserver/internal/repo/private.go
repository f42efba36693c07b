package repo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/codexmcp/codexmcp/internal/safefile"
)

// source is a repository, whose files are read as data.
type source struct {
	root string // the working tree
	// gitDir is the git folder of the working tree, commonDir the one that it shares with
	// other working trees. They are often the same, and "" without a repository.
	gitDir, commonDir string
	program           program
	config            []byte // the repository's configuration, and its settings
	settings          map[string]string
}

// open finds the git folders of the working tree at root, and reads its settings. No program
// in root or in one of the folders more is used.
func (s Scratch) open(ctx context.Context, root string, more ...string) (source, error) {
	r, err := s.locate(root, more...)
	if err == nil {
		err = r.configure(ctx, s.Dir)
	}
	return r, err
}

// configure determines the settings. Git runs in dir.
func (r *source) configure(ctx context.Context, dir string) (err error) {
	if dir, err = filepath.Abs(dir); err == nil {
		r.settings, err = r.program.parseSettings(ctx, r.config, dir)
	}
	return err
}

// locate is open without settings.
func (s Scratch) locate(root string, more ...string) (source, error) {
	r := source{root: root}
	dir, err := filepath.Abs(s.Dir) // git runs in another folder
	if err != nil {
		return r, err
	}
	if r.gitDir, r.commonDir, err = folders(root); err != nil {
		return r, err
	}
	for _, dir := range []*string{&r.gitDir, &r.commonDir} {
		if *dir, err = realFolder(*dir); err != nil {
			return r, err
		}
	}
	if r.program, err = s.find(os.Environ(), append(more, root)...); err != nil {
		return r, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return r, err
	}
	r.config, err = readConfig(filepath.Join(r.commonDir, "config"))
	return r, err
}

// realFolder returns the path of a folder without symbolic links.
func realFolder(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	if info, err := os.Lstat(real); err != nil || !info.IsDir() {
		return "", fmt.Errorf("%s is not a folder", path)
	}
	return real, nil
}

// private is a private git folder, on which git runs instead of the repository's own. It has
// a configuration of this package and the repository's objects by reference.
type private struct {
	source
	// dir and common stand for the repository's gitDir and commonDir. Both lie in scratch,
	// the only folder in which git writes.
	dir, common, scratch string
	env, options         []string          // of every call
	files                map[string][]byte // the ownFiles as they were, instead of those that are there now
	held                 *os.File          // the temporary folder, locked; or nil
}

// private returns the private git folder in scratch, which exists or is made later.
func (r source) private(scratch string) *private {
	p := &private{source: r, dir: filepath.Join(scratch, "git"), scratch: scratch}
	p.common = p.dir
	if r.gitDir != r.commonDir {
		p.common = filepath.Join(scratch, "common")
	}
	return p
}

// mirror makes a private git folder for one call, with the refs below the given prefixes and
// without an index. The caller must call remove.
func (s Scratch) mirror(ctx context.Context, root string, refs ...string) (*private, error) {
	r, err := s.open(ctx, root)
	if err != nil {
		return nil, err
	}
	return s.temporary(ctx, r, refs...)
}

// temporary makes a private git folder in a new folder.
func (s Scratch) temporary(ctx context.Context, r source, refs ...string) (*private, error) {
	p, err := s.reserve(r)
	if err != nil {
		return nil, err
	}
	if err := p.make(ctx, refs...); err != nil {
		return nil, errors.Join(err, p.remove())
	}
	return p, nil
}

// reserve returns a private git folder that is not made yet, in a new folder.
func (s Scratch) reserve(r source) (*private, error) {
	dir, err := filepath.Abs(s.Dir)
	if err != nil {
		return nil, err
	}
	for {
		path, err := os.MkdirTemp(dir, scratchPrefix+"*")
		if err != nil {
			return nil, err
		}
		p := r.private(path)
		switch held, err := p.hold(); {
		case err != nil:
			return nil, errors.Join(err, p.remove())
		case held:
			return p, nil
		} // else another process took it for one of a killed process, and removes it
	}
}

func (p *private) make(ctx context.Context, refs ...string) error {
	for _, dir := range []string{p.dir, filepath.Join(p.common, "refs"), filepath.Join(p.common, "info"), filepath.Join(p.common, "objects", "info"), filepath.Join(p.common, "objects", "pack")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	if err := p.configure(configuration(p.settings)); err != nil {
		return err
	}
	if p.gitDir == "" { // there is no repository to copy
		return os.WriteFile(filepath.Join(p.dir, "HEAD"), []byte("ref: refs/heads/main\n"), 0o600)
	}
	if err := p.copyRefs(ctx, refs); err != nil {
		return err
	}
	for _, name := range ownFiles {
		var err error
		if data, known := p.files[name]; !known {
			err = copyFile(p.common, p.commonDir, filepath.FromSlash(name), maxSmallFile)
		} else if len(data) > 0 {
			err = os.WriteFile(filepath.Join(p.common, filepath.FromSlash(name)), data, 0o600)
		}
		if err != nil {
			return err
		}
	}
	if p.common != p.dir {
		if err := os.WriteFile(filepath.Join(p.dir, "commondir"), []byte("../common\n"), 0o600); err != nil {
			return err
		}
	}
	alternate := quoted(filepath.Join(p.commonDir, "objects")) + "\n"
	return os.WriteFile(filepath.Join(p.common, "objects", "info", "alternates"), []byte(alternate), 0o600)
}

// ownFiles are the files with the ignore patterns and attributes of one repository.
var ownFiles = []string{"info/exclude", "info/attributes"}

func (p *private) configure(text string) error {
	return os.WriteFile(filepath.Join(p.common, "config"), []byte(text), 0o600)
}

// scratchPrefix begins the name of a temporary private git folder.
const scratchPrefix = "git-"

// hold locks the temporary folder until it is removed or the process ends, so that [Scratch.Sweep]
// of another process leaves it. It returns false if that process was faster. Where folders cannot be
// locked, Sweep removes nothing.
func (p *private) hold() (bool, error) {
	f, err := os.Open(p.scratch)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	locked := safefile.Share(f)
	mine, err := f.Stat()
	found, failed := os.Lstat(p.scratch)
	there := err == nil && failed == nil && os.SameFile(mine, found)
	if locked == nil && there {
		p.held = f
		return true, nil
	}
	_ = f.Close()
	return there && locked != nil && !errors.Is(locked, safefile.ErrLocked), nil
}

func (p *private) remove() error {
	err := os.RemoveAll(p.scratch)
	if p.held != nil {
		_ = p.held.Close() // which unlocks it
		p.held = nil
	}
	return err
}

// git runs git on the private folder. By default the working tree is that of the repository.
func (p *private) git(ctx context.Context, c call, args ...string) (string, error) {
	c.tree = cmp.Or(c.tree, p.root)
	c.dir, c.gitDir = c.tree, p.dir
	c.writes = append([]string{p.scratch}, c.writes...)
	c.env = slices.Concat(p.env, c.env)
	c.options = slices.Concat(p.options, c.options)
	return p.program.run(ctx, c, args...)
}

// line returns the first line that git prints.
func (p *private) line(ctx context.Context, c call, args ...string) (string, error) {
	out, err := p.git(ctx, c, args...)
	first, _, _ := strings.Cut(out, "\n")
	return first, err
}

// constants are settings that do not depend on the repository.
const constants = `[core]
	logAllRefUpdates = false
	pager = cat
	safecrlf = false
	untrackedCache = false
	splitIndex = false
[gc]
	auto = 0
[maintenance]
	auto = false
[submodule]
	recurse = false
[commit]
	gpgSign = false
`

// isolate keeps git from reading the user's configuration. It takes over the settings that do
// not run programs: the line ends of files, and the global ignore patterns.
func (p *private) isolate(ctx context.Context) error {
	var found map[string]string
	if !p.program.silent("excludesfile", "autocrlf", "eol") {
		var err error
		if found, err = p.asked(ctx, `^core\.(excludesfile|autocrlf|eol)$`); err != nil {
			return err
		}
	}
	if p.settings == nil {
		p.settings = map[string]string{}
	}
	for _, key := range []string{"core.autocrlf", "core.eol"} {
		if value, ok := found[key]; ok {
			p.settings[key] = value
		}
	}
	excludes := found["core.excludesfile"]
	if !isList(excludes) {
		if excludes = defaultExcludes(); !isList(excludes) {
			excludes = os.DevNull
		}
	}
	p.env = append(p.env, withoutUser...)
	return p.configure(configuration(p.settings) + constants + "[core]\n\texcludesFile = " + quoted(excludes) + "\n")
}

// asked returns the settings whose keys match, by key. Those of the repository count before
// those of the user.
func (p *private) asked(ctx context.Context, pattern string) (map[string]string, error) {
	q := *p
	q.env = nil
	out, err := q.git(ctx, call{tree: p.scratch}, "config", "-z", "--type=path", "--get-regexp", pattern)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	found := map[string]string{}
	if err != nil { // git fails if none is set
		return found, nil
	}
	for entry := range strings.SplitSeq(out, "\x00") {
		if key, value, ok := strings.Cut(entry, "\n"); ok && isPlain(value) {
			found[key] = value
		}
	}
	return found, nil
}

// isPlain reports whether a text has no control characters.
func isPlain(text string) bool { return !strings.ContainsFunc(text, unicode.IsControl) }

// isList reports whether a path leads to a regular file, so that git cannot block on it.
func isList(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && isPlain(path)
}

// defaultExcludes returns git's default file of the user's global ignore patterns.
func defaultExcludes() string {
	dir := os.Getenv("XDG_CONFIG_HOME")
	if dir == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return ""
		}
		dir = filepath.Join(home, ".config")
	}
	return filepath.Join(dir, "git", "ignore")
}

// attributes calls f for each file and attribute.
func (p *private) attributes(ctx context.Context, c call, files, names []string, f func(file, name, value string)) error {
	if len(files) == 0 {
		return nil
	}
	c.stdin = zeros(files)
	out, err := p.git(ctx, c, append([]string{"check-attr", "-z", "--stdin"}, names...)...)
	if err != nil {
		return err
	}
	for fields := strings.Split(out, "\x00"); len(fields) >= 3; fields = fields[3:] {
		f(fields[0], fields[1], fields[2])
	}
	return nil
}

// zeros joins names as a command reads them from its input.
func zeros(names []string) string { return strings.Join(names, "\x00") + "\x00" }

// store updates an index from files of the working tree, and removes those that are gone.
func (p *private) store(ctx context.Context, c call, present, gone []string) error {
	for _, one := range []struct {
		names []string
		flags []string
	}{{gone, []string{"--force-remove"}}, {present, []string{"--add", "--remove", "--replace"}}} {
		if len(one.names) == 0 {
			continue
		}
		c.stdin = zeros(one.names)
		if _, err := p.git(ctx, c, slices.Concat([]string{"update-index"}, one.flags, []string{"-z", "--stdin"})...); err != nil {
			return err
		}
	}
	return nil
}
