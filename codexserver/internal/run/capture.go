package run

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

const (
	keepHead = 512 << 10 // bytes kept of a stream's beginning
	keepTail = 512 << 10 // and of its end

	chunkSize     = 8 << 10 // the longest piece
	maxDeltas     = 10_000  // pieces passed to onOutput
	maxDeltaBytes = 1 << 20 // their bytes together
)

// Capture collects a command's output and passes it to a function, see [Starter.Run]. It keeps the head and the tail.
type Capture struct {
	mu                   sync.Mutex
	onOutput             func(protocol.OutputStream, []byte)
	stdout, stderr, both headTail
	deltas, deltaBytes   int
	closed               bool
	begun                chan struct{} // closed when the command has started; nothing is read before
	ended                int           // streams
	done                 chan struct{} // closed when both streams are at their end
}

// NewCapture returns a capture that passes pieces of output to onOutput, unless that is nil.
func NewCapture(onOutput func(protocol.OutputStream, []byte)) *Capture {
	return &Capture{onOutput: onOutput, begun: make(chan struct{}), done: make(chan struct{})}
}

// stream writes one of the streams to a capture. It is a writer for [exec.Cmd], which calls only ReadFrom.
type stream struct {
	*Capture
	name protocol.OutputStream
}

func (s stream) Write(b []byte) (int, error) {
	s.Add(s.name, b)
	return len(b), nil
}

// ReadFrom reads the stream to its end.
func (s stream) ReadFrom(r io.Reader) (n int64, err error) {
	<-s.begun
	n, err = io.CopyBuffer(struct{ io.Writer }{s}, struct{ io.Reader }{r}, make([]byte, chunkSize))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended++; s.ended == 2 {
		close(s.done)
	}
	return n, err
}

// Add adds a piece of a stream. It does not keep b.
func (c *Capture) Add(stream protocol.OutputStream, b []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	if stream == protocol.Stdout {
		c.stdout.write(b)
	} else {
		c.stderr.write(b)
	}
	c.both.write(b)
	if c.onOutput == nil || c.deltas == maxDeltas || c.deltaBytes == maxDeltaBytes {
		return
	}
	b = b[:min(len(b), maxDeltaBytes-c.deltaBytes)] // nothing is passed on after something was left out
	c.deltas++
	c.deltaBytes += len(b)
	c.onOutput(stream, bytes.Clone(b))
}

// Output returns a result with the output alone.
func (c *Capture) Output() Result {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Result{Stdout: c.stdout.String(), Stderr: c.stderr.String(), Aggregated: c.both.String(),
		Omitted: int64(c.both.dropped())}
}

func (c *Capture) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
}

// headTail keeps the beginning and the end of what is written to it.
type headTail struct {
	head, tail []byte // the tail may have as much again before it
	written    int
}

func (h *headTail) write(b []byte) {
	h.written += len(b)
	n := min(keepHead-len(h.head), len(b))
	h.head, b = append(h.head, b[:n]...), b[n:]
	h.tail = append(h.tail, b[max(0, len(b)-keepTail):]...)
	if len(h.tail) > 2*keepTail {
		h.tail = append(h.tail[:0], h.tail[len(h.tail)-keepTail:]...)
	}
}

// dropped returns how many bytes are not kept.
func (h *headTail) dropped() int { return max(0, h.written-keepHead-keepTail) }

// String returns what was written as valid UTF-8, with a line in place of what was dropped.
func (h *headTail) String() string {
	var b strings.Builder
	tail := h.tail[max(0, len(h.tail)-keepTail):]
	if h.dropped() == 0 {
		writeValid(&b, slices.Concat(h.head, tail)) // joined, since a rune may be split
		return b.String()
	}
	writeValid(&b, h.head)
	fmt.Fprintf(&b, "\n[... omitted %d bytes ...]\n", h.dropped())
	writeValid(&b, tail)
	return b.String()
}

// writeValid writes p with U+FFFD in place of each invalid sequence.
func writeValid(to *strings.Builder, p []byte) {
	if utf8.Valid(p) { // as most output is, which is quickly seen
		to.Write(p)
		return
	}
	for len(p) > 0 {
		r, n := utf8.DecodeRune(p)
		if r == utf8.RuneError && n == 1 { // the beginning of a rune is one sequence
			for n = min(3, len(p)); n > 1 && utf8.FullRune(p[:n]); {
				n--
			}
		}
		to.WriteRune(r)
		p = p[n:]
	}
}
