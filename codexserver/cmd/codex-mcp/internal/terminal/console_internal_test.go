package terminal

import (
	"io"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestConsoles has no terminal, and what stands for one.
func TestConsoles(t *testing.T) {
	f := must.Get(os.Create(filepath.Join(t.TempDir(), "f")))(t)
	defer f.Close()
	if c := Standard(f, f, io.Discard); c.Input != nil || c.OutTerminal || c.ErrTerminal {
		t.Errorf("%+v", c)
	}
	in := input{f}
	for _, tt := range []struct {
		c          Console
		asks, json bool
	}{
		{Console{}, false, false}, {Console{Input: in}, false, false}, {Console{OutTerminal: true}, false, false},
		{Console{Input: in, OutTerminal: true}, true, false}, {Console{Input: in, ErrTerminal: true}, true, true},
	} {
		if plain, json := tt.c.Asks(false), tt.c.Asks(true); plain != tt.asks || json != tt.json {
			t.Errorf("%+v asks: %t, with JSON %t", tt.c, plain, json)
		}
	}
}

// lineInput returns what is sent.
type lineInput chan string

func (k lineInput) Read(b []byte) (int, error) { return copy(b, <-k), nil }
func (k lineInput) Flush() error               { return nil }

// TestFlush discards a line that was read before the question was there. The line after it counts.
func TestFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := make(lineInput)
		r := &typed{in: in, got: make(chan string, 1)}
		r.next()
		in <- "y\n"
		synctest.Wait()
		must.OK(t, r.flush())
		next := r.next()
		synctest.Wait()
		select {
		case text := <-next:
			t.Fatalf("an early %q answers", text)
		case in <- "n\n":
		}
		must.Equal(t, "the line", "n\n", <-next)
	})
}
