package patch

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/paths"
	"github.com/codexmcp/codexmcp/internal/safefile"
)

// Limits of a patch.
const (
	maxFileSize = 64 << 20  // bytes of one file
	maxAllFiles = 256 << 20 // bytes of all files
	maxFolders  = 500       // folders that are open at once
	maxFiles    = 5000
)

// MatchError reports that lines of a hunk are not in the file.
type MatchError struct {
	// Path is the file as the patch names it.
	Path string
	// Lines are the lines of the hunk.
	Lines []string
	// Overlap is true if the file has the lines, but an earlier hunk has changed them.
	Overlap bool
}

// Error implements error.
func (e *MatchError) Error() string {
	if e.Overlap {
		return fmt.Sprintf("%s: two hunks change these lines:\n%s", e.Path, strings.Join(e.Lines, "\n"))
	}
	return fmt.Sprintf("%s does not have these lines in this place:\n%s", e.Path, strings.Join(e.Lines, "\n"))
}

// Plan is the effect of a patch on the current files.
type Plan struct {
	dir     string
	files   []*plannedFile // in the order in which the patch first names them
	byPath  map[string]*plannedFile
	folders map[string]*folder
	size    int // of all the files that were read
	search  search
	summary struct{ added, modified, deleted []string }
}

// plannedFile is one file before and after.
type plannedFile struct {
	written       string // absolute, joined but not cleaned
	path          string // the same, cleaned
	entry, target *place
	shown         string       // the path to show: see Plan.show
	via           string       // the written path, if links lead from it to shown
	before, after *string      // nil: no file
	added         bool         // the patch has the whole content
	movedTo       *plannedFile // the file that has its content after a move
	hardLinked    bool         // the file has other names, which a write changes too
	mode          fs.FileMode  // of the file that moved here; 0 if none did
}

// place returns the place to write or remove: the target of a link, or the link itself.
func (f *plannedFile) place() *place {
	if f.after == nil {
		return f.entry
	}
	return f.target
}

// writes reports whether Apply writes the file, which is not so if it removes it or leaves it
// as it is.
func (f *plannedFile) writes() bool { return f.after != nil && (f.added || !equal(f.before, f.after)) }

func (f *plannedFile) set(content *string) {
	f.after, f.movedTo, f.added, f.mode = content, nil, false, 0
}

// end returns the file that has the content after all moves.
func (f *plannedFile) end() *plannedFile {
	for f.movedTo != nil {
		f = f.movedTo
	}
	return f
}

// Plan finds the places of all files and hunks, and writes nothing. Relative paths begin at
// dir, which must be absolute. Plan returns a [*MatchError], or the reason why it cannot
// read a file.
//
// The paths of files below the folder work, with links resolved, are shown below
// work.Path.
func (p *Patch) Plan(work Folder, dir string) (*Plan, error) {
	plan := &Plan{dir: dir, byPath: map[string]*plannedFile{}, folders: map[string]*folder{}, search: search{maxComparisons}}
	for _, op := range p.files {
		if err := plan.add(op); err != nil {
			return nil, err
		}
	}
	if err := plan.bound(); err != nil {
		return nil, err
	}
	if err := plan.distinct(); err != nil {
		return nil, err
	}
	return plan, plan.show(work)
}

// Folder is a working folder by the name that the user knows.
type Folder struct {
	// Path is absolute.
	Path string
	// Real is where Path leads, or led when it was first used. If it is "", Plan resolves
	// Path.
	Real string
}

// bound fails if the patch has files in too many folders.
func (p *Plan) bound() error {
	folders := map[string]bool{}
	for _, file := range p.files {
		for _, place := range []*place{file.entry, file.target} {
			path := place.folder.path
			folders[path] = true
			for _, name := range place.rest[:len(place.rest)-1] {
				path = filepath.Join(path, name)
				folders[path] = true
			}
		}
	}
	if len(folders) > maxFolders {
		return fmt.Errorf("it has files in more than %d folders", maxFolders)
	}
	return nil
}

// distinct fails if two names lead to the same file, because the effect of each could not
// be shown.
func (p *Plan) distinct() error {
	byPlace := make(map[string]*plannedFile, len(p.files))
	for _, file := range p.files {
		path := file.place().path
		if other := byPlace[path]; other != nil {
			return fmt.Errorf("%s and %s are the same file", other.written, file.written)
		}
		byPlace[path] = file
	}
	return nil
}

// show sets the path by which each file is shown: the one in the patch or, if that leads
// through symbolic links, the real one. Links above the working folder do not count.
func (p *Plan) show(work Folder) (err error) {
	real := work.Real
	if real == "" {
		if real, err = resolve(filepath.Clean(work.Path), true); err != nil {
			return err
		}
	}
	for _, file := range p.files {
		path := file.place().path
		if path != file.path && paths.Below(path, real) {
			rel, err := filepath.Rel(real, path)
			if err != nil {
				return err
			}
			path = filepath.Join(work.Path, rel)
		}
		file.shown, file.via = file.written, ""
		if path != file.path {
			file.shown, file.via = path, file.written
		}
	}
	return nil
}

