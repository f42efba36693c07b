package terminal

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/lazyregexp"
)

// sequences matches the control sequences and strings of ECMA-48, with which programs
// colour their output, set titles and make links.
var sequences = lazyregexp.Regexp{Text: "\x1b\\[[0-?]*[ -/]*[@-~]|\x1b[\\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\\\)|\x1b[ -/][0-~]"}

// showOutput returns a line of a command's output that is safe to show.
func showOutput(line string) string {
	return elicit.ShowText(sequences.Get().ReplaceAllString(line, ""))
}

// showProse returns a text of the model that is safe to show. It drops the selector for
// coloured emoji rather than escaping it.
func showProse(text string) string {
	return elicit.ShowText(strings.ReplaceAll(text, "\ufe0f", ""))
}

// Prose returns a text of a model or a command that is safe to show.
func Prose(text string) string { return showProse(sequences.Get().ReplaceAllString(text, "")) }

// Row is like Prose, but returns one line.
func Row(text string) string { return elicit.OneLine(sequences.Get().ReplaceAllString(text, ""), 0) }

// showWord returns a path or a name as one word on one line.
func showWord(word string) string { return elicit.ShowCommand([]string{word}) }

// tabStop is the distance of tab stops.
const tabStop = 8

// expand replaces tabs by spaces, in a part of a line from a column on. After a tab at the right
// margin a terminal would write over the character there.
func expand(line string, col int) string {
	if !strings.Contains(line, "\t") {
		return line
	}
	var b strings.Builder
	for _, r := range line {
		if r == '\t' {
			n := tabStop - col%tabStop
			b.WriteString(strings.Repeat(" ", n))
			col += n
			continue
		}
		b.WriteRune(r)
		col++
	}
	return b.String()
}

// cut shortens a line to about limit characters and adds how many it left out.
func cut(line string, limit int) string { return cutMore(line, limit, 0) }

// cutMore is cut for a line of which more characters are left out already.
func cutMore(line string, limit, more int) string {
	runes := []rune(line)
	if len(runes)+more <= limit+40 { // the remark would be as long as the rest
		return line
	}
	limit = min(limit, len(runes))
	return string(runes[:limit]) + fmt.Sprintf("… (%s more characters)", thousands(int64(len(runes)-limit+more)))
}

// lines splits text at its line breaks. A line break at the end does not begin a line.
func lines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// thousands formats n with a comma between groups of three digits.
func thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// count formats a number of things.
func count(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return thousands(int64(n)) + " " + thing
}

// took formats a duration.
func took(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
}
