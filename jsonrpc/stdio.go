package jsonrpc

import (
	"errors"
	"io"
	"os"
	"sync"
)

// Stdio returns a transport of lines over the standard input and output of the process, which
// nothing else may read. Call it once and before anything prints: from then on os.Stdout, and on
// Unix file descriptor 1 as a whole, is the standard error, so that no stray print, also of a child
// process, comes between the messages.
func Stdio() Transport {
	// Close must unblock a Read, for which a goroutine is needed where the kernel cannot be asked.
	in, ok := newStoppable(os.Stdin)
	if !ok {
		in = &pump{r: os.Stdin, chunks: make(chan []byte), errs: make(chan error, 1), closed: make(chan struct{})}
	}
	// Before anything can print between two messages.
	out := claimStdout()
	var w io.WriteCloser = out
	if p, ok := polled(out); ok {
		_ = out.Close() // p has taken its place
		w = p
	}
	// Once, because a second Close of a descriptor could close another file with its number.
	return Lines(in, w, closeFunc(sync.OnceValue(func() error {
		return errors.Join(in.Close(), w.Close())
	})))
}

// closeFunc is a function that is an io.Closer.
type closeFunc func() error

func (f closeFunc) Close() error { return f() }

// pump is a reader that can be closed over one that cannot: a read of a
// terminal or a file waits in the kernel. One goroutine reads, and at the end
// is left behind: it holds nothing but its buffer, and ends with the next
// input or the process.
type pump struct {
	r      io.Reader
	start  sync.Once     // at the first Read: a peer that never runs takes no input
	chunks chan []byte   // unbuffered: what was not asked for stays in the kernel
	errs   chan error    // has room, so that run ends although nothing reads any more
	rest   []byte        // of the last chunk; belongs to Read
	closed chan struct{} // closed by Close
}

// run reads until an error or Close. Each chunk is a new buffer, since Read may still use the last
// one.
func (s *pump) run() {
	for {
		b := make([]byte, slabSize)
		n, err := s.r.Read(b)
		if n > 0 {
			select {
			case s.chunks <- b[:n]:
			case <-s.closed:
				return
			}
		}
		if err != nil {
			s.errs <- err
			return
		}
	}
}

// Read implements io.Reader. It returns os.ErrClosed after Close.
func (s *pump) Read(b []byte) (int, error) {
	s.start.Do(func() { go s.run() })
	if len(s.rest) == 0 {
		select {
		case s.rest = <-s.chunks:
		case err := <-s.errs:
			return 0, err
		case <-s.closed:
			return 0, os.ErrClosed
		}
	}
	n := copy(b, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// Close unblocks Read, and lets run end with its current read.
func (s *pump) Close() error {
	close(s.closed)
	return nil
}
