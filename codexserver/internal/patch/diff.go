package patch

import (
	"cmp"
	"crypto/sha1"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"
	"github.com/codexmcp/codexmcp/internal/paths"
)

// unified returns a unified diff with context lines around each change, or "".
func unified(from, to, before, after string, context int) string {
	diff, err := udiff.ToUnifiedDiff(from, to, before, udiff.Lines(before, after), context)
	if err != nil {
		panic(err) // the edits are those of before
	}
	longer := 0
	for _, hunk := range diff.Hunks {
		hunk.ToLine = hunk.FromLine + longer // the library does not count the lines between changes of one hunk
		for _, line := range hunk.Lines {
			switch line.Kind {
			case udiff.Insert:
				longer++
			case udiff.Delete:
				longer--
			}
		}
	}
	return diff.String()
}

// Hunks returns the hunks that change before to after, in the form of [Plan.Changes].
func Hunks(before, after string) string {
	diff := unified("", "", before, after, 1)
	return diff[max(strings.Index(diff, "@@"), 0):]
}

// Diff is the combined diff of a turn's patches against the current files. The zero value is
// an empty diff. A turn makes one patch after another, so one goroutine at a time uses it.
type Diff struct {
	files []*changedFile
}

// changedFile is a file before the first patch that touched it.
type changedFile struct {
	name   string // the path by which it was shown
	now    string // the path by which its current place is shown, after moves
	real   string // that place
	before *string
	mode   fs.FileMode
}

// Add adds the files of an applied plan.
func (d *Diff) Add(p *Plan) {
	for _, file := range p.files {
		shown := file.shown
		if !file.moves() && !slices.ContainsFunc(d.files, func(f *changedFile) bool { return f.now == shown }) {
			changed := &changedFile{name: shown, now: shown, real: file.place().path, before: file.before}
			if file.before != nil {
				changed.mode = file.target.info.Mode()
			}
			d.files = append(d.files, changed)
		}
	}
	for _, f := range d.files {
		moved := func(to *plannedFile) bool { return to.moves() && to.from.shown == f.now }
		if i := slices.IndexFunc(p.files, moved); i >= 0 {
			f.now, f.real = p.files[i].shown, p.files[i].place().path
		}
	}
}

// Empty reports whether no plan was added.
func (d *Diff) Empty() bool { return len(d.files) == 0 }

// Text returns the diff in git's format, or "" if nothing has changed. Paths below top, the
// top of a git repository or "", are relative to it.
func (d *Diff) Text(top string) string {
	var b strings.Builder
	for _, file := range slices.SortedFunc(slices.Values(d.files),
		func(a, b *changedFile) int { return cmp.Compare(a.name, b.name) }) {
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
	before, after := *cmp.Or(f.before, new("")), *cmp.Or(now, new(""))
	if !utf8.ValidString(before) || !utf8.ValidString(after) {
		b.WriteString("Binary files differ\n")
		return
	}
	b.WriteString(unified(from, to, before, after, 3))
}

// read reads the file where it was written. It does not follow links that have since replaced it or a folder above it.
func (f *changedFile) read() (content *string, mode fs.FileMode, err error) {
	file, err := newPlan(Folder{Path: f.real}, "").file(f.real)
	if err != nil || file.target.path != f.real || file.before == nil {
		return nil, 0, err
	}
	return file.before, file.target.info.Mode(), nil
}

func gitMode(m fs.FileMode) string {
	if m&0o111 != 0 {
		return "100755"
	}
	return "100644"
}

func blobID(content *string) string {
	if content == nil {
		return strings.Repeat("0", 40)
	}
	return fmt.Sprintf("%x", sha1.Sum(fmt.Appendf(nil, "blob %d\x00%s", len(*content), *content)))
}

func shownPath(path, top string) string {
	if rel, ok := paths.Within(path, top); ok && top != "" {
		path = rel
	}
	return filepath.ToSlash(path)
}
