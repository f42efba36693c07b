package terminal

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// key is the meaning of one key press.
type key rune

// Keys other than letters.
const (
	keyOther key = -1 - iota // unknown, or pasted text
	keyEscape
)

// reader reads from a keyboard, and never ahead: keys that are typed before a read can be
// discarded. A read cannot be ended, so one that is no longer needed continues until the
// next key.
type reader struct {
	in   Keyboard
	got  chan string
	busy bool
}

func newReader(in Keyboard) *reader { return &reader{in: in, got: make(chan string, 1)} }

// next returns the channel for the next typed text, "" at the end of the input. The
// receiver calls done.
func (r *reader) next() <-chan string {
	if !r.busy {
		r.busy = true
		go func() {
			b := make([]byte, 4096)
			n, _ := r.in.Read(b) // no bytes mean the end, whatever the error
			r.got <- string(b[:n])
		}()
	}
	return r.got
}

func (r *reader) done() { r.busy = false }

// flush discards the keys typed so far.
func (r *reader) flush() error {
	err := r.in.Flush()
	select {
	case <-r.got:
		r.done()
	default:
	}
	return err
}

// sequenceGap bounds the time until the rest of an escape sequence, or of pasted text.
const sequenceGap = 50 * time.Millisecond

// stops reports whether the text stops the turn: ctrl-C, or the end of the input.
func stops(text string) bool { return text == "" || strings.Contains(text, "\x03") }

// keyOf returns the key of a typed text.
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
