package terminal

import (
	"io"
	"os"

	"golang.org/x/term"
)

// A Console is the standard streams and their properties.
type Console struct {
	// Out is standard output, Err standard error.
	Out, Err io.Writer
	// OutTerminal and ErrTerminal say which of them is a terminal.
	OutTerminal, ErrTerminal bool
	// Rewrites says that the terminal can rewrite its last line, and that the user wants that.
	Rewrites bool
	// Width returns how many cells wide the terminal is, 0 if that is not known.
	Width func() int
	// Left waits until the reader of Out is gone, and reports whether it is. With nil only a write detects that.
	Left func() bool
	// Input is the terminal on standard input, nil without one. Then no question can be asked.
	Input Input
}

// An Input is a terminal whose Read returns a line when it is complete.
type Input interface {
	io.Reader
	// Flush discards what was typed and not read, incomplete lines too.
	Flush() error
}

// Standard returns the console of the standard streams.
func Standard(stdin *os.File, stdout, stderr io.Writer) *Console {
	c := &Console{Out: stdout, Err: stderr, OutTerminal: IsTerminal(stdout), ErrTerminal: IsTerminal(stderr),
		Width: func() int { return 0 }}
	if f, ok := stdout.(*os.File); ok && !c.OutTerminal {
		c.Left = func() bool { return readerLeaves(f) }
	}
	if IsTerminal(stdin) {
		c.Input = input{stdin}
	}
	for _, stream := range []any{stderr, stdout} {
		if f, ok := stream.(*os.File); ok && IsTerminal(f) {
			c.Rewrites = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && rewrites(f)
			c.Width = func() int {
				return Width(f)
			}
		}
	}
	return c
}

// Width returns how many cells wide a terminal is, 0 for another stream and if it is not known.
func Width(stream *os.File) int {
	width, _, _ := term.GetSize(int(stream.Fd()))
	return width
}

// IsTerminal reports whether a stream is a file that is a terminal.
func IsTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && f != nil && term.IsTerminal(int(f.Fd()))
}

// Asks reports whether the user can be asked: there is a terminal to read from, and one that shows the
// question. With json, standard output does not.
func (c *Console) Asks(json bool) bool {
	return c.Input != nil && (c.ErrTerminal || c.OutTerminal && !json)
}

// input is the terminal on standard input.
type input struct{ *os.File }

func (i input) Flush() error { return flush(i.Fd()) }

// typed reads lines from an input, and never ahead. A read cannot be ended, so one that is no longer needed
// continues until the next line.
type typed struct {
	in   Input
	got  chan string
	busy bool
}

// next returns the channel for the next line, "" at the end of the input. The receiver sets busy to false.
func (t *typed) next() <-chan string {
	if !t.busy {
		t.busy = true
		go func() {
			b := make([]byte, 4096) // as long as a line of a terminal can be
			n, _ := t.in.Read(b)    // no bytes mean the end, whatever the error
			t.got <- string(b[:n])
		}()
	}
	return t.got
}

// flush discards what was typed so far.
func (t *typed) flush() error {
	err := t.in.Flush()
	select {
	case <-t.got:
		t.busy = false
	default:
	}
	return err
}

// output is standard output. It fails for good after a failed write.
type output struct {
	w      io.Writer
	failed chan error // has why, once the output has failed; has room for that of the reader too
	err    error
}

// Write implements [io.Writer].
func (o *output) Write(b []byte) (n int, _ error) {
	if o.err == nil {
		if n, o.err = o.w.Write(b); o.err != nil {
			o.failed <- o.err
		}
	}
	return n, o.err
}
