package terminal

import (
	"testing"
	"testing/synctest"
)

// typist is a keyboard whose reads return what is sent.
type typist chan string

func (k typist) Read(b []byte) (int, error)       { return copy(b, <-k), nil }
func (k typist) Raw() (restore func(), err error) { return func() {}, nil }
func (k typist) Flush() error                     { return nil }

// TestFlush discards a key that was read before the question was there. The key after it counts.
func TestFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keys := make(typist)
		r := newReader(keys)
		r.next()
		keys <- "y"
		synctest.Wait()
		if err := r.flush(); err != nil {
			t.Fatal(err)
		}
		next := r.next()
		synctest.Wait()
		select {
		case text := <-next:
			t.Fatalf("an early %q answers", text)
		case keys <- "n":
		}
		if text := <-next; text != "n" {
			t.Errorf("%q answers, want the later key", text)
		}
	})
}
