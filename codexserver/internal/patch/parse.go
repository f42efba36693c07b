package patch

import (
	"fmt"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/internal/lazyregexp"
)

// The lines that structure a patch.
const (
	beginPatch = "*** Begin Patch"
	endPatch   = "*** End Patch"
	addFile    = "*** Add File: "
	deleteFile = "*** Delete File: "
	updateFile = "*** Update File: "
	moveTo     = "*** Move to: "
	endOfFile  = "*** End of File"
)

// Patch is a parsed patch: its operations on files, in order.
type Patch struct {
	files []fileOp
}

// IsEmpty reports whether the patch has no operations.
func (p *Patch) IsEmpty() bool { return len(p.files) == 0 }

type opKind int

const (
	opAdd opKind = iota
	opDelete
	opUpdate
	opChange
)

type fileOp struct {
	kind    opKind
	path    string
	moveTo  string // of an update; "" does not move
	content string // of an add
	hunks   []hunk // of an update, at least one if it does not move
	change  func(before *string) (after string, err error)
}

type hunk struct {
	after     string // a line that comes somewhere before
	hasAfter  bool
	lines     []hunkLine
	endOfFile bool
}

// hunkLine is a line of a hunk.
type hunkLine struct {
	kind byte
	text string
}

// The kinds of lines, as a patch writes them.
const kept, removed, added = ' ', '-', '+'

// old returns the lines that the file has.
func (h hunk) old() (lines []string) {
	for _, l := range h.lines {
		if l.kind != added {
			lines = append(lines, l.text)
		}
	}
	return lines
}

// ParseError reports why a text is not a patch.
type ParseError struct {
	// Line is the number of the wrong line, from 1.
	Line int
	// Reason is what is wrong there.
	Reason string
}

// Error implements error.
func (e *ParseError) Error() string {
	return fmt.Sprintf("invalid patch: line %d: %s", e.Line, e.Reason)
}

// Parse reads a patch. The error is a [*ParseError].
func Parse(text string) (*Patch, error) {
	text = strings.TrimSpace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSuffix(line, "\r")
	}
	first := 1
	if inner, ok := unwrapped(lines); ok {
		lines, first = inner, 2
	}
	if marker(lines[0]) != beginPatch {
		return nil, &ParseError{Line: first, Reason: fmt.Sprintf("the first line must be %q", beginPatch)}
	}
	last := len(lines) - 1
	if marker(lines[last]) != endPatch {
		return nil, &ParseError{Line: first + last, Reason: fmt.Sprintf("the last line must be %q", endPatch)}
	}
	r := reader{lines: lines[1:last], first: first + 1}
	p := &Patch{}
	for !r.done() {
		if strings.TrimSpace(r.peek()) == "" { // between parts
			r.next++
			continue
		}
		op, err := r.fileOp()
		if err != nil {
			return nil, err
		}
		p.files = append(p.files, op)
	}
	return p, nil
}

// marker returns a first or last line without the stars that some models put behind it.
func marker(line string) string { return strings.TrimRight(strings.TrimSpace(line), "* ") }

// named returns a path without the quotes that some models put around it.
func named(path string) string {
	if last := len(path) - 1; last > 1 && path[0] == path[last] && strings.ContainsAny(path[:1], "\"'`") {
		return path[1:last]
	}
	return path
}

// unwrapped removes the shell's here-document, or the fence of Markdown, that some models put around a patch
// even if no shell reads it.
func unwrapped(lines []string) ([]string, bool) {
	if len(lines) < 4 {
		return nil, false
	}
	begin, end := lines[0], lines[len(lines)-1]
	here := slices.Contains([]string{"<<EOF", "<<'EOF'", `<<"EOF"`}, begin) && strings.HasSuffix(end, "EOF")
	return lines[1 : len(lines)-1], here || strings.HasPrefix(begin, "```") && end == "```"
}

// reader reads the lines between begin and end.
type reader struct {
	lines []string
	next  int
	first int // number of lines[0] in the text
}

func (r *reader) done() bool { return r.next == len(r.lines) }

func (r *reader) peek() string { return r.lines[r.next] }

func (r *reader) fail(format string, args ...any) error {
	return &ParseError{Line: r.first + r.next, Reason: fmt.Sprintf(format, args...)}
}

