package show

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/codexmcp/codexmcp/internal/plain"
)

const (
	maxLines  = 12      // of an excerpt, with the one that says how many are left out
	headLines = 4       // of them, from the beginning of an output that has ended
	maxWidth  = 160     // characters of one of them
	maxRead   = 4 << 10 // bytes that are looked at for it
)

// Excerpt returns the last lines of an output, and the first ones too if its command has ended, as they may be shown: at
// most 12, each of at most 160 characters. A carriage return begins a line again, as on a terminal.
func Excerpt(text string, ended bool) string {
	head := 0
	if ended {
		head = headLines
	}
	lines := strings.SplitN(strings.TrimRight(text, "\r\n"), "\n", head+1)
	if len(lines) > head {
		rest, more := lines[head], true
		lines = lines[:head:head]
		for n := maxLines - head; more && n > 0; n-- {
			at := strings.LastIndexByte(rest, '\n')
			lines = slices.Insert(lines, head, rest[at+1:])
			rest, more = rest[:max(at, 0)], at >= 0
		}
		if more && ended {
			lines[head] = fmt.Sprintf("… %d lines left out …", 2+strings.Count(rest, "\n"))
		}
	}
	for i, line := range lines {
		line = strings.TrimRight(line, "\r")
		line = line[strings.LastIndexByte(line, '\r')+1:]
		line = plain.Text(plain.Bare(strings.ToValidUTF8(line[:min(len(line), maxRead)], "\uFFFD")))
		if utf8.RuneCountInString(line) > maxWidth {
			line = string([]rune(line)[:maxWidth-1]) + "…"
		}
		lines[i] = strings.TrimRight(line, " \t")
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n")
}
