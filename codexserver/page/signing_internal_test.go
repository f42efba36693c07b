package page

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/passkey"
)

// TestSigningTime takes challenges: each once and in time, of those that a question has room for.
func TestSigningTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoard(0)
		q, err := b.ask(t.Context(), request("1", "true"))
		if err != nil {
			t.Fatal(err)
		}
		id := q.entry.ID
		keep := func(n byte) {
			if !b.keep(id, signing{&passkey.Statement{}, []byte{n}, time.Now()}) {
				t.Fatal("the question is no longer open")
			}
		}
		check := func(name string, n byte, want bool) {
			t.Helper()
			if got := b.take(id, []byte{n}) != nil; got != want {
				t.Errorf("%s: %t, want %t", name, got, want)
			}
		}
		keep(1)
		keep(2)
		time.Sleep(signingTime)
		check("in time", 1, true)
		check("again", 1, false)
		time.Sleep(time.Nanosecond)
		check("too late", 2, false)
		for n := range byte(maxSignings + 1) {
			keep(10 + n)
		}
		check("the oldest of too many", 10, false)
		check("the next one", 11, true)
	})
}
