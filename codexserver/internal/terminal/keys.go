package terminal

import (
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
	keyInterrupt
	keyEnd // the input has ended
)

// chunk is what one read gave.
type chunk struct {
	text string
	err  error
}

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
			n, err := r.in.Read(b)
			r.got <- chunk{string(b[:n]), err}
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

// sequenceGap is how long the rest of an escape sequence may take.
const sequenceGap = 50 * time.Millisecond

// key reads a chunk as one key.
func (r *reader) key(c chunk) key {
	if c.text == "\x1b" { // the key itself, or the beginning of another's sequence
		select {
		case <-r.next():
			r.done()
			return keyOther
		case <-time.After(sequenceGap):
			return keyEscape
		}
	}
	switch k, n := utf8.DecodeRuneInString(c.text); {
	case n == 0:
		return keyEnd
	case n < len(c.text):
		return keyOther
	case k == 0x03:
		return keyInterrupt
	default:
		return key(unicode.ToLower(k))
	}
}
