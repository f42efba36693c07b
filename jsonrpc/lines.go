package jsonrpc

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
)

// Lines returns a transport of one message a line, the framing of MCP's stdio. Empty lines are
// skipped, CRLF is accepted, and a last line without a line feed is a message too. c is closed
// when the transport is; if it is nil, something else must unblock a Read at the end. On Linux Close
// also unblocks the Read of a file in blocking mode, such as os.Stdin.
func Lines(r io.Reader, w io.Writer, c io.Closer) Transport {
	t := &lines{lineReader: lineReader{r: r}, lineWriter: lineWriter{w: w, ready: newReadiness(w)}, c: c}
	if f, ok := r.(*os.File); ok && !nonBlocking(f) {
		if in, ok := newStoppable(f); ok {
			t.r, t.own = in, in
		}
	}
	return t
}

// lines is both directions. They share nothing, so that reading and
// writing need no lock between them.
type lines struct {
	lineReader
	lineWriter
	c   io.Closer
	own io.Closer // unblocks the input; nil if c does
}

func (t *lines) Close() error {
	var err error
	if t.c != nil {
		err = t.c.Close()
	}
	if t.own != nil {
		err = errors.Join(err, t.own.Close())
	}
	return err
}

const (
	slabSize = 32 << 10 // lines are cut from buffers of up to this size
	minSlab  = 4 << 10  // the first one, and that of a peer that hears little
)

// lineReader cuts lines out of buffers. A line is handed over for good, so a
// buffer is filled once and then left to the garbage collector; no byte is
// copied but those of a line that lies across buffers.
//
// A line longer than a buffer is gathered in several and joined at its end.
// One buffer that grows would be up to four times the line, would be pinned by
// the short lines behind it, and would stay with an idle reader.
type lineReader struct {
	r     io.Reader
	limit int
	// What is before start belongs to the peer. It is never written again: fill appends behind
	// len(buf), or takes a new buffer.
	buf     []byte // buf[start:] is read and not handed over
	start   int
	scanned int // buf[start:scanned] holds no line feed
	size    int // of the next buffer
	long    longLine
	waits   func() // see beforeWait
	err     error
}

// longLine is the part before buf[start:] of a line that lies across buffers.
type longLine struct {
	parts [][]byte
	size  int      // of the parts together
	skim  *skimmer // reads a line beyond the limit; nil otherwise
}

// add keeps a part.
func (l *longLine) add(part []byte) {
	l.parts = append(l.parts, part)
	l.size += len(part)
}

// join returns the line of which piece is the end.
func (l *longLine) join(piece []byte) []byte {
	if l.size == 0 {
		return piece
	}
	line := bytes.Join(append(l.parts, piece), nil)
	*l = longLine{}
	return line
}

// drop stops holding the line: what was kept, and what follows, goes to the skimmer.
func (l *longLine) drop() {
	l.skim = new(skimmer)
	for _, part := range l.parts {
		_, _ = l.skim.Write(part) // never fails
	}
	l.parts, l.size = nil, 0
}

// SetReadLimit bounds the length of a line.
func (t *lineReader) SetReadLimit(n int) { t.limit = n }

// Read returns the next line that is not empty. An error of the reader is returned only after
// all lines before it, and after the rest without a line feed, which is a line too.
func (t *lineReader) Read(context.Context) ([]byte, error) {
	for {
		if i := bytes.IndexByte(t.buf[t.scanned:], '\n'); i >= 0 {
			end := t.scanned + i
			// The capacity ends with the line: a handler that appends to its params gets a
			// copy, and cannot write over the next line.
			piece := t.buf[t.start:end:end]
			t.start, t.scanned = end+1, end+1
			if line, err := t.finish(piece); line != nil || err != nil {
				return line, err
			}
			continue
		}
		// No line feed so far. The next search starts behind what was searched.
		t.scanned = len(t.buf)
		t.checkLimit()
		// The input has ended or failed. What is left is the last line; then comes the error, now
		// and at each further Read.
		if t.err != nil {
			piece := t.buf[t.start:]
			t.start = len(t.buf)
			if line, err := t.finish(piece); line != nil || err != nil {
				return line, err
			}
			return nil, t.err
		}
		t.fill()
	}
}

// checkLimit stops holding a line that is beyond the limit. From then on its bytes go to the
// skimmer and are dropped, up to the line feed, so that its length costs no memory.
func (t *lineReader) checkLimit() {
	rest := t.buf[t.start:]
	if t.long.skim == nil {
		if !t.tooLong(rest) {
			return
		}
		t.long.drop()
	}
	_, _ = t.long.skim.Write(rest) // never fails
	t.start = len(t.buf)
}

// tooLong reports whether a line of which piece is the last part so far is beyond the limit. A CR may be half of the
// line's end, which does not count; if more follows, the line is looked at again.
func (t *lineReader) tooLong(piece []byte) bool {
	n := t.long.size + len(piece)
	if n > 0 && t.limit > 0 {
		last := piece
		if len(last) == 0 {
			last = t.long.parts[len(t.long.parts)-1]
		}
		if last[len(last)-1] == '\r' {
			n--
		}
	}
	return t.limit > 0 && n > t.limit
}

