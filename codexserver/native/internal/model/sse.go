package model

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// maxEvent is how many bytes of data an event may have.
const maxEvent = 16 << 20

// sse reads server-sent events (HTML standard, section 9.2.6). It ignores the fields of an event but
// its name and its data.
type sse struct {
	lines   *bufio.Scanner
	left    *io.LimitedReader
	max     int64 // bytes of the response
	cr      bool  // the last line ended with CR: an LF now belongs to it
	scanned int   // bytes of the line that have no end
	any     bool  // an event has come
	name    []byte
	data    []byte
	rest    []byte // lines that are no fields, such as those of a body that is no event stream
	hold    func(bytes int) error
}

// event is an event. It is valid until the next one is read.
type event struct {
	// title is the event's name, which is often empty.
	title, data []byte
	// open is true if the stream ended before the event's empty line, so that a part of it may be missing.
	open bool
	// body is true if the data is the body of a response that has no events.
	body bool
	// value is the object that the data is, unless the data is [DONE].
	value
	done bool
}

// newSSE reads a response of at most so many bytes. Hold takes room for what it has of an event.
func newSSE(r io.Reader, maxBytes int64, hold func(bytes int) error) *sse {
	left := &io.LimitedReader{R: r, N: maxBytes}
	s := &sse{lines: bufio.NewScanner(left), left: left, max: maxBytes, hold: hold}
	s.lines.Buffer(make([]byte, 4<<10), maxEvent)
	s.lines.Split(s.line)
	return s
}

// line is the [bufio.SplitFunc] for lines that end with LF, CR LF or CR.
func (s *sse) line(data []byte, end bool) (advance int, line []byte, err error) {
	if err := s.hold(len(data) + len(s.data) + len(s.rest)); err != nil {
		return 0, nil, err
	}
	begin := 0
	if s.cr && len(data) > 0 && data[0] == '\n' {
		begin = 1
	}
	from := max(s.scanned, begin)
	to := bytes.IndexByte(data[from:], '\n')
	if to < 0 {
		to = len(data) - from
	}
	if cr := bytes.IndexByte(data[from:from+to], '\r'); cr >= 0 {
		to = cr
	}
	switch to += from; {
	case to < len(data):
		s.cr, s.scanned = data[to] == '\r', 0
		return to + 1, data[begin:to], nil
	case !end:
		s.scanned = to
		return 0, nil, nil
	}
	if s.scanned = 0; to == begin {
		return 0, nil, nil
	}
	return to, data[begin:], nil
}

// next returns the next event that has data. After the last one the error is io.EOF.
func (s *sse) next() (event, error) {
	s.data, s.name = s.data[:0], s.name[:0]
	for s.lines.Scan() {
		line := bytes.TrimPrefix(s.lines.Bytes(), []byte("\ufeff"))
		if len(line) == 0 {
			if len(s.data) > 0 {
				s.any = true
				return event{title: s.name, data: s.data}, nil
			}
			s.name = s.name[:0]
		}
		if err := s.field(line); err != nil {
			return event{}, err
		}
	}
	_, full := errors.AsType[*LimitError](s.lines.Err())
	switch err := s.lines.Err(); {
	case full:
		return event{}, err
	case errors.Is(err, bufio.ErrTooLong):
		return event{}, tooMuch("one event", maxEvent, "bytes")
	case s.left.N <= 0:
		return event{}, tooMuch("the response", s.max, "bytes")
	case err != nil:
		return event{}, broken(err.Error())
	}
	if data := s.data; len(data) > 0 {
		s.any, s.data = true, nil
		return event{title: s.name, data: data, open: true}, nil
	}
	if rest := bytes.TrimSpace(s.rest); len(rest) > 0 {
		s.rest = nil
		return event{data: rest, open: true, body: !s.any}, nil
	}
	return event{}, io.EOF
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
		return tooMuch("one event", maxEvent, "bytes")
	}
	return nil
}

func tooMuch(what string, limit int64, of string) error {
	return &LimitError{What: fmt.Sprintf("%s has more than %d %s", what, limit, of)}
}
