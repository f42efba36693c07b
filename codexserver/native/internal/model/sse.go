package model

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
)

// maxEvent is how many bytes of data an event may have.
const maxEvent = 16 << 20

// sse reads the data of server-sent events (HTML standard, section 9.2.6). It ignores the
// other fields of an event, which only repeat parts of the data.
type sse struct {
	r    *bufio.Reader
	left int64 // bytes that may still be read
	max  int64
	data []byte
	line []byte
	cr   bool // the last line ended with CR: an LF now belongs to it
}

func newSSE(r io.Reader, maxBytes int64) *sse {
	return &sse{r: bufio.NewReaderSize(r, 4<<10), left: maxBytes, max: maxBytes}
}

// next returns the data of the next event. It is valid until the next call. After the last
// whole event the error is io.EOF; an incomplete event is dropped.
func (s *sse) next() ([]byte, error) {
	s.data = s.data[:0]
	seen := false
	for {
		line, err := s.readLine()
		if err != nil {
			return nil, err
		}
		if len(line) == 0 {
			if seen {
				return bytes.TrimSuffix(s.data, []byte("\n")), nil
			}
			continue
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		if string(field) != "data" {
			continue
		}
		seen = true
		s.data = append(s.data, bytes.TrimPrefix(value, []byte(" "))...)
		s.data = append(s.data, '\n')
		if len(s.data) > maxEvent {
			return nil, tooLong("one event", maxEvent)
		}
	}
}

// readLine returns a line without its end: LF, CR LF or CR.
func (s *sse) readLine() ([]byte, error) {
	s.line = s.line[:0]
	for {
		if s.left <= 0 {
			return nil, tooLong("the response", s.max)
		}
		// Read only what is buffered, so that a complete line does not wait for more.
		if _, err := s.r.Peek(1); err != nil {
			if errors.Is(err, io.EOF) {
				return nil, io.EOF
			}
			return nil, &StreamError{Reason: err.Error()}
		}
		chunk, _ := s.r.Peek(s.r.Buffered())
		if s.cr {
			s.cr = false
			if chunk[0] == '\n' {
				s.discard(1)
				continue
			}
		}
		end := bytes.IndexByte(chunk, '\n')
		if cr := bytes.IndexByte(chunk[:cmp.Or(end+1, len(chunk))], '\r'); cr >= 0 {
			end = cr
		}
		if end < 0 {
			s.line = append(s.line, chunk...)
			s.discard(len(chunk))
			if len(s.line) > maxEvent {
				return nil, tooLong("one event", maxEvent)
			}
			continue
		}
		s.line = append(s.line, chunk[:end]...)
		s.cr = chunk[end] == '\r'
		s.discard(end + 1)
		return bytes.TrimPrefix(s.line, []byte("\ufeff")), nil
	}
}

func (s *sse) discard(n int) {
	s.left -= int64(n)
	_, _ = s.r.Discard(n) // n bytes are buffered
}

func tooLong(what string, limit int64) error {
	return &LimitError{What: fmt.Sprintf("%s has more than %d bytes", what, limit)}
}
