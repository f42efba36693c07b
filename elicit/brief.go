package elicit

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/codexmcp/codexmcp/internal/hosts"
	"github.com/codexmcp/codexmcp/internal/shellword"
)

// What a host that cuts messages shows in a terminal of 80 columns: it cuts a line after 74 columns, and of
// more than four lines it shows three.
const (
	briefLines   = 4
	briefColumns = 72
)

// A Brief is what a question says in place of its Message to a client that is known to cut
// messages. What a person must see comes first.
type Brief struct {
	// Lines say what is asked: at most four, or three if Partial is set, of at most 72 columns.
	Lines []string
	// Confined takes the place of the first line while Question.Always offers a rule, which lets
	// commands run in the sandbox. If it is empty, no rule is offered.
	Confined string
	// Partial means that Lines do not show all that is asked. Then neither an approval for the
	// session nor a lasting rule is offered.
	Partial bool
	// Reason is a line that is shown if there is room.
	Reason string
	// Home is the person's home folder, which the words of a rule have as ~. Default: none.
	Home string
}

func (c Client) isBrief() bool { return hosts.CutsMessages(c.Name) }

// Cut reports whether the message does not show all of q, or a client that is known to cut messages
// would not.
func (q *Question) Cut() bool { return q.Partial || q.asBrief().Partial }

func (q *Question) asBrief() *Brief {
	if q.Brief != nil {
		return q.Brief
	}
	return briefOf(q.Message)
}

// brief returns q as it is asked in a host that cuts messages. The form shows decisions if
// shows is true.
func (q *Question) brief(o *Options, shows bool) *Question {
	b := q.asBrief()
	asked := *q
	if !shows || b.Partial || b.Confined == "" {
		asked.Always = nil
	}
	lines := slices.Clone(b.Lines)
	if b.Partial {
		asked.Once = true
		where := "Not shown whole."
		if o.resolved().Elsewhere != "" {
			where = "Not shown whole; it is " + o.Elsewhere + "."
		}
		lines = append(lines, within(showLine(where), briefColumns))
	}
	if asked.Always != nil {
		words := asked.Always.Words
		if b.Home != "" {
			words = strings.NewReplacer(" in "+b.Home+"/", " in ~/", " below "+b.Home+"/", " below ~/").Replace(words)
		}
		rule := fold("Always: " + OneLine(words, 0))
		if len(rule) > briefLines-len(lines) {
			asked.Always = nil
		} else {
			lines = append(lines, rule...)
			lines[0] = b.Confined
		}
	}
	if b.Reason != "" && len(lines) < briefLines {
		lines = append(lines, b.Reason)
	}
	asked.Message = strings.Join(lines, "\n")
	return &asked
}

// briefBody returns the lines of a brief question: the first, those that show writes into at
// most a number of lines, and what else has to be known. If they cannot show all, or the first
// does not, they leave a line free.
func briefBody(first string, whole bool, also []string, show func(lines int) ([]string, bool)) (lines []string, partial bool) {
	rest, _ := unmarked(strings.Join(also, " "))
	var more []string
	if rest != "" {
		more = fold(rest)
	}
	for room := 1; whole && room < briefLines-len(more); room++ {
		if shown, whole := show(room); whole {
			return slices.Concat([]string{first}, shown, more), false
		}
	}
	if rest == "" {
		shown, _ := show(briefLines - 2)
		return slices.Concat([]string{first}, shown), true
	}
	shown, _ := show(1)
	return slices.Concat([]string{first}, shown, []string{within(rest, briefColumns)}), true
}

// briefFirst returns the first line of a brief question: how far it goes, and where.
func briefFirst(how, folder, home string) (line string, whole, hidden bool) {
	path, hidden := briefPath(folder, home)
	path, whole = briefPart(path, briefColumns-columns(how+":"))
	return how + path + ":", whole, hidden
}

// briefAlso returns what the first line leaves out: who asks, and whether something is hidden.
func briefAlso(who string, hidden bool) (also []string) {
	if hidden {
		also = append(also, hiddenMarker)
	}
	if who != "" {
		also = append(also, "Asked by "+showLine(who)+".")
	}
	return also
}

// briefPath returns a folder or file, with ~ for the home folder. It is in a code span unless it
// has only characters that cannot be taken for our own words.
func briefPath(path, home string) (shown string, hidden bool) {
	rest, tilde := path, ""
	if after, ok := strings.CutPrefix(path, home); ok && home != "" && (after == "" || after[0] == '/') {
		rest, tilde = after, "~"
	}
	if rest == "" && tilde != "" || shellword.Quote(rest) == rest {
		return tilde + rest, false
	}
	shown, hidden = showPath(path)
	shown, _ = unmarked(shown)
	return span(shown), hidden
}

// briefReason returns the line that quotes the model's reason.
func briefReason(reason string) string {
	const intro = "Reason given by the model: "
	shown, _, _ := escape(reason, `\"`)
	shown, _ = unmarked(shown)
	room := briefColumns - len(intro) - len(`""`) - frame(shown)
	if reason == "" || room < briefColumns/3 {
		return ""
	}
	return intro + span(`"`+within(shown, room)+`"`)
}

