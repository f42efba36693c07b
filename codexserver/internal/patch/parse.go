package patch

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/internal/lazyregexp"
	"github.com/go-json-experiment/json/jsontext"
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
	environID  = "*** Environment ID: " // Codex with several environments; here is one
)

// Patch is a parsed patch: its operations on files, in order.
type Patch struct {
	files []fileOp
}

// IsEmpty reports whether the patch has no operations.
func (p *Patch) IsEmpty() bool { return len(p.files) == 0 }

const opAdd, opDelete, opUpdate = "add", "delete", "update"

type fileOp struct {
	kind    string
	path    string
	moveTo  string // of an update; "" does not move
	content string // of an add
	hunks   []hunk // of an update, at least one if it does not move
}

type hunk struct {
	after     []string // a line that comes somewhere before, if the patch has one
	lines     []string // each behind its kind
	endOfFile bool
}

// The kinds of lines, as a patch writes them.
const kept, removed, added = ' ', '-', '+'

// old returns the lines that the file has.
func (h hunk) old() (lines []string) {
	for _, l := range h.lines {
		if l[0] != added {
			lines = append(lines, l[1:])
		}
	}
	return lines
}

// Parse reads a patch. The error says in which line the text is none, counted from 1, and why.
func Parse(text string) (*Patch, error) {
	text = withoutJSON(text)
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSuffix(line, "\r")
	}
	r := reader{lines: lines, first: 1}
	// Some models put the shell's here-document or a fence of Markdown around a patch even if no shell reads it.
	if last := len(lines) - 1; last > 2 && (strings.HasPrefix(lines[0], "```") && lines[last] == "```" ||
		slices.Contains([]string{"<<EOF", "<<'EOF'", `<<"EOF"`}, lines[0]) && strings.HasSuffix(lines[last], "EOF")) {
		r = reader{lines: lines[1:last], first: 2}
	}
	if marker(r.peek()) != beginPatch {
		return nil, r.fail("the first line must be %q", beginPatch)
	}
	last := len(r.lines) - 1
	if marker(r.lines[last]) != endPatch {
		r.next = last
		return nil, r.fail("the last line must be %q", endPatch)
	}
	r.lines, r.next = r.lines[:last], 1
	if !r.done() && strings.HasPrefix(strings.TrimSpace(r.peek()), environID) {
		r.next++
	}
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

// withoutJSON returns the patch that a text has within JSON, such as the arguments of a call, and any other text as it is.
func withoutJSON(text string) string {
	v := jsontext.Value(strings.TrimSpace(text))
	if !v.IsValid() {
		return text
	}
	patches := []string{}
	for d := jsontext.NewDecoder(bytes.NewReader(v)); ; {
		token, err := d.ReadToken()
		switch {
		case err != nil && len(patches) == 1:
			return patches[0]
		case err != nil:
			return text
		case token.Kind() == '"' && isBare(token.String()):
			patches = append(patches, token.String())
		}
	}
}

// marker returns a first or last line without the stars that some models put behind it.
func marker(line string) string { return strings.TrimRight(strings.TrimSpace(line), "* ") }

// unquoted returns a path without the quotes that some models put around it.
func unquoted(path string) string {
	path = strings.TrimSpace(path)
	if last := len(path) - 1; last > 1 && path[0] == path[last] && strings.ContainsAny(path[:1], "\"'`") {
		return path[1:last]
	}
	return path
}

type reader struct {
	lines []string
	next  int
	first int // number of lines[0] in the text
}

func (r *reader) done() bool { return r.next >= len(r.lines) }

func (r *reader) peek() string { return r.lines[r.next] }

func (r *reader) fail(format string, args ...any) error {
	return fmt.Errorf("invalid patch: line %d: %s", r.first+r.next, fmt.Sprintf(format, args...))
}

func (r *reader) fileOp() (op fileOp, err error) {
	head := strings.TrimSpace(r.peek())
	for prefix, kind := range map[string]string{addFile: opAdd, deleteFile: opDelete, updateFile: opUpdate} {
		if path, ok := strings.CutPrefix(head, prefix); ok {
			op = fileOp{kind: kind, path: unquoted(path)}
		}
	}
	if op.kind == "" {
		return op, r.fail("%q is not one of %q, %q and %q", head, addFile+"PATH", deleteFile+"PATH", updateFile+"PATH")
	}
	r.next++
	switch op.kind {
	case opAdd:
		op.content = r.added()
	case opUpdate:
		err = r.update(&op)
	}
	return op, err
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

func (r *reader) update(op *fileOp) error {
	if !r.done() {
		if to, ok := strings.CutPrefix(r.peek(), moveTo); ok {
			op.moveTo = unquoted(to)
			r.next++
		}
	}
	// The first hunk of a unified diff follows the names of the file.
	if next := r.lines[r.next:]; len(next) > 2 && strings.HasPrefix(next[2], "@@") {
		path := strings.TrimPrefix(op.path, "./")
		if strings.HasPrefix(next[0], "--- ") && strings.HasPrefix(next[1], "+++ ") &&
			strings.HasSuffix(next[0], path) && strings.HasSuffix(next[1], path) {
			r.next += 2
		}
	}
	for ; !r.done() && !strings.HasPrefix(r.peek(), "***"); r.next++ {
		head, rest := strings.TrimSpace(r.peek()), r.lines[r.next+1:]
		if head == "" || op.moveTo != "" && head == "@@" && (len(rest) == 0 || strings.HasPrefix(rest[0], "***")) {
			continue // between hunks, or the only one of a move, which is empty
		}
		h, err := r.hunk(len(op.hunks) == 0)
		if err != nil {
			return err
		}
		op.hunks = append(op.hunks, h)
		r.next--
	}
	if len(op.hunks) == 0 && op.moveTo == "" {
		return r.fail("the update of %q has no lines", op.path)
	}
	return nil
}

// unifiedHeader is that of a unified diff, whose numbers and function do not count.
var unifiedHeader = lazyregexp.Regexp{Text: `^@@ (?:-\d+(,\d+)? \+\d+(,\d+)? )?@@`}

// noNewline is a remark in unified diffs. The file itself says whether its last line has an end.
const noNewline = `\ No newline at end of file`

// hunk reads one hunk. The first hunk of a file may have no @@ line.
func (r *reader) hunk(first bool) (h hunk, err error) {
	head := r.peek()
	after, named := strings.CutPrefix(head, "@@ ")
	switch {
	case strings.TrimSpace(head) == "@@", unifiedHeader.Get().MatchString(head):
		r.next++
	case named:
		h.after = []string{after}
		r.next++
	case !first:
		return h, r.fail("expected a line that begins with @@, found %q", head)
	}
	for ; !r.done(); r.next++ {
		line := r.peek()
		switch empty := len(h.lines) == 0; {
		case line == endOfFile && !empty:
			h.endOfFile = true
			r.next++
			return h, nil
		case line == noNewline && !empty:
		case line == "":
			h.lines = append(h.lines, string(kept))
		case line[0] == kept, line[0] == removed, line[0] == added:
			h.lines = append(h.lines, line)
		case empty:
			return h, r.fail("expected a line that begins with a blank, + or -, found %q", line)
		default: // the next hunk, or the next file
			return h, nil
		}
	}
	if len(h.lines) == 0 {
		return h, r.fail("the hunk has no lines")
	}
	return h, nil
}
