package review

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/internal/lazyregexp"
)

// File is one file of a diff.
type File struct {
	// Path is relative to the repository's top, with slashes. A deleted file has its old path. It is "" if
	// the diff shows no line of the file.
	Path string
	// Lines are the lines of the new file that the diff shows, or of the old file if
	// it was deleted.
	Lines []Range
	// Text is the file's part of the diff.
	Text string
}

// Range is a range of lines, counted from 1, including the last.
type Range struct{ Start, End int }

// ParseDiff reads a diff in git's form.
func ParseDiff(diff string) []File {
	var files []File
	for part := range git.Sections(diff) {
		files = append(files, parseFile(part))
	}
	return files
}

// hunkHead is the first line of a hunk: where it begins and how many lines it has, before and after. One line is not
// counted.
var hunkHead = lazyregexp.Regexp{Text: `^@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@`}

// parseFile reads the part of a file.
func parseFile(part string) File {
	f := File{Text: part}
	deleted := false
	for line := range strings.Lines(part) {
		name := strings.TrimRight(line, "\t\n")
		switch {
		case strings.HasPrefix(line, "@@ "):
			if m := hunkHead.Get().FindStringSubmatch(line); m != nil && deleted {
				f.show(m[1], m[2])
			} else if m != nil {
				f.show(m[3], m[4])
			}
		case len(f.Lines) > 0: // a line of a hunk
		case line == "+++ /dev/null\n":
			deleted = true
		case strings.HasPrefix(line, "--- "), strings.HasPrefix(line, "+++ "):
			_, f.Path, _ = strings.Cut(unquote(name[len("+++ "):]), "/")
		}
	}
	return f
}

// show adds the lines of a hunk.
func (f *File) show(first, count string) {
	start, _ := strconv.Atoi(first) // these are digits
	n, _ := strconv.Atoi(cmp.Or(count, "1"))
	r := Range{start, start + n - 1}
	if n == 0 { // lines were only removed: use the two around them
		r = Range{max(start, 1), start + 1}
	}
	f.Lines = append(f.Lines, r)
}

// unquote reads a name that git quoted because of unusual bytes, as Go does. It returns other names
// unchanged.
func unquote(name string) string {
	if plain, err := strconv.Unquote(name); err == nil && name[0] == '"' {
		return strings.ToValidUTF8(plain, "\uFFFD")
	}
	return name
}
