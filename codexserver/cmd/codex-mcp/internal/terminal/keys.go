package terminal

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// key is what one press of a key means.
type key rune

// Keys other than letters.
const (
	keyOther key = -1 - iota // unknown, or pasted text
	keyEscape
)

// reader reads from a keyboard when it is asked to, and not ahead: what is typed
// meanwhile stays where it can be thrown away. A read that is not waited for any more is
// left behind, because it cannot be ended.
type reader struct {
	in   Keyboard
	got  chan string
	busy bool
}

func newReader(in Keyboard) *reader { return &reader{in: in, got: make(chan string, 1)} }

// next returns the channel from which comes what is typed next, nothing at the end of the
// input. The receiver calls done.
func (r *reader) next() <-chan string {
	if !r.busy {
		r.busy = true
		go func() {
			b := make([]byte, 4096)
			n, _ := r.in.Read(b) // nothing is the end, whatever the reason
			r.got <- string(b[:n])
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
func stops(text string) bool { return text == "" || strings.Contains(text, "\x03") }

// keyOf reads what was typed as one key.
func keyOf(text string) key {
	switch k, n := utf8.DecodeRuneInString(text); {
	case n < len(text):
		return keyOther
	case k == '\x1b':
		return keyEscape
	default:
		return key(unicode.ToLower(k))
	}
}
