package jsonrpc

import (
	"cmp"
	"errors"
	"io"
	"os"
	"sync"
)

// Stdio returns a transport of lines over the standard input and output of the process, which
// nothing else may read. Call it once and before anything prints: from then on os.Stdout, and on
// Unix file descriptor 1 as a whole, is the standard error, so that no stray print comes between messages.
func Stdio() Transport {
	// Close must unblock a Read, for which a goroutine is needed where the kernel cannot be asked.
	in, ok := newStoppable(os.Stdin)
	if !ok {
		in = newPump(os.Stdin)
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
	*io.PipeReader        // unbuffered: what was not asked for stays in the kernel
	start          func() // at the first Read: a peer that never runs takes no input
}

func newPump(r io.Reader) *pump {
	in, out := io.Pipe()
	return &pump{in, sync.OnceFunc(func() {
		go func() {
			var err error
			for b := make([]byte, slabSize); err == nil; { // io.Copy links 80 KB more, for files and sockets
				var n int
				if n, err = r.Read(b); n > 0 {
					_, closed := out.Write(b[:n])
					err = cmp.Or(err, closed)
				}
			}
			_ = out.CloseWithError(err)
		}()
	})}
}

// Read implements io.Reader. It returns io.ErrClosedPipe after Close.
func (p *pump) Read(b []byte) (int, error) {
	p.start()
	return p.PipeReader.Read(b)
}