// briefOf returns the brief form of a message of which nothing else is known.
func briefOf(message string) *Brief {
	var lines []string
	var rest strings.Builder // after two lines
	for line := range strings.SplitSeq(message, "\n") {
		for i, part := range fold(strings.ReplaceAll(line, "\t", "    ")) {
			if i == 0 && rest.Len() > 0 {
				rest.WriteByte(' ')
			}
			if len(lines) >= 2 {
				rest.WriteString(part)
			}
			lines = append(lines, part)
		}
	}
	if len(lines) <= briefLines {
		return &Brief{Lines: lines, Confined: lines[0]}
	}
	if last := strings.Join(lines[briefLines-1:], " "); columns(last) <= briefColumns {
		return &Brief{Lines: append(lines[:briefLines-1:briefLines-1], last), Confined: lines[0]}
	}
	return &Brief{Lines: append(lines[:2:2], omit(rest.String(), "", briefColumns)), Partial: true}
}

// briefCode returns text of another party in code spans on at most that many lines: whole, or
// its start, the number of characters left out, and its end.
func briefCode(text string, lines int) (shown []string, whole bool) {
	text, whole = unmarked(text)
	if all := wrap(span(text)); len(all) <= lines {
		return all, whole
	}
	head, tail := briefColumns, briefColumns
	if lines < 2 {
		head = briefColumns * 2 / 5
		tail -= head + 1
	}
	start := start(text, head-frame(text))
	rest := omit(text[len(start):], fence(text), tail)
	if lines < 2 {
		return []string{span(start) + " " + rest}, false
	}
	return []string{span(start), rest}, false
}

// briefPart returns text in at most that many columns, with the number of characters left
// out of its middle.
func briefPart(text string, most int) (shown string, whole bool) {
	if columns(text) <= most {
		return text, true
	}
	start := start(text, most/3)
	return start + omit(text[len(start):], "", most-columns(start)), false
}

// omit returns the end of text in at most that many columns, after the number of characters
// before it. Both stand apart from the program's words in spans if fence is not empty.
func omit(text, fence string, most int) string {
	n := utf8.RuneCountInString(text)
	marker := func(n int) string {
		s := "⟨" + thousands(n) + " more characters⟩"
		if fence != "" {
			s += " "
		}
		return s
	}
	room := most - columns(marker(n))
	if fence != "" {
		room -= frame(text)
	}
	end := end(text, room)
	s := marker(n - utf8.RuneCountInString(end))
	if fence == "" {
		return s + end
	}
	return s + span(end)
}

// unmarked escapes what would pass for our own marks around a text: the brackets of the number
// of characters left out, and runs of backticks so long that a fence would fill the line. It
// reports whether the text without the latter is shown as it is.
func unmarked(text string) (shown string, whole bool) {
	shown, whole = strings.ReplaceAll(strings.ReplaceAll(text, "⟨", `\u{27e8}`), "⟩", `\u{27e9}`), true
	if strings.Contains(shown, "```") {
		shown, whole = strings.ReplaceAll(shown, "`", `\u{60}`), false
	}
	return shown, whole
}

// span returns s as a code span, apart from a backtick at its ends.
func span(s string) string {
	if strings.HasPrefix(s, "`") || strings.HasSuffix(s, "`") || strings.TrimSpace(s) == "" {
		s = " " + s + " "
	}
	return codeSpan(s)
}

func fence(s string) string {
	span := codeSpan(s)
	return span[:(len(span)-len(s))/2]
}

// frame is how many columns a span of a part of s takes at most besides that part.
func frame(s string) int { return 2*len(fence(s)) + 2 }

// columns returns how many columns of a terminal s takes at most. The letters of Europe, with
// everything else before Hangul, take one; any other character may take two.
func columns(s string) (n int) {
	for _, r := range s {
		n += column(r)
	}
	return n
}

func column(r rune) int {
	switch {
	case r < 0x1100, strings.ContainsRune("…⟨⟩“”‘’–—", r):
		return 1
	}
	return 2
}

// start returns the beginning of s that fits. A mark stays with its letter.
func start(s string, most int) string {
	n, last := 0, 0
	for i, r := range s {
		if !unicode.Is(unicode.M, r) {
			last = i
		}
		if n += column(r); n > most {
			return s[:last]
		}
	}
	return s
}

// end returns the end of s that fits.
func end(s string, most int) string {
	n, last := 0, len(s)
	for i := len(s); i > 0; {
		r, size := utf8.DecodeLastRuneInString(s[:i])
		i -= size
		if n += column(r); n > most {
			break
		}
		if !unicode.Is(unicode.M, r) {
			last = i
		}
	}
	return s[last:]
}

// wrap breaks s into full lines, in the middle of words, so that nothing is added or lost.
func wrap(s string) []string { return broken(s, func(line string) int { return len(line) }) }

// fold breaks a line of prose, after a space if there is one.
func fold(s string) []string {
	return broken(s, func(line string) int {
		if i := strings.LastIndexByte(line, ' '); i > len(line)/2 {
			return i + 1
		}
		return len(line)
	})
}

// broken breaks s into lines of a brief question. at returns where to break a full line.
func broken(s string, at func(line string) int) (lines []string) {
	for {
		line := cmp.Or(start(s, briefColumns), s)
		if line == s {
			return append(lines, s)
		}
		line = line[:at(line)]
		lines, s = append(lines, line), s[len(line):]
	}
}

// within cuts a line of our own words.
func within(s string, most int) string {
	shown, _ := briefPart(s, most)
	return shown
}