// finish returns a line of which piece is the end; nil if it is empty.
func (t *lineReader) finish(piece []byte) ([]byte, error) {
	// A line can pass the limit with its last piece, which checkLimit has not seen.
	if t.long.skim == nil && t.tooLong(piece) {
		t.long.drop()
	}
	if s := t.long.skim; s != nil {
		_, _ = s.Write(piece) // never fails
		t.long.skim = nil
		return nil, s.tooLong(t.limit)
	}
	line := t.long.join(piece)
	// Nearly every line is like this, and Trim costs more than the look.
	if n := len(line); n > 0 && line[0] > ' ' && line[n-1] > ' ' {
		return line, nil
	}
	if line = bytes.Trim(line, " \t\r"); len(line) == 0 {
		return nil, nil
	}
	return line, nil
}

// fill reads more into the buffer, or into a new one if there is no room.
func (t *lineReader) fill() {
	// The rest of the line moves to the new buffer. Most lines are shorter than a buffer, so few
	// bytes are copied; a long rest is set aside instead, and joined once at the end.
	if cap(t.buf)-len(t.buf) <= cap(t.buf)/8 { // less is not worth the call
		rest := t.buf[t.start:]
		t.size = max(t.size, minSlab)
		size := min(max(t.size, 2*len(rest)), slabSize)
		if t.long.size+len(rest) > slabSize/2 {
			t.long.add(rest)
			rest = nil
			size = 2 * slabSize // what a pipe holds
		}
		t.buf = append(make([]byte, 0, size), rest...)
		t.start, t.scanned = 0, len(t.buf)
	}
	if t.waits != nil {
		t.waits()
	}
	// A reader may return nothing and no error. As bufio does, this gives up after a while
	// rather than to loop forever.
	for range 100 {
		room := cap(t.buf) - len(t.buf)
		n, err := t.r.Read(t.buf[len(t.buf):cap(t.buf)])
		switch {
		case n == room:
			t.size = min(2*t.size, slabSize)
		case n < room/4:
			t.size = max(t.size/2, minSlab)
		}
		t.buf = t.buf[:len(t.buf)+n]
		t.err = err
		if n > 0 || err != nil {
			return
		}
	}
	t.err = io.ErrNoProgress
}

// more implements looker.
func (t *lineReader) more() bool { return t.start < len(t.buf) }

func (t *lineReader) beforeWait(f func()) { t.waits = f }

// promptBytes is how much a pipe takes at once when it is ready at all
// (PIPE_BUF); sockets have more room than that.
const promptBytes = 4096

// lineWriter writes lines, many with one write. The peer lets only one goroutine at a time write,
// so out needs no lock.
type lineWriter struct {
	w     io.Writer
	ready *readiness // nil if the writer cannot be asked whether it would block
	out   []byte     // kept between writes; messages that are longer than slabSize do not go through it
}

// prompts implements prompter.
func (t *lineWriter) prompts() bool { return t.ready != nil }

// prompt implements prompter. It writes no part of a line: the rest would have to wait for the other side.
func (t *lineWriter) prompt(messages [][]byte) (n int, err error) {
	t.out = t.out[:0]
	for _, m := range messages {
		// With their line feeds they must fit into what a pipe takes at once.
		if len(t.out)+len(m) >= promptBytes {
			break
		}
		t.out = append(append(t.out, m...), '\n')
		n++
	}
	written := false
	switch {
	case n == 0:
	case t.ready.atomic:
		written, err = t.ready.write(t.out)
	case t.ready.writable():
		written, err = true, t.flush()
	}
	if !written || err != nil {
		return 0, err
	}
	return n, nil
}

// Write writes each message and a line feed.
func (t *lineWriter) Write(_ context.Context, messages [][]byte) error {
	t.out = t.out[:0]
	for _, m := range messages {
		// Copying a long message costs more than a write of its own. What was gathered before it
		// must leave first.
		if len(m) > slabSize {
			if err := t.flush(); err != nil {
				return err
			}
			if err := writeAll(t.w, m); err != nil {
				return err
			}
		} else {
			t.out = append(t.out, m...)
		}
		t.out = append(t.out, '\n')
	}
	return t.flush()
}

// flush writes what was gathered.
func (t *lineWriter) flush() error {
	if len(t.out) == 0 {
		return nil
	}
	err := writeAll(t.w, t.out)
	t.out = t.out[:0]
	return err
}

// writeAll writes b. A writer that stops short without an error, against the
// contract of io.Writer, would leave half a message on the wire.
func writeAll(w io.Writer, b []byte) error {
	n, err := w.Write(b)
	if err == nil && n < len(b) {
		return io.ErrShortWrite
	}
	return err
}
