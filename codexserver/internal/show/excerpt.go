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
	lines := strings.Split(strings.TrimRight(text, "\r\n"), "\n")
	if more := len(lines) - maxLines; more > 0 && ended {
		lines = slices.Replace(lines, headLines, headLines+more+1, fmt.Sprintf("… %d lines left out …", more+1))
	} else if more > 0 {
		lines = lines[more:]
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