func (r *reader) fileOp() (fileOp, error) {
	head := strings.TrimSpace(r.peek())
	if path, ok := strings.CutPrefix(head, addFile); ok {
		r.next++
		return fileOp{kind: opAdd, path: named(path), content: r.added()}, nil
	}
	if path, ok := strings.CutPrefix(head, deleteFile); ok {
		r.next++
		return fileOp{kind: opDelete, path: named(path)}, nil
	}
	if path, ok := strings.CutPrefix(head, updateFile); ok {
		return r.update(named(path))
	}
	return fileOp{}, r.fail("%q is not one of %q, %q and %q", head, addFile+"PATH", deleteFile+"PATH", updateFile+"PATH")
}

// added returns the lines of a new file. Some models leave out the + of an empty one.
func (r *reader) added() string {
	var b strings.Builder
	for end := r.next; end < len(r.lines); end++ {
		if strings.HasPrefix(r.lines[end], "+") {
			for ; r.next <= end; r.next++ {
				b.WriteString(strings.TrimPrefix(r.peek(), "+"))
				b.WriteByte('\n')
			}
		} else if r.lines[end] != "" {
			break
		}
	}
	return b.String()
}

func (r *reader) update(path string) (fileOp, error) {
	op := fileOp{kind: opUpdate, path: path}
	r.next++
	if !r.done() {
		if to, ok := strings.CutPrefix(r.peek(), moveTo); ok {
			op.moveTo = named(strings.TrimSpace(to))
			r.next++
		}
	}
	r.skipNames(path)
	for !r.done() && !strings.HasPrefix(r.peek(), "***") {
		if strings.TrimSpace(r.peek()) == "" || op.moveTo != "" && r.endsEmpty() { // between hunks, or the only one of a move
			r.next++
			continue
		}
		h, err := r.hunk(len(op.hunks) == 0)
		if err != nil {
			return fileOp{}, err
		}
		op.hunks = append(op.hunks, h)
	}
	if len(op.hunks) == 0 && op.moveTo == "" {
		return fileOp{}, r.fail("the update of %q has no lines", path)
	}
	return op, nil
}

// endsEmpty reports whether the next line begins a hunk that has no lines and is the last of its file.
func (r *reader) endsEmpty() bool {
	rest := r.lines[r.next+1:]
	return strings.TrimSpace(r.peek()) == "@@" && (len(rest) == 0 || strings.HasPrefix(rest[0], "***"))
}

// skipNames skips the two lines with the file's names in front of the first hunk of a unified diff.
func (r *reader) skipNames(path string) {
	if r.next+2 >= len(r.lines) {
		return
	}
	from, one := strings.CutPrefix(r.lines[r.next], "--- ")
	to, two := strings.CutPrefix(r.lines[r.next+1], "+++ ")
	path = strings.TrimPrefix(path, "./")
	if one && two && strings.HasSuffix(from, path) && strings.HasSuffix(to, path) && strings.HasPrefix(r.lines[r.next+2], "@@") {
		r.next += 2
	}
}

// unifiedHeader is that of a unified diff, whose numbers and function do not count.
var unifiedHeader = lazyregexp.Regexp{Text: `^@@ (?:-\d+(,\d+)? \+\d+(,\d+)? )?@@`}

// noNewline is a remark in unified diffs. The file itself says whether its last line has an end.
const noNewline = `\ No newline at end of file`

// hunk reads one hunk. The first hunk of a file may have no @@ line.
func (r *reader) hunk(first bool) (hunk, error) {
	var h hunk
	head := r.peek()
	after, named := strings.CutPrefix(head, "@@ ")
	switch {
	case strings.TrimSpace(head) == "@@", unifiedHeader.Get().MatchString(head):
		r.next++
	case named:
		h.after, h.hasAfter = after, true
		r.next++
	case !first:
		return hunk{}, r.fail("expected a line that begins with @@, found %q", head)
	}
	empty := true
	for ; !r.done(); r.next++ {
		line := r.peek()
		if line == endOfFile {
			if empty {
				break
			}
			h.endOfFile = true
			r.next++
			return h, nil
		}
		switch {
		case line == noNewline && !empty:
			continue
		case line == "":
			h.lines = append(h.lines, hunkLine{kept, ""})
		case line[0] == kept, line[0] == removed, line[0] == added:
			h.lines = append(h.lines, hunkLine{line[0], line[1:]})
		case empty:
			return hunk{}, r.fail("expected a line that begins with a blank, + or -, found %q", line)
		default: // the next hunk, or the next file
			return h, nil
		}
		empty = false
	}
	if empty {
		return hunk{}, r.fail("the hunk has no lines")
	}
	return h, nil
}
