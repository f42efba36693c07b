package terminal

import (
	"io"
	"regexp"
	"strings"
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

// screen shows lines. It is for one goroutine.
type screen struct {
	w      io.Writer
	seen   bool // the screen is a terminal
	color  bool
	moves  bool       // the cursor may be moved, which the status line needs
	width  func() int // in cells; 0 means that lines are not broken
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

// line shows a line after a prefix. It breaks the line at any character to fit the width.
func (s *screen) line(prefix string, st style, text string) {
	s.rows(prefix, st, fold(text, s.room(prefix), false))
}

// prose is like line, but breaks at spaces.
func (s *screen) prose(prefix string, st style, text string) {
	s.rows(prefix, st, fold(text, s.room(prefix), true))
}

func (s *screen) rows(prefix string, st style, rows []string) {
	s.fresh()
	for _, row := range rows {
		if row == "" {
			prefix = strings.TrimRight(prefix, " ")
		}
		s.row(prefix, st, row)
		s.write("\n")
		prefix = strings.Repeat(" ", width(prefix))
	}
}

// row shows one row. Our questions begin with "?"; a row of others that begins so gets a
// backslash.
func (s *screen) row(prefix string, st style, row string) {
	if prefix == "" && strings.HasPrefix(row, "?") {
		row = `\` + row
	}
	s.write(prefix + s.paint(st, row))
}

// title shows a line and a remark, on the same row if there is room.
func (s *screen) title(prefix string, st style, text, remark string) {
	s.fresh()
	indent := strings.Repeat(" ", width(prefix))
	rows := fold(text, s.room(prefix), true)
	last := rows[len(rows)-1]
	for i, row := range rows {
		s.row(prefix, st, row)
		prefix = indent
		if i < len(rows)-1 {
			s.write("\n")
		}
	}
	switch room := s.room(indent); {
	case remark == "":
	case room == 0 || width(last)+2+width(remark) <= room:
		s.write("  " + s.paint(dim, remark))
	default:
		s.rows(indent, dim, fold(remark, room, true))
		return
	}
	s.write("\n")
}

// room returns how many cells are left after a prefix; 0 means no limit.
func (s *screen) room(prefix string) int {
	w := s.width()
	if w <= 0 {
		return 0
	}
	return max(w-width(prefix), 2) // a wide character needs two
}

// hint shows a status line that disappears with the next write. It shows nothing if the
// cursor cannot be moved or is within a line.
func (s *screen) hint(text string) {
	if !s.moves || s.mid || width(text) >= s.width() {
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

// flow shows text that arrives in pieces, and breaks it at spaces. It shows a word when the
// word is complete, since only then it is known whether the word fits into the row.
type flow struct {
	s      *screen
	st     style
	indent string
	prefix string // of the first line
	col    int    // cells after the indent
	begun  bool   // the line has begun
	hang   string // spaces before the further rows of a list item
	gap    string // spaces before the word
	word   strings.Builder
	wide   bool // the word ends with a wide character, after which a line may end
}

// item matches the beginning of items of Markdown's lists.
var item = regexp.MustCompile(`^([-*+]|[0-9]{1,3}[.)])$`)

func (f *flow) add(text string) {
	for _, r := range text {
		switch n := cells(r); {
		case r == '\n':
			f.flush()
			f.s.write("\n")
			f.col, f.gap, f.begun, f.hang = 0, "", false, ""
		case r == ' ' || r == '\t':
			f.flush()
			f.gap = expand(f.gap + string(r))
		default:
			if (f.wide || n == 2) && n > 0 {
				f.flush()
			}
			f.word.WriteRune(r)
			f.wide = n == 2 || f.wide && n == 0
		}
	}
}

func (f *flow) flush() {
	if f.word.Len() == 0 {
		return
	}
	word := showProse(f.word.String())
	f.word.Reset()
	f.wide = false
	room := f.s.room(f.indent)
	if f.col == 0 && item.MatchString(word) {
		f.hang = strings.Repeat(" ", width(f.gap+word)+1)
	} else if room > 0 && f.col > 0 && f.col+width(f.gap)+width(word) > room {
		f.s.write("\n")
		f.col, f.gap, f.begun = 0, f.hang, false
	}
	for i, row := range fold(word, room, false) {
		if i > 0 {
			f.s.write("\n")
			f.col, f.begun = 0, false
		}
		if f.begun {
			f.s.write(f.gap + f.s.paint(f.st, row))
		} else {
			f.s.row(f.prefix+f.gap, f.st, row)
			f.prefix, f.begun = f.indent, true
		}
		f.col += width(f.gap) + width(row)
		f.gap = ""
	}
}

func (f *flow) end() {
	f.flush()
	f.s.fresh()
}
