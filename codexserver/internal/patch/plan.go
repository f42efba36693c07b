package patch

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/codexmcp/codexmcp/internal/lazyregexp"
	"github.com/codexmcp/codexmcp/internal/paths"
	"github.com/codexmcp/codexmcp/internal/safefile"
)

// Limits of a patch.
const (
	maxFileSize = 64 << 20  // bytes of one file
	maxAllFiles = 256 << 20 // bytes of all files
	maxFiles    = 5000
)

// ErrProc reports a file of /proc, whose content depends on who reads it.
var ErrProc = errors.New("in /proc")

// Plan is the effect of a patch on the current files.
type Plan struct {
	work    string                  // whose share of the network may be used
	check   func(path string) error // see [Folder]
	dir     string
	files   []*plannedFile // in the order in which the patch first names them
	byPath  map[string]*plannedFile
	folders map[string]*folder
	size    int // of all the files that were read
	search  search
	summary map[rune][]string // the names of files by the letter of what happened
}

// plannedFile is one file before and after.
type plannedFile struct {
	written       string // absolute, joined but not cleaned
	entry, target *place
	shown         string       // the path to show: the written one or, if that leads through links, the real one
	before, after *string      // nil: no file
	added         bool         // the patch has the whole content
	from          *plannedFile // the file that moved here
	over          bool         // another file moved here, over what was there
	folds         bool         // the file that moves here had this very name, but for letter case
	hardLinked    bool         // the file has other names, which a write changes too
	mode          fs.FileMode  // of the file that moved here; 0 if none did
	given         bool         // by [Replace], so that it need not be text
	program       *bool        // whether it becomes executable, nil if that stays
}

func (f *plannedFile) path() string { return filepath.Clean(f.written) }

// place returns the place to write or remove: the target of a link, or the link itself.
func (f *plannedFile) place() *place {
	if f.after == nil {
		return f.entry
	}
	return f.target
}

// writes reports whether Apply writes the file, which is not so if it removes it or leaves it as it is.
func (f *plannedFile) writes() bool { return f.after != nil && (f.added || !equal(f.before, f.after)) }

// replaces reports whether a file takes the place of the one that was there, which the patch does not read.
func (f *plannedFile) replaces() bool {
	return f.before != nil && f.after != nil && (f.added || f.over)
}

// moves reports whether the file moved here and nothing was lost here, so that both are shown as one change.
func (f *plannedFile) moves() bool { return f.from != nil && f.before == nil }

func equal(a, b *string) bool { return a == b || a != nil && b != nil && *a == *b }

// Folder is a working folder by the name that the user knows.
type Folder struct {
	Path string // absolute
	Real string // where Path leads, or led when it was first used. Default: Path.
	// Check, unless it is nil, fails for a path, free of symbolic links, that may not be read.
	Check func(path string) error
}

// Plan finds the places of all files and hunks, and writes nothing. Relative paths begin at dir, which must be
// absolute. Plan returns the reason why lines of a hunk are not found, or why it cannot read a file.
//
// The paths of files below work.Real are shown below work.Path.
func (p *Patch) Plan(work Folder, dir string) (*Plan, error) {
	plan := newPlan(work, dir)
	for _, op := range p.files {
		if err := plan.add(op); err != nil {
			return nil, err
		}
	}
	return plan, plan.show(work)
}

// Edit plans to change one file. It calls change with the file's content, nil if there is no file, and returns its error as it
// is. A change that returns the same content only reads the file. The rest is as for [Patch.Plan].
func Edit(work Folder, dir, path string, change func(before *string) (after string, err error)) (*Plan, error) {
	plan := newPlan(work, dir)
	file, err := plan.file(path)
	if err != nil {
		return nil, err
	}
	after, err := change(file.before)
	if err != nil {
		return nil, err
	}
	switch file.after = &after; {
	case file.before == nil:
		plan.note('A', path)
	case after != *file.before:
		plan.note('M', path)
	}
	return plan, plan.show(work)
}

