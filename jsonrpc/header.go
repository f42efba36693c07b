package jsonrpc

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Header returns a transport of the base protocol of LSP: each message follows a header with the
// field Content-Length. Other fields are ignored. A header that cannot be read ends the
// connection. Close closes c, if any.
func Header(r io.Reader, w io.Writer, c io.Closer) Transport {
	return &header{r: bufio.NewReaderSize(r, slabSize), w: w, c: c}
}

// header is both directions, as lines is: reading uses r, writing w and out.
type header struct {
	r     *bufio.Reader
	w     io.Writer
	c     io.Closer
	limit int
	out   []byte
}

// SetReadLimit bounds the length of a message.
func (t *header) SetReadLimit(n int) { t.limit = n }

func (t *header) Close() error {
	if t.c == nil {
		return nil
	}
	return t.c.Close()
}

// maxHeader bounds the fields before one message, in lines.
const maxHeader = 64

var (
	errHeader   = errors.New("malformed header")
	errNoLength = errors.New("header without Content-Length")
)

// Read returns the next message. One that is too long is skipped: its length says where the next
// one starts.
func (t *header) Read(context.Context) ([]byte, error) {
	n, err := t.readHeader()
	if err != nil {
		return nil, err
	}
	if t.limit > 0 && n > t.limit {
		var s skimmer
		if _, err := io.CopyN(&s, t.r, int64(n)); err != nil {
			return nil, noEOF(err)
		}
		return nil, s.tooLong(t.limit)
	}
	// n is not trusted for more memory than arrives: a header of a few bytes could claim the whole limit.
	var b bytes.Buffer
	b.Grow(min(n, slabSize) + bytes.MinRead)
	_, err = io.CopyN(&b, t.r, int64(n))
	return b.Bytes(), noEOF(err)
}

// noEOF is for an end in the middle of a message, which is not a clean one.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// readHeader returns the length of the message that follows. Only an end before the first byte of
// a header is a clean one. Two lengths are a fault: which of them counts would be a guess.
func (t *header) readHeader() (int, error) {
	n := -1
	for i := range maxHeader {
		// The buffer bounds a line, and maxHeader their number: a header cannot take more memory.
		line, err := t.r.ReadSlice('\n')
		switch {
		case errors.Is(err, io.EOF) && i == 0 && len(line) == 0:
			return 0, io.EOF
		case err != nil:
			return 0, noEOF(err)
		}
		s := strings.TrimRight(string(line), "\r\n")
		if s == "" {
			if n < 0 {
				return 0, errNoLength
			}
			return n, nil
		}
		name, value, ok := strings.Cut(s, ":")
		if !ok {
			return 0, fmt.Errorf("%w: %.40q", errHeader, s)
		}
		if strings.EqualFold(name, "Content-Length") {
			// 31 bits, so that it is an int on every system.
			v, err := strconv.ParseUint(strings.TrimSpace(value), 10, 31)
			if err != nil || n >= 0 {
				return 0, fmt.Errorf("%w: %.40q", errHeader, s)
			}
			n = int(v)
		}
	}
	return 0, fmt.Errorf("%w: more than %d lines", errHeader, maxHeader)
}

// Write writes each message with its header, all with one write.
func (t *header) Write(_ context.Context, messages [][]byte) error {
	t.out = t.out[:0]
	for _, m := range messages {
		t.out = append(t.out, "Content-Length: "...)
		t.out = strconv.AppendInt(t.out, int64(len(m)), 10)
		t.out = append(append(t.out, "\r\n\r\n"...), m...)
	}
	err := writeAll(t.w, t.out)
	// An idle peer must not keep the memory of its longest message.
	if cap(t.out) > 4*maxPooled {
		t.out = nil
	}
	return err
}
