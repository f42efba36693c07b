package terminal

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// How much of a command's output is shown: the first lines at once, then one a second on average,
// and the last ones at the end.
const (
	headLines = 10
	liveLines = 200 // before the end
	tailLines = 5
	// lineLength is how many characters of a line are shown.
	lineLength = 600
	// lineBytes is how many bytes of a line are kept. It is more than lineLength so that control
	// sequences, which are dropped, leave room for text.
	lineBytes = 64 << 10
)

// lineBreaks ends a line where a program would write over it, so that nothing is hidden.
func lineBreaks(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
}

// printed is the output of a command while it arrives. The lines that are not shown yet are
// bounded; a line counts when it is complete. The zero value is ready.
type printed struct {
	line  []byte // of the incomplete line
	more  int    // characters of it that are left out
	cr    bool   // the output ends with a carriage return
	seen  int    // lines
	shown int    // lines, with those that say how many are left out
	next  []kept // lines
	gap   int    // how many of next come before the lines that are left out
	left  int    // how many are left out there

	at time.Time // when some of it was shown, or it began
}

// kept is a line, and how many more characters it had. A flood of lines costs little, since only
// those that are shown are made safe to show.
type kept struct {
	text string
	more int
}

func (k kept) shown() string { return cutMore(showOutput(k.text), lineLength, k.more) }

// add adds a piece of the output, when there is room to show some lines.
func (p *printed) add(piece string, room int) {
	for piece != "" {
		if piece[0] == '\n' && p.cr { // of one line break
			p.cr, piece = false, piece[1:]
			continue
		}
		i := strings.IndexAny(piece, "\r\n")
		part := piece
		if i >= 0 {
			part = piece[:i]
		}
		kept := min(len(part), lineBytes-len(p.line))
		p.line, p.more = append(p.line, part[:kept]...), p.more+utf8.RuneCountInString(part[kept:])
		if p.cr = i >= 0 && piece[i] == '\r'; i < 0 {
			return
		}
		p.complete(room)
		piece = piece[i+1:]
	}
}

// complete ends a line.
func (p *printed) complete(room int) {
	line := kept{string(p.line), p.more}
	p.line, p.more = p.line[:0], 0
	p.seen++
	if p.left == 0 {
		p.gap = max(room, 0)
	}
	if p.next = append(p.next, line); len(p.next) > p.gap+tailLines {
		p.next = slices.Delete(p.next, p.gap, p.gap+1)
		p.left++
	}
}

// end ends the output. whole is all of it, but for what the engine has left out of a long one;
// some of its pieces may not have arrived.
func (p *printed) end(whole string) {
	if len(p.line)+p.more > 0 {
		p.complete(headLines - p.shown)
	}
	all := lines(lineBreaks(whole))
	if len(all) <= p.seen {
		return
	}
	past := p.seen - p.left - len(p.next)
	p.next, p.left, p.seen, p.cr = nil, 0, past, false
	p.add(strings.Join(all[past:], "\n")+"\n", headLines-p.shown)
}

// room returns how many lines may be shown now.
func (p *printed) room(began time.Time) int {
	return min(headLines+int(time.Since(began)/time.Second), liveLines) - p.shown
}

// waits reports whether a line is to be shown.
func (p *printed) waits(began time.Time) bool { return len(p.next) > 0 && p.room(began) > 0 }

// show shows the next lines, room at most.
func (p *printed) show(v *view, room int) {
	p.at = time.Now()
	for ; room > 0 && len(p.next) > 0; room-- {
		p.shown++
		if p.left > 0 && p.gap == 0 {
			v.omitted(p.left)
			p.left = 0
			continue
		}
		v.s.line("  ", plain, p.next[0].shown())
		p.next, p.gap = p.next[1:], p.gap-1
	}
}
