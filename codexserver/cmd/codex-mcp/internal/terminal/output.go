package terminal

import (
	"io"
	"sync"
)

// output is standard output. After a write that failed it takes no more.
type output struct {
	w      io.Writer
	failed chan struct{} // closed by the first write that fails

	mu  sync.Mutex
	err error // of that write
}

func newOutput(w io.Writer) *output { return &output{w: w, failed: make(chan struct{})} }

// Write implements [io.Writer].
func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return 0, o.err
	}
	n, err := o.w.Write(b)
	if err != nil {
		o.err = err
		close(o.failed)
	}
	return n, err
}

// failure returns the error of the write that failed, nil if none has.
func (o *output) failure() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}
