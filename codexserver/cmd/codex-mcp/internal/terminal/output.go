package terminal

import (
	"io"
	"syscall"
)

// output is standard output. It fails for good after a failed write, and when its reader is
// gone. Only the goroutine of the screen uses it.
type output struct {
	w      io.Writer
	unread func() bool   // reports whether the reader is gone; may be nil
	failed chan struct{} // closed when the output has failed
	err    error         // why the output has failed
}

func newOutput(c *Console) *output {
	return &output{w: c.Out, unread: c.Unread, failed: make(chan struct{})}
}

// Write implements [io.Writer].
func (o *output) Write(b []byte) (int, error) {
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
	if o.err == nil && o.unread != nil && o.unread() {
		o.fail(syscall.EPIPE)
	}
}

// fail records why the output has failed.
func (o *output) fail(err error) {
	o.err = err
	close(o.failed)
}
