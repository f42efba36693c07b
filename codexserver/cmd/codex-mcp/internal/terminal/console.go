package terminal

import (
	"io"
	"os"

	"golang.org/x/term"
)

// A Console is where the person sits: the standard streams, and what is known
// of them.
type Console struct {
	// Out is standard output, Err standard error.
	Out, Err io.Writer
	// OutTerminal and ErrTerminal say which of them is a terminal.
	OutTerminal, ErrTerminal bool
	// Joined says that both are one file, as after 2>&1: what cannot be
	// written to Err cannot be written to Out.
	Joined bool
	// Unread reports whether the reader of Out is gone. Nil leaves that to the next
	// write.
	Unread func() bool
	// Keys are the keys of the terminal on standard input; nil when there is none, and no
	// question can be asked.
	Keys Keyboard
	// Color lets text be coloured, Moves the cursor be moved, where progress
	// is shown on a terminal.
	Color, Moves bool
	// Width is the terminal's, in cells. Nil is 80.
	Width func() int
	// Home is the person's home folder, shown as a tilde; "" means none.
	Home string
}

// A Keyboard is a terminal that keys are read from.
type Keyboard interface {
	io.Reader
	// Raw hands over every key at once, without showing it. The function that
	// it returns brings the terminal back to how it was.
	Raw() (restore func(), err error)
	// Flush throws away what was typed and not read.
	Flush() error
}

// Standard is the console of the standard streams. getenv is asked for NO_COLOR
// (https://no-color.org) and TERM, which is "dumb" where the cursor cannot be
// moved.
func Standard(stdin *os.File, stdout, stderr io.Writer, getenv func(string) string) *Console {
	home, _ := os.UserHomeDir() // without one no path is shortened
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
		able := getenv("TERM") != "dumb" && enableSequences(screen)
		c.Moves = able
		c.Color = able && getenv("NO_COLOR") == ""
		c.Width = func() int {
			w, _, err := term.GetSize(int(screen.Fd()))
			if err != nil || w <= 0 {
				return usualWidth
			}
			return w
		}
	}
	if isTerminal(stdin) {
		c.Keys = &keyboard{stdin}
	}
	return c
}

const usualWidth = 80

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
	return func() { term.Restore(fd, before) }, nil // there is no one left to inform
}

func (k *keyboard) Flush() error { return flush(k.Fd()) }

// Asks reports whether the person can be asked: there are keys to press, and a terminal
// other than the one for the JSON, if there is any, to show the question on.
func (c *Console) Asks(json bool) bool { return c.Keys != nil && c.screen(json).seen }

// screen is where what happens is shown, and the questions are: standard output
// where that is a terminal that nothing else goes to, else standard error.
func (c *Console) screen(json bool) *screen {
	wide := c.Width
	if wide == nil {
		wide = func() int { return usualWidth }
	}
	switch {
	case c.OutTerminal && !json:
		return &screen{w: c.Out, color: c.Color, moves: c.Moves, width: wide, seen: true}
	case c.ErrTerminal:
		return &screen{w: c.Err, width: wide, seen: true}
	}
	return &screen{w: c.Err, width: func() int { return 0 }}
}
