package terminal

import (
	"io"
	"sync"
	"syscall"
)

// output is standard output. It fails for good after a failed write, and when its reader is
// gone.
type output struct {
	w      io.Writer
	unread func() bool   // reports whether the reader is gone; may be nil
	failed chan struct{} // closed when the output has failed

	mu  sync.Mutex
	err error // why the output has failed
}

func newOutput(c *Console) *output {
	return &output{w: c.Out, unread: c.Unread, failed: make(chan struct{})}
}

// Write implements [io.Writer].
func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return 0, o.err
	}
	n, err := o.w.Write(b)
	if err != nil {
		o.fail(err)
	}
	return n, err
}

// look fails like a write if the reader is gone. A turn can be silent for a long time.
func (o *output) look() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil && o.unread != nil && o.unread() {
		o.fail(syscall.EPIPE)
	}
}

// fail records why the output has failed. The caller holds the lock.
func (o *output) fail(err error) {
	o.err = err
	close(o.failed)
}

// failure returns why the output has failed, nil if it has not.
func (o *output) failure() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}
