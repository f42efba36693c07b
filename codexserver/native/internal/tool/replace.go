package tool

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/codexmcp/codexmcp/internal/text"
)

// replacement is a call of edit.
type replacement struct {
	Path string `json:"path"`
	Old  string `json:"old"`
	New  string `json:"new"`
	All  bool   `json:"all"`
}

// apply returns the new content. The error is a [*fault].
func (r replacement) apply(content string) (string, error) {
	// In a file whose lines all end with CR LF, a line of the model that ends without CR does not stay so.
	ends := strings.Count(content, "\r\n")
	if ends > 0 && (ends == strings.Count(content, "\n") || !strings.Contains(content, r.Old)) {
		r.Old, r.New = withCRLF(r.Old), withCRLF(r.New)
	}
	switch {
	case r.Old == "":
		return "", &fault{what: "old is empty",
			next: "give in old a line beside the place and repeat it in new; write makes a whole file."}
	case r.Old == r.New:
		return "", &fault{what: "old and new are the same, so nothing would change",
			next: "give the changed text in new."}
	case strings.ContainsRune(r.New, 0):
		return "", &fault{what: "new has a NUL byte, so it is not text", next: "leave it out."}
	}
	switch n := strings.Count(content, r.Old); {
	case n == 0:
		return "", r.absent(content)
	case n > 1 && !r.All:
		return "", r.several(content, n)
	}
	if n := int64(strings.Count(content, r.Old)); int64(len(content))+n*int64(len(r.New)-len(r.Old)) > maxWritten {
		return "", &fault{what: fmt.Sprintf("%s would be too large: more than %d bytes", r.Path, maxWritten),
			next: "make it with a program, through shell."}
	}
	return strings.ReplaceAll(content, r.Old, r.New), nil
}

// maxWritten is the size of the largest file that edit makes, in bytes.
const maxWritten = 64 << 20

func withCRLF(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\n", "\r\n")
}

// several reports the places of a text that is there more than once.
func (r replacement) several(content string, n int) error {
	var lines []string
	for at := 0; len(lines) < min(n, 10); at += len(r.Old) {
		at += strings.Index(content[at:], r.Old)
		lines = append(lines, strconv.Itoa(lineAt(content, at)))
	}
	return &fault{
		what:   fmt.Sprintf("old is in %s %d times, so it is not clear which to replace", r.Path, n),
		quotes: "It begins in the lines " + strings.Join(lines, ", ") + map[bool]string{true: ", …"}[n > len(lines)],
		next: "add lines before or after to old, and to new, until it is unique; or set all to true to replace " +
			"every one.",
	}
}

// lineAt returns the number of the line at an offset.
func lineAt(content string, offset int) int { return strings.Count(content[:offset], "\n") + 1 }

// absent says where a text would be that is not found: from the line on that differs in blanks alone, or at the nearest line.
func (r replacement) absent(content string) error {
	f := &fault{what: "old is not in " + r.Path, next: fmt.Sprintf("read %s and copy the text exactly.", r.Path)}
	lines := splitLines(content)
	if at, n := sameBut(lines, splitLines(strings.TrimSpace(r.Old))); n > 0 {
		f.what += fmt.Sprintf(": only blanks, tabs or line ends differ from line %d on. The file has", at)
		f.quotes, f.next = strings.Join(lines[at-1:at-1+n], "\n"),
			"copy these lines exactly, with their tabs and blanks."
		return f
	}
	first, _, _ := strings.Cut(strings.TrimSpace(r.Old), "\n")
	if at := nearest(first, lines); at >= 0 {
		f.what += ". The nearest line is"
		f.quotes = fmt.Sprintf("line %d: %s", at+1, text.Brief(lines[at], 200))
	}
	return f
}

// sameBut returns the number of the first line from which all of want follow, blanks and tabs aside, and how many
// these are, or 0.
func sameBut(lines, want []string) (at, n int) {
	joined := func(lines []string) string {
		var b strings.Builder
		for _, line := range lines {
			b.WriteString("\n" + strings.Join(strings.Fields(line), " "))
		}
		return b.String() + "\n"
	}
	all := joined(lines)
	i := strings.Index(all, joined(want))
	if i < 0 || len(want) == 0 {
		return 0, 0
	}
	return lineAt(all, i), len(want)
}
