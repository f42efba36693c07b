package jsonrpc

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
)

func newPump(r io.Reader) *pump {
	return &pump{r: r, chunks: make(chan []byte), errs: make(chan error, 1), closed: make(chan struct{})}
}

// TestPump checks that the reader of a terminal passes on every byte and the error, and that Close ends a Read.
func TestPump(t *testing.T) {
	failed := errors.New("hung up")
	for name, r := range map[string]io.Reader{
		"at once":         strings.NewReader("a\nlong line\n"),
		"byte by byte":    iotest.OneByteReader(strings.NewReader("a\nlong line\n")),
		"with its end":    iotest.DataErrReader(strings.NewReader("a\nlong line\n")),
		"small and large": io.MultiReader(strings.NewReader("a\n"), strings.NewReader("long line\n")),
	} {
		for _, end := range []error{nil, failed} {
			if end != nil {
				r = io.MultiReader(strings.NewReader("a\nlong line\n"), iotest.ErrReader(end))
			}
			got, err := io.ReadAll(iotest.HalfReader(newPump(r)))
			if string(got) != "a\nlong line\n" || !errors.Is(err, end) {
				t.Errorf("%s, end %v: %q, %v", name, end, got, err)
			}
		}
	}
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		s := newPump(r)
		if synctest.Wait(); s.rest != nil {
			t.Error("it reads before it is asked")
		}
		read := make(chan error, 1)
		go func() {
			_, err := s.Read(make([]byte, 1))
			read <- err
		}()
		synctest.Wait()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := <-read; !errors.Is(err, os.ErrClosed) {
			t.Errorf("a Read during Close: %v", err)
		}
		if _, err := w.Write([]byte("late")); err != nil { // what it reads now, it drops, and ends
			t.Error(err)
		}
		synctest.Wait()
		go func() { _, _ = w.Write([]byte("more")) }()
		synctest.Wait()
		_ = r.Close()
	})
}