// show finds how to show each file.
func (p *Plan) show(work Folder) error {
	byPlace, moved := make(map[string]*plannedFile, len(p.files)), map[*plannedFile]bool{}
	for _, file := range p.files {
		path := file.place().path
		if other := byPlace[path]; other != nil { // the effect of each could not be shown
			return fmt.Errorf("%s and %s are the same file", other.written, file.written)
		}
		byPlace[path] = file
		file.shown = shownAs(work, file.written, path)
		// A file that moved to several places, because the patch made it again, is shown with the first.
		if from := file.from; from == nil || moved[from] || file.after == nil || from.before == nil ||
			from.after != nil {
			file.from = nil
		}
		moved[file.from] = true
	}
	return nil
}

// shownAs returns the path by which a file is shown: the written one or, if that leads through links, the real one.
func shownAs(work Folder, written, real string) string {
	path := filepath.Clean(written)
	if rel, ok := paths.Within(real, cmp.Or(work.Real, work.Path)); ok && real != path {
		real = filepath.Join(work.Path, rel)
	}
	if real == path {
		return written
	}
	return real
}

func newPlan(work Folder, dir string) *Plan {
	return &Plan{
		work: work.Path, check: work.Check, dir: dir, byPath: map[string]*plannedFile{}, folders: map[string]*folder{},
		search: search{maxComparisons}, summary: map[rune][]string{},
	}
}

// Links returns the paths of [Plan.Changes] that the patch names through symbolic links,
// each with the path in the patch. Links above the working folder do not count.
func (p *Plan) Links() map[string]string {
	links := map[string]string{}
	for _, file := range p.files {
		if file.shown != file.written {
			links[file.shown] = file.written
		}
	}
	return links
}

// HardLinks returns the paths, sorted, of files with other names (hard links) that the plan writes: Apply changes the
// content under all of these names. The paths are those of [Plan.Changes].
func (p *Plan) HardLinks() (paths []string) {
	for _, file := range p.files {
		if file.hardLinked && file.writes() {
			paths = append(paths, file.shown)
		}
	}
	slices.Sort(paths)
	return paths
}

func (p *Plan) add(op fileOp) error {
	file, err := p.file(op.path)
	if err != nil {
		return err
	}
	if file.after == nil && op.kind != opAdd {
		return fmt.Errorf("%s %s: %w", op.kind, op.path, fs.ErrNotExist)
	}
	switch op.kind {
	case opAdd:
		file.after, file.added, file.mode, file.from = &op.content, true, 0, nil
		if file.before != nil {
			p.note('M', op.path)
		} else {
			p.note('A', op.path)
		}
		return nil
	case opDelete:
		file.after, file.added = nil, false
		p.note('D', op.path)
		return nil
	}
	content := *file.after
	if len(op.hunks) > 0 {
		if !utf8.ValidString(content) {
			return fmt.Errorf("update %s: the file is not UTF-8 text", op.path)
		}
		if content, err = p.search.rewrite(content, op.path, op.hunks); err != nil {
			return err
		}
	}
	p.note('M', cmp.Or(op.moveTo, op.path))
	if op.moveTo == "" {
		file.after = &content
		return nil
	}
	to, err := p.destination(file, op.moveTo)
	if err != nil {
		return err
	}
	mode := file.mode
	if file.before != nil && mode == 0 {
		mode = file.target.info.Mode().Perm()
	}
	file.after, file.added, file.mode = nil, false, 0
	to.after, to.added, to.mode = &content, false, mode
	if to == file {
		return nil
	}
	if to.from == nil {
		to.from = file
		if file.moves() {
			to.from = file.from
		}
	}
	to.over = to.over || to.from != to
	return nil
}

// destination returns the file to which another one moves. On a file system that ignores letter case it may be that file: a new
// name for it writes over nothing.
func (p *Plan) destination(from *plannedFile, name string) (*plannedFile, error) {
	named := len(p.files)
	to, err := p.file(name)
	if err != nil || to == from {
		return to, err
	}
	switch same, err := sameEntry(from.entry, to.entry); {
	case err != nil || !same:
		return to, err
	case named == len(p.files) || from.entry.name() == to.entry.name():
		return nil, fmt.Errorf("%s and %s are the same file", from.written, to.written)
	}
	to.before, to.entry.info, to.target.info, to.folds, to.hardLinked = nil, nil, nil, true, false
	return to, nil
}

func (p *Plan) note(letter rune, name string) { p.summary[letter] = append(p.summary[letter], name) }

