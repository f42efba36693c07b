package terminal

import (
	"io"
	"os"
	"time"

	"golang.org/x/term"
)

// A Console is the standard streams and their properties.
type Console struct {
	// Out is standard output, Err standard error.
	Out, Err io.Writer
	// OutTerminal and ErrTerminal say which of them is a terminal.
	OutTerminal, ErrTerminal bool
	// Joined means that both are one file, as after 2>&1. If a write to one fails,
	// the other fails, too.
	Joined bool
	// Unread reports whether the reader of Out is gone. With nil only a write
	// detects that.
	Unread func() bool
	// Keys reads the keys of the terminal on standard input. It is nil without a
	// terminal; then no question can be asked.
	Keys Keyboard
	// Color allows colours in progress on a terminal.
	Color bool
	// Width returns the width of the terminal in cells. Nil means 80.
	Width func() int
	// Home is the user's home folder, shown as a tilde; "" means none.
	Home string
}

// A Keyboard is a terminal from which keys are read.
type Keyboard interface {
	io.Reader
	// Raw switches to a mode in which Read returns each key at once and the terminal
	// does not show it. restore restores the terminal.
	Raw() (restore func(), err error)
	// Flush discards typed keys that were not read.
	Flush() error
}

// Standard returns the console of the standard streams. getenv reads NO_COLOR
// (https://no-color.org) and TERM, which is "dumb" if the terminal
// knows no control sequences.
func Standard(stdin *os.File, stdout, stderr io.Writer, getenv func(string) string) *Console {
	home, _ := os.UserHomeDir() // without a home no path is shortened
	c := &Console{Out: stdout, Err: stderr, Home: home}
	var screen *os.File
	if f, ok := stderr.(*os.File); ok && isTerminal(f) {
		c.ErrTerminal, screen = true, f
	}
	if f, ok := stdout.(*os.File); ok && isTerminal(f) {
		c.OutTerminal, screen = true, f
	}
	c.Joined = sameFile(stdout, stderr)
	if f, ok := stdout.(*os.File); ok && !c.OutTerminal {
		c.Unread = func() bool { return unread(f) }
	}
	if screen != nil {
		c.Color = getenv("NO_COLOR") == "" && getenv("TERM") != "dumb" && enableSequences(screen)
		c.Width = func() int { return Width(screen) }
	}
	if isTerminal(stdin) {
		c.Keys = &keyboard{stdin}
	}
	return c
}

const usualWidth = 80

// Width returns the width of the terminal that w writes to in cells, or 0 if w is no terminal.
func Width(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok || !isTerminal(f) {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil || width <= 0 {
		return usualWidth
	}
	return width
}

func isTerminal(f *os.File) bool { return f != nil && term.IsTerminal(int(f.Fd())) }

// sameFile reports whether both write to one file.
func sameFile(a, b io.Writer) bool {
	one, ok := a.(*os.File)
	two, both := b.(*os.File)
	if !ok || !both {
		return false
	}
	here, err := one.Stat()
	if err != nil {
		return false
	}
	there, err := two.Stat()
	return err == nil && os.SameFile(here, there)
}

// keyboard is the terminal on standard input.
type keyboard struct{ *os.File }

func (k *keyboard) Raw() (func(), error) {
	fd := int(k.Fd())
	before, err := term.MakeRaw(fd)
	if err != nil {
		return nil, err
	}
	return func() { term.Restore(fd, before) }, nil // an error has no remedy
}

func (k *keyboard) Flush() error { return flush(k.Fd()) }

// Asks reports whether the user can be asked: there are keys, and a terminal that can show
// the question. With json, standard output is not such a terminal.
func (c *Console) Asks(json bool) bool { return c.Keys != nil && c.screen(json).seen }

// screen returns the screen for progress and questions: standard output if it is a terminal
// and not used for JSON, else standard error.
func (c *Console) screen(json bool) *screen {
	wide := c.Width
	if wide == nil {
		wide = func() int { return usualWidth }
	}
	s := &screen{w: c.Err, width: wide, seen: c.ErrTerminal, wrote: time.Now(), quiet: firstSign}
	if c.OutTerminal && !json {
		s.w, s.color, s.seen = c.Out, c.Color, true
	}
	return s
}
