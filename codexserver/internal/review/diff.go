package review

import (
	"strconv"
	"strings"
)

// File is one file of a diff.
type File struct {
	// Path is relative to the repository's top, with slashes. A deleted file has its
	// old path.
	Path string
	// Lines are the lines of the new file that the diff shows, or of the old file if
	// it was deleted.
	Lines []Range
	// Added and Removed are numbers of lines.
	Added, Removed int
	// Text is the file's part of the diff.
	Text string
}

// Range is a range of lines, counted from 1, including the last.
type Range struct{ Start, End int }

// ParseDiff reads a diff in git's form. It skips what it cannot read.
func ParseDiff(diff string) []File {
	p := parser{diff: diff}
	at := 0
	for line := range strings.Lines(diff) {
		p.line(at, strings.TrimSuffix(line, "\n"))
		at += len(line)
	}
	p.close(at)
	return p.files
}

// parser reads a diff line by line.
type parser struct {
	diff  string
	files []File
	file  *File // nil before the first one
	begin int   // where the file's text begins

	deleted  bool
	old, new int // lines of either side that are left in the hunk
}

func (p *parser) line(at int, line string) {
	if p.old > 0 || p.new > 0 {
		if p.inHunk(line) {
			return
		}
		p.old, p.new = 0, 0
	}
	if rest, ok := strings.CutPrefix(line, "diff --git "); ok {
		p.close(at)
		p.file, p.begin, p.deleted = &File{Path: pathOfBoth(rest)}, at, false
		return
	}
	if p.file != nil {
		p.header(line)
	}
}

// inHunk reads a line of a hunk. It returns false for any other line.
func (p *parser) inHunk(line string) bool {
	switch {
	case line == "" || line[0] == ' ':
		p.old--
		p.new--
	case line[0] == '-':
		p.old--
		p.file.Removed++
	case line[0] == '+':
		p.new--
		p.file.Added++
	default:
		return line[0] == '\\' // no line break at the end of the file
	}
	return true
}

func (p *parser) header(line string) {
	switch word, rest, _ := strings.Cut(line, " "); word {
	case "---", "+++":
		// The new name counts, but a deleted file has only the old one.
		if path, ok := pathOf(rest); ok && (word == "+++" || p.deleted) {
			p.file.Path = path
		}
	case "rename":
		if to, ok := strings.CutPrefix(rest, "to "); ok {
			p.file.Path = unquote(to)
		}
	case "deleted":
		p.deleted = true
	case "@@":
		p.hunk(rest)
	}
}

// hunk begins a hunk: "-1,2 +3,4 @@ ...".
func (p *parser) hunk(rest string) {
	words := strings.Fields(rest)
	if len(words) < 2 {
		return
	}
	before, old, ok := side(words[0], "-")
	after, new, ok2 := side(words[1], "+")
	if !ok || !ok2 {
		return
	}
	p.old, p.new = old, new
	start, lines := after, new
	if p.deleted {
		start, lines = before, old
	}
	r := Range{start, start + lines - 1}
	if lines == 0 { // lines were only removed: use the two around them
		r = Range{max(start, 1), start + 1}
	}
	p.file.Lines = append(p.file.Lines, r)
}

// maxLine bounds the numbers of a hunk.
const maxLine = 1 << 30

// side reads one side of a hunk: "-1,2", or "-1" for one line.
func side(word, sign string) (start, lines int, ok bool) {
	word, ok = strings.CutPrefix(word, sign)
	first, count, has := strings.Cut(word, ",")
	start, err := strconv.Atoi(first)
	lines = 1
	if err == nil && has {
		lines, err = strconv.Atoi(count)
	}
	return start, lines, ok && err == nil && start >= 0 && lines >= 0 && start <= maxLine && lines <= maxLine
}

// close ends a file's text.
func (p *parser) close(at int) {
	if p.file != nil && p.file.Path != "" {
		p.file.Text = p.diff[p.begin:at]
		p.files = append(p.files, *p.file)
	}
	p.file = nil
}

// pathOf reads the path of a line that names one side: "b/path". It returns false
// for /dev/null.
func pathOf(side string) (string, bool) {
	side = unquote(strings.TrimSuffix(side, "\t"))
	_, path, ok := strings.Cut(side, "/")
	return path, ok && side != "/dev/null"
}

// pathOfBoth reads the path of "a/path b/path". It returns "" if the names differ: then
// other lines name the new one.
func pathOfBoth(both string) string {
	half := len(both) / 2
	if len(both)%2 == 0 || both[half] != ' ' {
		return ""
	}
	old, _ := pathOf(both[:half])
	path, _ := pathOf(both[half+1:])
	if old != path {
		return ""
	}
	return path
}

// unquote reads a name that git quoted because of unusual bytes. It returns other names
// unchanged.
func unquote(name string) string {
	if len(name) < 2 || name[0] != '"' || name[len(name)-1] != '"' {
		return name
	}
	var b strings.Builder
	name = name[1 : len(name)-1]
	for i := 0; i < len(name); i++ {
		if name[i] != '\\' || i+1 == len(name) {
			b.WriteByte(name[i])
			continue
		}
		i++
		if octal := name[i:min(i+3, len(name))]; len(octal) == 3 {
			if n, err := strconv.ParseUint(octal, 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 2
				continue
			}
		}
		if at := strings.IndexByte(`abtnvfr`, name[i]); at >= 0 {
			b.WriteByte("\a\b\t\n\v\f\r"[at])
		} else {
			b.WriteByte(name[i])
		}
	}
	return strings.ToValidUTF8(b.String(), "\uFFFD")
}