// file returns the file with a name that a model has written.
func (p *Plan) file(name string) (*plannedFile, error) {
	if name == "" || strings.ContainsRune(name, 0) {
		return nil, fmt.Errorf("%q is not a file name", name)
	}
	if err := p.literal(name); err != nil {
		return nil, err
	}
	return p.named(name)
}

// named returns the file with a name. It reads the file when that is first named.
func (p *Plan) named(name string) (*plannedFile, error) {
	written := filepath.FromSlash(name) // not cleaned, so that the user sees it as written
	if !filepath.IsAbs(name) {
		written = strings.TrimSuffix(p.dir, string(filepath.Separator)) + string(filepath.Separator) + name
	}
	path := filepath.Clean(written)
	if err := paths.Local(runtime.GOOS, path, p.work); err != nil {
		return nil, err
	}
	if there := paths.Existing(path); there != path {
		written, path = there, there
	}
	if file := p.byPath[path]; file != nil {
		return file, nil
	}
	if len(p.files) == maxFiles {
		return nil, fmt.Errorf("it has more than %d files", maxFiles)
	}
	file := &plannedFile{written: written}
	if err := p.read(file); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	p.files = append(p.files, file)
	p.byPath[path] = file
	return file, nil
}

// expands matches a path of which a shell would replace the beginning, or a variable behind that of an absolute path: the
// home of a user, a variable, the output of a command.
var expands = lazyregexp.Regexp{Text: `^(?:~(?:/|$)|~[a-z_][\w.-]*/|\$[A-Z_][A-Z0-9_]*(?:/|$)|\$\{[^/]*\}|\$\(|` +
	`%[A-Za-z_]\w*%|` +
	"`" + `)|^/(?:.*/)?(?:\$[A-Z_][A-Z0-9_]*|\$\{[A-Z_][A-Z0-9_]*\})(?:/|$)`}

// address matches the beginning of what is no path.
var address = lazyregexp.Regexp{Text: `^(?i:file:|[a-z][a-z0-9+.-]+://)`}

// literal fails for a name that a model does not mean as it is, unless there is such a file or folder.
func (p *Plan) literal(name string) error {
	if address.Get().MatchString(name) {
		return fmt.Errorf("%q is an address; write the path, or begin it with ./ for a name like that", name)
	}
	if !expands.Get().MatchString(name) {
		return nil
	}
	if first, _, _ := strings.Cut(name, "/"); first != "" && first != "~" {
		if _, err := lstat(filepath.Join(p.dir, first)); err == nil {
			return nil
		}
	}
	return fmt.Errorf("%q: no shell reads this path, so nothing in it is replaced; "+
		"write the absolute path, or begin it with ./ for a name like that", name)
}

// read finds the places of a file and reads its content.
func (p *Plan) read(file *plannedFile) (err error) {
	if file.entry, file.target, err = p.places(file.path()); err != nil {
		return err
	}
	if p.check != nil {
		for _, at := range []*place{file.entry, file.target} {
			if err := p.check(at.path); err != nil {
				return err
			}
		}
	}
	if file.target.info == nil {
		return nil
	}
	return file.target.folder.do(func(root *os.Root) error {
		f, err := safefile.OpenIn(root, file.target.name(), os.O_RDONLY)
		if err != nil {
			return err
		}
		defer f.Close()
		if inProc, err := safefile.InProc(f); err != nil || inProc {
			return cmp.Or(err, fmt.Errorf("%s is %w", file.written, ErrProc))
		}
		content, err := f.ReadAll(maxFileSize)
		if err != nil {
			return err
		}
		if p.size += len(content); p.size > maxAllFiles {
			return fmt.Errorf("the files together have more than %d bytes", maxAllFiles)
		}
		file.target.info = f.Info()
		file.before = new(string(content))
		file.after = file.before
		file.hardLinked, err = f.HasOtherNames()
		return err
	})
}

// Summary returns the text for the model after the plan was applied.
func (p *Plan) Summary() string {
	var b strings.Builder
	b.WriteString("Success. Updated the following files:\n")
	for _, letter := range "AMD" {
		for _, name := range p.summary[letter] {
			fmt.Fprintf(&b, "%c %s\n", letter, name)
		}
	}
	return b.String()
}
