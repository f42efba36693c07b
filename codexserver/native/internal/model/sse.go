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

// sse reads server-sent events (HTML standard, section 9.2.6). It ignores the fields of an event but
// its name and its data.
type sse struct {
	r    *bufio.Reader
	left int64 // bytes that may still be read
	max  int64
	any  bool // an event has come
	name []byte
	data []byte
	rest []byte // lines that are no fields, such as those of a body that is no event stream
	line []byte
	cr   bool // the last line ended with CR: an LF now belongs to it
}

// sseEvent is an event. It is valid until the next one is read.
type sseEvent struct {
	name, data []byte
	// open is true if the stream ended before the event's empty line, so that a part of it may be missing.
	open bool
	// body is true if the data is the body of a response that has no events.
	body bool
}

func newSSE(r io.Reader, maxBytes int64) *sse {
	return &sse{r: bufio.NewReaderSize(r, 4<<10), left: maxBytes, max: maxBytes}
}

// next returns the next event that has data. After the last one the error is io.EOF.
func (s *sse) next() (sseEvent, error) {
	s.data, s.name = s.data[:0], s.name[:0]
	for {
		line, err := s.readLine()
		if err != nil {
			return s.last(err)
		}
		if len(line) == 0 {
			if len(s.data) > 0 {
				s.any = true
				return sseEvent{name: s.name, data: s.data}, nil
			}
			s.name = s.name[:0]
		}
		if err := s.field(line); err != nil {
			return sseEvent{}, err
		}
	}
}

// field adds a line to the event.
func (s *sse) field(line []byte) error {
	field, value, _ := bytes.Cut(bytes.TrimLeft(line, " \t"), []byte(":"))
	switch string(field) {
	case "data":
		value = bytes.TrimSpace(value)
		for bytes.HasPrefix(value, []byte("data:")) { // an event in an event, from a proxy
			value = bytes.TrimSpace(value[len("data:"):])
		}
		if len(s.data) > 0 && len(value) > 0 {
			s.data = append(s.data, '\n')
		}
		s.data = append(s.data, value...)
	case "event":
		s.name = append(s.name[:0], bytes.TrimSpace(value)...)
	case "", "id", "retry": // the end of the event, or a comment
	default:
		s.rest = append(append(s.rest, line...), '\n')
	}
	if len(s.data)+len(s.rest) > maxEvent {
		return tooLong("one event", maxEvent)
	}
	return nil
}

// last returns what has come without an end when the stream ends with err.
func (s *sse) last(err error) (sseEvent, error) {
	line := s.line
	s.line = nil
	if !errors.Is(err, io.EOF) {
		return sseEvent{}, err
	}
	if line = bytes.TrimPrefix(line, []byte("\ufeff")); len(line) > 0 {
		if err := s.field(line); err != nil {
			return sseEvent{}, err
		}
	}
	if data := s.data; len(data) > 0 {
		s.any, s.data = true, nil
		return sseEvent{name: s.name, data: data, open: true}, nil
	}
	if rest := bytes.TrimSpace(s.rest); len(rest) > 0 {
		s.rest = nil
		return sseEvent{data: rest, open: true, body: !s.any}, nil
	}
	return sseEvent{}, err
}

// readLine returns a line without its end: LF, CR LF or CR. With an error, a line has begun in s.line.
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
