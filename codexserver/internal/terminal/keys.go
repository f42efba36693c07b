package terminal

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// key is what one press of a key means.
type key rune

// Keys that are no letters.
const (
	keyOther key = -1 - iota // unknown, or pasted text
	keyEscape
)

// chunk is what one read gave; nothing at the end of the input.
type chunk struct{ text string }

// reader reads from a keyboard when it is asked to, and not ahead: what is typed
// meanwhile stays where it can be thrown away. A read that nobody waits for any
// more is left behind, for there is no way to end it.
type reader struct {
	in   Keyboard
	got  chan chunk
	busy bool
}

func newReader(in Keyboard) *reader { return &reader{in: in, got: make(chan chunk, 1)} }

// next returns the channel that the next chunk comes from. Whoever receives it
// calls done.
func (r *reader) next() <-chan chunk {
	if !r.busy {
		r.busy = true
		go func() {
			b := make([]byte, 4096)
			n, _ := r.in.Read(b) // nothing is the end, whatever the reason
			r.got <- chunk{string(b[:n])}
		}()
	}
	return r.got
}

func (r *reader) done() { r.busy = false }

// flush throws away what was typed so far.
func (r *reader) flush() error {
	err := r.in.Flush()
	select {
	case <-r.got:
		r.done()
	default:
	}
	return err
}

// sequenceGap is how long the rest of an escape sequence, or of pasted text, may
// take.
const sequenceGap = 50 * time.Millisecond

// stops reports whether the turn is to be stopped: by ctrl-C, or by the end of
// the input.
func (c chunk) stops() bool { return c.text == "" || strings.Contains(c.text, "\x03") }

// key reads a chunk as one key.
func (c chunk) key() key {
	switch k, n := utf8.DecodeRuneInString(c.text); {
	case n < len(c.text):
		return keyOther
	case k == '\x1b':
		return keyEscape
	default:
		return key(unicode.ToLower(k))
	}
}
