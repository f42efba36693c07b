package jsonrpc

import (
	"os"
	"sync"
)

// Stdio returns a transport of lines over the standard input and output of the
// process. From then on os.Stdout, and on Unix file descriptor 1 as a whole,
// is the standard error: a stray print, also one of a child process, goes
// there and not between the messages. Close undoes it.
func Stdio() Transport {
	out, restore := claimStdout()
	in := newStdin()
	return &stdio{
		lineReader: lineReader{r: in},
		lineWriter: lineWriter{w: out},
		close: func() error {
			err := in.Close()
			restore()
			return err
		},
	}
}

type stdio struct {
	lineReader
	lineWriter
	once  sync.Once
	close func() error
	err   error
}

func (t *stdio) Close() error {
	t.once.Do(func() { t.err = t.close() })
	return t.err
}

// stdin is standard input with a Close that unblocks Read. A read of a
// terminal or an inherited pipe cannot be interrupted, so one goroutine reads
// and is left behind at the end: it holds nothing but its buffer, and ends
// with the next input or the process.
type stdin struct {
	f      *os.File
	once   sync.Once
	chunks chan []byte
	errs   chan error
	rest   []byte
	closed chan struct{}
}

func newStdin() *stdin {
	return &stdin{f: os.Stdin, chunks: make(chan []byte), errs: make(chan error, 1), closed: make(chan struct{})}
}

func (s *stdin) pump() {
	for {
		b := make([]byte, slabSize)
		n, err := s.f.Read(b)
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

func (s *stdin) Read(b []byte) (int, error) {
	s.once.Do(func() { go s.pump() })
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

func (s *stdin) Close() error {
	close(s.closed)
	return nil
}
