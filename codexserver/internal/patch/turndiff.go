package patch

import (
	"crypto/sha1"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/codexmcp/codexmcp/internal/paths"
	"github.com/codexmcp/codexmcp/internal/safefile"
)

// Diff is the combined diff of a turn's patches against the current files. The zero value is
// an empty diff. A turn makes one patch after another, so one goroutine at a time uses it.
type Diff struct {
	files []*changedFile
}

// changedFile is a file before the first patch that touched it.
type changedFile struct {
	name string // the path by which it was shown
	at   *place // its current place, after moves
	now  string // the path by which that is shown
	// before and mode are the old content and mode.
	before *string
	mode   os.FileMode
}

// Add adds the files of an applied plan.
func (d *Diff) Add(p *Plan) {
	for _, file := range p.files {
		// The new file of a move is shown with the old one.
		changed := d.at(file.shown)
		if changed == nil && file.before == nil && d.isTarget(p, file) {
			continue
		}
		if changed == nil {
			changed = &changedFile{name: file.shown, now: file.shown, at: file.place(), before: file.before, mode: 0o644}
			if file.before != nil {
				changed.mode = file.target.info.Mode()
			}
			d.files = append(d.files, changed)
		}
		if to := file.end(); to != file {
			changed.now, changed.at = to.shown, to.place()
		}
	}
}

// Empty reports whether no plan was added.
func (d *Diff) Empty() bool { return len(d.files) == 0 }

func (d *Diff) isTarget(p *Plan, file *plannedFile) bool {
	return slices.ContainsFunc(p.files, func(f *plannedFile) bool { return f != file && f.before != nil && f.end() == file })
}

// at returns the file with the current name.
func (d *Diff) at(name string) *changedFile {
	for _, file := range d.files {
		if file.now == name {
			return file
		}
	}
	return nil
}

// Text returns the diff in git's format, or "" if nothing has changed. Paths below top, the
// top of a git repository or "", are relative to it.
func (d *Diff) Text(top string) string {
	sorted := slices.Clone(d.files)
	slices.SortFunc(sorted, func(a, b *changedFile) int { return strings.Compare(a.name, b.name) })
	var b strings.Builder
	for _, file := range sorted {
		file.write(&b, top)
	}
	return b.String()
}

func (f *changedFile) write(b *strings.Builder, top string) {
	now, mode, err := f.read()
	if err != nil || equal(f.before, now) && f.name == f.now {
		return
	}
	from, to := "a/"+shownPath(f.name, top), "b/"+shownPath(f.now, top)
	fmt.Fprintf(b, "diff --git %s %s\n", from, to)
	switch {
	case f.before == nil:
		fmt.Fprintf(b, "new file mode %s\n", gitMode(mode))
		from = "/dev/null"
	case now == nil:
		fmt.Fprintf(b, "deleted file mode %s\n", gitMode(f.mode))
		to = "/dev/null"
	case gitMode(mode) != gitMode(f.mode):
		fmt.Fprintf(b, "old mode %s\nnew mode %s\n", gitMode(f.mode), gitMode(mode))
	}
	fmt.Fprintf(b, "index %s..%s\n", blobID(f.before), blobID(now))
	before, after := text(f.before), text(now)
	if !utf8.ValidString(before) || !utf8.ValidString(after) {
		b.WriteString("Binary files differ\n")
		return
	}
	fmt.Fprintf(b, "--- %s\n+++ %s\n%s", from, to, unifiedDiff(before, after, 3))
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// read reads the file where it was written. It does not follow links that have since
// replaced it or a folder above it.
func (f *changedFile) read() (content *string, mode os.FileMode, err error) {
	if real, err := resolve(f.at.path, true); err != nil || real != f.at.path {
		return nil, 0o644, err
	}
	file, err := safefile.Open(f.at.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0o644, nil
	}
	if err != nil {
		return nil, 0, err
	}
	defer file.Close()
	data, err := file.ReadAll(maxFileSize)
	return new(string(data)), file.Info().Mode(), err
}

func gitMode(m os.FileMode) string {
	if m&0o111 != 0 {
		return "100755"
	}
	return "100644"
}

// blobID returns git's name for a content, or zeros for nil.
func blobID(content *string) string {
	if content == nil {
		return strings.Repeat("0", 40)
	}
	h := sha1.New()
	fmt.Fprintf(h, "blob %d\x00%s", len(*content), *content)
	return fmt.Sprintf("%x", h.Sum(nil))
}

func shownPath(path, top string) string {
	if rel, ok := paths.Within(path, top); ok && top != "" {
		return filepath.ToSlash(rel)
	}
	return filepath.ToSlash(path)
}
