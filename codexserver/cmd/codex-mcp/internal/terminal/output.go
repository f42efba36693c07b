package terminal

import (
	"io"
	"sync"
	"syscall"
)

// output is standard output. After a write that failed, or when its reader is seen
// to have gone, it takes no more.
type output struct {
	w      io.Writer
	unread func() bool   // nil where that is not known
	failed chan struct{} // closed when it takes no more

	mu  sync.Mutex
	err error // why it takes no more
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

// look fails as a write would if the reader has gone. A turn can be silent for long.
func (o *output) look() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil && o.unread != nil && o.unread() {
		o.fail(syscall.EPIPE)
	}
}

// fail notes why nothing more is taken. The lock is held.
func (o *output) fail(err error) {
	o.err = err
	close(o.failed)
}

// failure returns why nothing more is taken, nil while it is.
func (o *output) failure() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}
