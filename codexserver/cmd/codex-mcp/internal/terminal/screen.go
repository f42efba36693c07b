package terminal

import (
	"io"
	"strings"
	"unicode/utf8"
)

// style is a parameter of the control sequence SGR.
type style string

const (
	plain   style = ""
	bold    style = "1"
	dim     style = "2"
	red     style = "31"
	green   style = "32"
	magenta style = "35"
	cyan    style = "36"
)

// mark begins our questions. Other text that is shown has it as an escape, so a row of that
// text does not look like a question, wherever the terminal breaks its lines.
const mark = "◆"

var unmarked = strings.NewReplacer(mark, `\u{25c6}`)

// screen shows lines, which the terminal breaks. It is for one goroutine.
type screen struct {
	w      io.Writer
	seen   bool // the screen is a terminal
	color  bool
	moves  bool       // the cursor may be moved, which the status line needs
	width  func() int // in cells
	raw    bool       // a line break needs a carriage return
	mid    bool       // the cursor is not at the beginning of a line
	status bool       // the status line is shown
}

func (s *screen) paint(st style, text string) string {
	if !s.color || st == plain || text == "" {
		return text
	}
	return "\x1b[" + string(st) + "m" + text + "\x1b[0m"
}

// write shows text that is safe to show.
func (s *screen) write(text string) {
	if text == "" {
		return
	}
	s.clear()
	s.mid = !strings.HasSuffix(text, "\n")
	s.send(text)
}

func (s *screen) send(text string) {
	if s.raw {
		text = strings.ReplaceAll(text, "\n", "\r\n")
	}
	io.WriteString(s.w, text) // output records an error; lost progress does not matter
}

// fresh moves the cursor to the beginning of a line.
func (s *screen) fresh() {
	if s.mid {
		s.write("\n")
	}
}

// line shows a line after a prefix of ours.
func (s *screen) line(prefix string, st style, text string) {
	if text == "" {
		prefix = strings.TrimRight(prefix, " ")
	}
	s.fresh()
	s.write(prefix + s.paint(st, unmarked.Replace(expand(text))) + "\n")
}

// words shows words of ours after a prefix of indent cells, and breaks the line between them where it
// is wider than the terminal. Text of others is never broken here: it is shown as it is.
func (s *screen) words(prefix string, indent int, st style, gap string, words []string) {
	for _, row := range Wrap(words, gap, s.width()-1-indent) {
		s.line(prefix, st, row)
		prefix = strings.Repeat(" ", indent)
	}
}

// Wrap joins words to rows of at most width characters; a longer word is a row of its own.
func Wrap(words []string, gap string, width int) []string {
	var rows []string
	for _, word := range words {
		if last := len(rows) - 1; last >= 0 && utf8.RuneCountInString(rows[last]+gap+word) <= width {
			rows[last] += gap + word
		} else {
			rows = append(rows, word)
		}
	}
	return rows
}

// title shows a line with a remark.
func (s *screen) title(prefix, text, remark string) {
	if remark != "" {
		remark = "  " + s.paint(dim, unmarked.Replace(remark))
	}
	s.fresh()
	s.write(prefix + s.paint(bold, unmarked.Replace(text)) + remark + "\n")
}

// statusWidth is the width of a terminal on which every status line fits into one row.
const statusWidth = 50

// hint shows a status line that disappears with the next write. It shows nothing if the
// cursor cannot be moved or is within a line, or the terminal is narrow.
func (s *screen) hint(text string) {
	if !s.moves || s.mid || s.width() < statusWidth {
		return
	}
	s.clear()
	s.send(text)
	s.status = true
}

// echoed is called when the terminal itself has shown a key, such as ^C.
func (s *screen) echoed() {
	switch {
	case s.raw || !s.seen:
	case s.moves && !s.mid:
		s.status = true // clear removes the key, too
	default:
		s.mid = true
	}
}

// clear removes the status line.
func (s *screen) clear() {
	if s.status {
		s.status = false
		s.send("\r\x1b[K")
	}
}
