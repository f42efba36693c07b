package tool

import (
	"fmt"
	"strings"

	"github.com/codexmcp/codexmcp/internal/lazyregexp"
	"github.com/codexmcp/codexmcp/internal/text"
)

// replacement is a call of edit.
type replacement struct {
	Path  string `json:"path"`
	Old   string `json:"old"`
	New   string `json:"new"`
	All   bool   `json:"all"`
	stale bool   // the file has changed since the model read it
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
		return "", &fault{what: "old is empty", next: "give in old a line beside the place and repeat it in new; write makes a whole file."}
	case r.Old == r.New:
		return "", &fault{what: "old and new are the same, so nothing would change", next: "give the changed text in new."}
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
		return "", &fault{what: fmt.Sprintf("%s would be too large: more than %d bytes", r.Path, maxWritten), next: "make it with a program, through shell."}
	}
	return strings.ReplaceAll(content, r.Old, r.New), nil
}

// maxWritten is the size of the largest file that edit makes, in bytes.
const maxWritten = 64 << 20

func withCRLF(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\n", "\r\n")
}

// maxPlaces is how many places of a file an answer shows.
const maxPlaces = 10

// several reports the places of a text that is there more than once.
func (r replacement) several(content string, n int) error {
	lines := splitLines(content)
	var quotes strings.Builder
	at := 0
	for range min(n, maxPlaces) {
		i := strings.Index(content[at:], r.Old)
		number := lineAt(content, at+i)
		fmt.Fprintf(&quotes, "line %d: %s\n", number, quoted(lines, number))
		at += i + len(r.Old)
	}
	if n > maxPlaces {
		fmt.Fprintf(&quotes, "and %d more\n", n-maxPlaces)
	}
	return &fault{
		what:   fmt.Sprintf("old is in %s %d times, so it is not clear which to replace", r.Path, n),
		quotes: quotes.String(),
		next:   "add lines before or after to old, and to new, until it is unique; or set all to true to replace every one.",
	}
}

// lineAt returns the number of the line at an offset.
func lineAt(content string, offset int) int { return strings.Count(content[:offset], "\n") + 1 }

func quoted(lines []string, number int) string {
	if number > len(lines) {
		return ""
	}
	return text.Brief(lines[number-1], 200)
}

// absent says why a text is not found.
func (r replacement) absent(content string) error {
	lines := splitLines(content)
	what := "old is not in " + r.Path
	if r.stale {
		what += ", which has changed since you read it"
	}
	at, n := sameBut(lines, r.Old)
	if n == 0 { // many models write line breaks and tabs as two characters
		at, n = sameBut(lines, strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\"`, `"`).Replace(r.Old))
	}
	if n > 0 {
		return &fault{
			what:   fmt.Sprintf("%s: only blanks, tabs, line ends or line numbers differ from line %d on. The file has", what, at),
			quotes: strings.Join(lines[at-1:at-1+n], "\n"),
			next:   "copy these lines exactly, with their tabs and blanks.",
		}
	}
	if trimmed := strings.TrimSpace(r.New); len(trimmed) > 8 && strings.Contains(content, r.New) {
		return &fault{what: fmt.Sprintf("%s, but new is there already, at line %d: the change seems to be made", what, lineAt(content, strings.Index(content, r.New))), next: "go on, or read the file."}
	}
	f := &fault{what: what, next: fmt.Sprintf("read %s and copy the text exactly.", r.Path)}
	first, _, _ := strings.Cut(strings.TrimSpace(r.Old), "\n")
	if near := nearest(first, lines); near != nil {
		f.what += ". The nearest lines are"
		var quotes strings.Builder
		for _, at := range near {
			fmt.Fprintf(&quotes, "line %d: %s\n", at+1, quoted(lines, at+1))
		}
		f.quotes = quotes.String()
	}
	return f
}

// slips matches what models copy wrongly at the begin of a line: its number as the tool read shows it.
var slips = lazyregexp.Regexp{Text: `^ *[0-9]+(?:\t|: |\| )`}

// maxSameBut bounds the lines that sameBut compares.
const maxSameBut = 5_000_000

// sameBut returns the number of the first line from which all of want follow, numbers, blanks, tabs and
// empty lines around them aside, and how many these are, or 0.
func sameBut(lines []string, want string) (at, n int) {
	plain := func(line string) string { return strings.Join(strings.Fields(line), " ") }
	var wanted []string
	for _, line := range splitLines(strings.TrimSpace(want)) {
		wanted = append(wanted, plain(slips.Get().ReplaceAllString(line, "")))
	}
	if len(wanted) == 0 {
		return 0, 0
	}
	all := make([]string, len(lines))
	for i, line := range lines {
		all[i] = plain(line)
	}
	left := maxSameBut
	for i := range max(0, len(all)-len(wanted)+1) {
		k := 0
		for k < len(wanted) && all[i+k] == wanted[k] {
			k++
		}
		if k == len(wanted) {
			return i + 1, k
		}
		if left -= k + 1; left < 0 {
			break
		}
	}
	return 0, 0
}
