package terminal

import (
	"io"
	"strings"
	"time"
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

func unmarked(text string) string { return strings.ReplaceAll(text, mark, `\u{25c6}`) }

// screen shows lines. It breaks words of the agent and of ours where the terminal would break them
// in half, and leaves the lines of commands and files to the terminal, so that a copy of them is
// exact. It is for one goroutine.
type screen struct {
	w     io.Writer
	seen  bool // the screen is a terminal
	color bool
	width func() int    // in cells
	raw   bool          // a line break needs a carriage return
	mid   bool          // the cursor is not at the beginning of a line
	col   int           // where flow continues
	item  string        // the beginning of the line that flow continues
	wrote time.Time     // when something was shown
	quiet time.Duration // the silence after which a sign is due
}

// firstSign is the silence after which a sign that the turn goes on is shown. The next silence is
// twice as long, until something else is shown.
const firstSign = 10 * time.Second

// narrowest is the least width for which a screen breaks lines.
const narrowest = 20

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
	s.mid, s.wrote, s.quiet = !strings.HasSuffix(text, "\n"), time.Now(), firstSign
	if !s.mid {
		s.col, s.item = 0, ""
	}
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
	s.write(prefix + s.paint(st, unmarked(expand(text, 0))) + "\n")
}

// words shows words of ours after a prefix of indent cells.
func (s *screen) words(prefix string, indent int, st style, gap string, words []string) {
	s.rows(prefix, indent, st, Wrap(words, gap, s.room(indent)))
}

// prose is line for a text of words, after a prefix of indent cells.
func (s *screen) prose(prefix string, indent int, st style, text string) {
	text = unmarked(expand(text, 0))
	if !s.seen {
		s.line(prefix, st, text)
		return
	}
	s.rows(prefix, indent, st, fit(breakable(text), "", 0, s.room(indent)))
}

func (s *screen) rows(prefix string, indent int, st style, rows []string) {
	for _, row := range rows {
		s.line(prefix, st, row)
		prefix = strings.Repeat(" ", indent)
	}
}

// room returns how many cells a row has after a prefix. The last one stays free: some terminals
// break a full row at once.
func (s *screen) room(indent int) int { return max(s.width()-1-indent, narrowest) }

// flow continues a text of words where the last flow ended, in the same row. The further rows of an
// item of a list begin below its words.
func (s *screen) flow(text string) {
	for i, line := range strings.Split(unmarked(text), "\n") {
		if i > 0 {
			s.write("\n")
		}
		item := s.item
		if len(item) < longestMark {
			item += line[:min(len(line), longestMark)]
		}
		hang := hanging(item)
		rows, col := fit(breakable(expand(line, s.col)), "", s.col-hang, s.room(hang)), s.col
		if len(rows) > 1 {
			col = hang
		}
		s.write(strings.Join(rows, "\n"+strings.Repeat(" ", hang)))
		s.col, s.item = col+cells.String(rows[len(rows)-1]), item
	}
}

// longestMark is how many bytes of a line are looked at for the mark of an item.
const longestMark = 16

// hanging returns how many bytes the mark of an item has, with which a line begins, and 0 without one.
func hanging(line string) int {
	line = line[:min(len(line), longestMark)]
	rest := strings.TrimLeft(line, " ")
	digits := strings.TrimLeft(rest, "0123456789")
	switch {
	case strings.HasPrefix(rest, "- "), strings.HasPrefix(rest, "* "):
		return len(line) - len(rest) + 2
	case digits != rest && (strings.HasPrefix(digits, ". ") || strings.HasPrefix(digits, ") ")):
		return len(line) - len(digits) + 2
	}
	return 0
}

// title shows a line with a remark.
func (s *screen) title(prefix, text, remark string) {
	if remark != "" {
		remark = "  " + s.paint(dim, unmarked(remark))
	}
	s.fresh()
	s.write(prefix + s.paint(bold, unmarked(text)) + remark + "\n")
}

// silent reports whether a sign is due. None is shown within a line.
func (s *screen) silent() bool { return !s.mid && time.Since(s.wrote) >= s.quiet }

// sign shows a line that ends a silence.
func (s *screen) sign(prefix, text string) {
	next := 2 * s.quiet
	s.line(prefix, dim, text)
	s.quiet = next
}

// echoed is called when the terminal itself has shown a key, such as ^C.
func (s *screen) echoed() {
	if !s.raw && s.seen {
		s.mid = true
	}
}