// Links returns the paths of [Plan.Changes] that the patch names through symbolic links,
// each with the path in the patch.
func (p *Plan) Links() map[string]string {
	links := map[string]string{}
	for _, file := range p.files {
		if file.via != "" {
			links[file.shown] = file.via
		}
	}
	return links
}

// HardLinks returns the paths, sorted, of files with other names (hard links) that the plan
// writes: Apply changes the content under all of these names. The paths are those of
// [Plan.Changes].
func (p *Plan) HardLinks() []string {
	var paths []string
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
	switch op.kind {
	case opAdd:
		file.set(&op.content)
		file.added = true
		p.summary.added = append(p.summary.added, op.path)
		return nil
	case opDelete:
		if file.after == nil {
			return fmt.Errorf("delete %s: %w", op.path, fs.ErrNotExist)
		}
		file.set(nil)
		p.summary.deleted = append(p.summary.deleted, op.path)
		return nil
	case opChange:
		return p.change(file, op)
	}
	if file.after == nil {
		return fmt.Errorf("update %s: %w", op.path, fs.ErrNotExist)
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
	if op.moveTo == "" {
		p.summary.modified = append(p.summary.modified, op.path)
		file.after = &content
		return nil
	}
	p.summary.modified = append(p.summary.modified, op.moveTo)
	to, err := p.file(op.moveTo)
	if err != nil {
		return err
	}
	mode := file.mode
	if file.before != nil && mode == 0 {
		mode = file.target.info.Mode().Perm()
	}
	file.set(nil)
	to.set(&content)
	if to.mode = mode; to != file {
		file.movedTo = to
	}
	return nil
}

// join makes a path of the patch absolute. It does not clean the path, so that the user
// sees it as written.
func (p *Plan) join(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return strings.TrimSuffix(p.dir, string(filepath.Separator)) + string(filepath.Separator) + path
}

// file returns the file with a name. It reads the file when the patch first names it.
func (p *Plan) file(name string) (*plannedFile, error) {
	if name == "" || strings.ContainsRune(name, 0) {
		return nil, fmt.Errorf("%q is not a file name", name)
	}
	written := p.join(name)
	path := filepath.Clean(written)
	if file := p.byPath[path]; file != nil {
		return file, nil
	}
	if len(p.files) == maxFiles {
		return nil, fmt.Errorf("it has more than %d files", maxFiles)
	}
	file := &plannedFile{written: written, path: path}
	if err := p.read(file); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	p.files = append(p.files, file)
	p.byPath[path] = file
	return file, nil
}

// read finds the places of a file and reads its content.
func (p *Plan) read(file *plannedFile) (err error) {
	if file.entry, file.target, err = p.places(file.path); err != nil || file.target.info == nil {
		return err
	}
	root, err := file.target.folder.open()
	if err != nil {
		return err
	}
	defer root.Close()
	f, err := safefile.OpenIn(root, file.target.name(), os.O_RDONLY)
	if err != nil {
		return err
	}
	defer f.Close()
	if inProc, err := safefile.InProc(f); err != nil || inProc {
		return cmp.Or(err, error(&ProcError{Path: file.written}))
	}
	content, err := f.ReadAll(maxFileSize)
	if err != nil {
		return err
	}
	file.target.info = f.Info()
	if file.hardLinked, err = f.HasOtherNames(); err != nil {
		return err
	}
	if p.size += len(content); p.size > maxAllFiles {
		return fmt.Errorf("the files together have more than %d bytes", maxAllFiles)
	}
	file.before = new(string(content))
	file.after = file.before
	return nil
}

// Changes returns the plan's changes by absolute path, for events and for the user.
func (p *Plan) Changes() map[string]protocol.FileChange {
	changes := make(map[string]protocol.FileChange, len(p.files))
	moved := map[*plannedFile]bool{} // shown with their source
	for _, file := range p.files {
		if to := file.end(); to != file && file.before != nil && to.after != nil && !moved[to] {
			moved[to] = true
			changes[file.shown] = update(*file.before, *to.after, &to.shown)
		}
	}
	for _, file := range p.files {
		_, done := changes[file.shown]
		switch {
		case done, moved[file], file.before == nil && file.after == nil:
		case file.after == nil:
			changes[file.shown] = protocol.FileChange{Delete: &protocol.FileContent{Content: strings.ToValidUTF8(*file.before, "\uFFFD")}}
		case file.before == nil, file.added:
			changes[file.shown] = protocol.FileChange{Add: &protocol.FileContent{Content: *file.after}}
		default:
			changes[file.shown] = update(*file.before, *file.after, nil)
		}
	}
	return changes
}

func update(before, after string, movePath *string) protocol.FileChange {
	before = strings.ToValidUTF8(before, "\uFFFD")
	return protocol.FileChange{Update: &protocol.FileUpdate{UnifiedDiff: Hunks(before, after), MovePath: movePath}}
}

// Summary returns the text for the model after the plan was applied.
func (p *Plan) Summary() string {
	var b strings.Builder
	b.WriteString("Success. Updated the following files:\n")
	for _, group := range []struct {
		letter string
		names  []string
	}{{"A", p.summary.added}, {"M", p.summary.modified}, {"D", p.summary.deleted}} {
		for _, name := range group.names {
			fmt.Fprintf(&b, "%s %s\n", group.letter, name)
		}
	}
	return b.String()
}
