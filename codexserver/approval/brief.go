package approval

import (
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/plain"
	"github.com/codexmcp/codexmcp/internal/shellword"
)

// Brief returns the brief form of a question of which this package does not know more: first, which says how far it
// goes, as much of the text of another party as there is room for, and what else has to be known.
func Brief(first, text string, also ...string) *elicit.Brief {
	first, whole := plain.Part(first, plain.MaxColumns)
	shown, _, hidden := plain.Escape(text, "")
	b := &elicit.Brief{}
	b.Lines, b.Partial = briefBody(first, whole, briefAlso("", hidden, also), func(lines int) ([]string, bool) {
		if shown == "" {
			return nil, true
		}
		return briefCode(shown, lines)
	})
	return b
}

// briefBody returns the lines of a brief question: the first, those that show writes into at
// most a number of lines, and what else has to be known. If they cannot show all, or the first
// does not, they leave a line free.
func briefBody(
	first string, whole bool, also []string, show func(lines int) ([]string, bool),
) (lines []string, partial bool) {
	rest, _ := plain.Unmarked(strings.Join(also, " "))
	var more []string
	if rest != "" {
		more = plain.Fold(rest)
	}
	for room := 1; whole && room < plain.MaxLines-len(more); room++ {
		if shown, whole := show(room); whole {
			return slices.Concat([]string{first}, shown, more), false
		}
	}
	if rest == "" {
		shown, _ := show(plain.MaxLines - 2)
		return slices.Concat([]string{first}, shown), true
	}
	shown, _ := show(1)
	return slices.Concat([]string{first}, shown, []string{plain.Within(rest, plain.MaxColumns)}), true
}

// briefFirst returns the first line of a brief question: how far it goes, and where.
func briefFirst(how, folder, home string) (line string, whole, hidden bool) {
	path, hidden := briefPath(folder, home)
	path, whole = plain.Part(path, plain.MaxColumns-plain.Columns(how+":"))
	return how + path + ":", whole, hidden
}

// briefAlso returns what the first line leaves out: whether something is hidden, who asks, and notes.
func briefAlso(who string, hidden bool, notes []string) (also []string) {
	if hidden {
		also = append(also, plain.Hidden)
	}
	if who != "" {
		also = append(also, "Asked by "+plain.Line(who)+".")
	}
	for _, note := range notes {
		also = append(also, plain.Line(note))
	}
	return also
}

// briefPath returns a folder or file, with ~ for the home folder. It is in a code span unless it
// has only characters that cannot be taken for our own words.
func briefPath(path, home string) (shown string, hidden bool) {
	rest, tilde := path, ""
	if after, ok := strings.CutPrefix(path, home); ok && home != "" && (after == "" || os.IsPathSeparator(after[0])) {
		rest, tilde = after, "~"
	}
	if rest == "" && tilde != "" || shellword.Show(runtime.GOOS, rest) == rest {
		return tilde + rest, false
	}
	shown, hidden = plain.Path(path)
	shown, _ = plain.Unmarked(shown)
	return plain.Span(shown), hidden
}

// briefReason returns the line that quotes the model's reason.
func briefReason(reason string) string {
	const intro = "Reason given by the model: "
	shown, _, _ := plain.Escape(reason, `\`)
	shown, _ = plain.Unmarked(shown)
	room := plain.MaxColumns - len(intro) - plain.Frame(shown)
	if reason == "" || room < plain.MaxColumns/3 {
		return ""
	}
	return intro + plain.Span(plain.Within(shown, room))
}

// briefCode returns text of another party in code spans on at most that many lines: whole, or
// its start, the number of characters left out, and its end.
func briefCode(text string, lines int) (shown []string, whole bool) {
	text, whole = plain.Unmarked(text)
	if all := plain.Wrap(plain.Span(text)); len(all) <= lines {
		return all, whole
	}
	head, tail := plain.MaxColumns, plain.MaxColumns
	if lines < 2 {
		head = plain.MaxColumns * 2 / 5
		tail -= head + 1
	}
	start := plain.Start(text, head-plain.Frame(text))
	rest := plain.Omit(text[len(start):], plain.Fence(text), tail)
	if lines < 2 {
		return []string{plain.Span(start) + " " + rest}, false
	}
	return []string{plain.Span(start), rest}, false
}
