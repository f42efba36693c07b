package patch

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// maxFileSize bounds the files that a patch may change.
const maxFileSize = 64 << 20

// MatchError says that lines of a hunk are not in the file.
type MatchError struct {
	// Path is the file as the patch names it.
	Path string
	// Lines are the lines that were looked for.
	Lines []string
	// Overlap is true when they are there, but an earlier hunk has changed them.
	Overlap bool
}

// Error implements error.
func (e *MatchError) Error() string {
	if e.Overlap {
		return fmt.Sprintf("%s: two hunks change these lines:\n%s", e.Path, strings.Join(e.Lines, "\n"))
	}
	return fmt.Sprintf("%s does not have these lines in this place:\n%s", e.Path, strings.Join(e.Lines, "\n"))
}

// Plan is what a patch would do to the files as they are.
type Plan struct {
	dir     string
	files   []*plannedFile // in the order in which the patch first names them
	byPath  map[string]*plannedFile
	summary struct{ added, modified, deleted []string }
}

// plannedFile is one file before and after.
type plannedFile struct {
	shown         string       // absolute, as the patch joins it to the folder
	path          string       // the same, cleaned
	before, after *string      // nil: no file
	added         bool         // written whole
	movedTo       *plannedFile // where its content went, while it has none itself
}

func (f *plannedFile) set(content *string) { f.after, f.movedTo, f.added = content, nil, false }

// end follows the content to where it went last.
func (f *plannedFile) end() *plannedFile {
	for f.movedTo != nil {
		f = f.movedTo
	}
	return f
}

// Plan finds the places of all hunks. It fails with a [*MatchError] or the
// reason why a file cannot be read, and writes nothing. Relative paths begin at
// dir, which must be absolute.
func (p *Patch) Plan(dir string) (*Plan, error) {
	plan := &Plan{dir: dir, byPath: map[string]*plannedFile{}}
	for _, op := range p.files {
		if err := plan.add(op); err != nil {
			return nil, err
		}
	}
	return plan, nil
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
	}
	if file.after == nil {
		return fmt.Errorf("update %s: %w", op.path, fs.ErrNotExist)
	}
	if !utf8.ValidString(*file.after) {
		return fmt.Errorf("update %s: the file is not UTF-8 text", op.path)
	}
	content, err := rewrite(*file.after, op.path, op.hunks)
	if err != nil {
		return err
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
	file.set(nil)
	to.set(&content)
	if to != file {
		file.movedTo = to
	}
	return nil
}

// join makes a path of the patch absolute. It is kept as it was written, so
// that who is asked sees it.
func (p *Plan) join(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return strings.TrimSuffix(p.dir, string(filepath.Separator)) + string(filepath.Separator) + path
}

// file gives the file of that name, read if the patch has not named it before.
func (p *Plan) file(name string) (*plannedFile, error) {
	if name == "" || strings.ContainsRune(name, 0) {
		return nil, fmt.Errorf("%q is no file name", name)
	}
	shown := p.join(name)
	path := filepath.Clean(shown)
	if file := p.byPath[path]; file != nil {
		return file, nil
	}
	before, err := readFile(path)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	file := &plannedFile{shown: shown, path: path, before: before, after: before}
	p.files = append(p.files, file)
	p.byPath[path] = file
	return file, nil
}

// readFile reads a regular file; nil without one.
func readFile(path string) (*string, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFileSize+1))
	if err != nil {
		return nil, err
	}
	if len(b) > maxFileSize {
		return nil, fmt.Errorf("larger than %d bytes", maxFileSize)
	}
	content := string(b)
	return &content, nil
}

// Changes are the plan's effects by absolute path, for the events and for who
// is asked.
func (p *Plan) Changes() map[string]protocol.FileChange {
	changes := make(map[string]protocol.FileChange, len(p.files))
	moved := map[*plannedFile]bool{} // shown with the file they come from
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
	return protocol.FileChange{Update: &protocol.FileUpdate{UnifiedDiff: unifiedDiff(before, after, 1), MovePath: movePath}}
}

// Summary is the text for the model after the plan was applied.
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
