package model

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"slices"
)

// stream is an incoming response.
type stream struct {
	next    func() (event, error) // io.EOF at the end
	parser  parser
	emit    func(Event)
	failure func(said []byte) error // the error for what the provider said
	hide    func(string) string     // removes secrets from the provider's words
	header  http.Header

	odd []byte // the last event that was no part of an answer, and may say why
	err error  // that ended the stream, io.EOF at its end
}

// events yields the objects of the stream until it ends, each of which is valid until the next one. Some servers leave
// out the empty line between several ones.
func (s *stream) events(yield func(event) bool) {
	for s.err == nil {
		var e event
		if e, s.err = s.next(); s.err == nil && !s.objects(e, yield) {
			return
		}
	}
}

// objects yields the objects of an event. It returns false if no more are wanted.
func (s *stream) objects(e event, yield func(event) bool) bool {
	whole := bytes.TrimSpace(e.data)
	for data := whole; len(data) > 0; {
		v, rest, ok := s.parser.parse(data)
		if !ok && data[0] == '{' {
			if mended := withoutNaN(data); !bytes.Equal(mended, data) {
				data = mended
				continue
			}
		}
		said := v.raw
		if !ok {
			said, rest, _ = bytes.Cut(data, []byte("\n"))
		}
		one := event{value: v, title: e.title, open: e.open && len(rest) == 0, body: e.body && len(v.raw) == len(whole)}
		switch {
		case v.kind() == '{':
		case bytes.EqualFold(bytes.Trim(said, "\" \t\r"), []byte("[DONE]")):
			one = event{done: true}
		case string(e.title) == "error", e.body:
			s.err = s.failure(data)
			return false
		case data[0] != '{':
			s.odd = slices.Clone(data)
			return true
		case e.open:
			return true
		default:
			s.err = broken("event cannot be read: " + shorten(string(data)))
			return false
		}
		if !yield(one) {
			return false
		}
		data = rest
	}
	return true
}

// closed returns the error for a stream that ended before the answer was whole.
func (s *stream) closed(reason string) error {
	if !errors.Is(s.err, io.EOF) {
		return s.err
	}
	if said := refusalOf(s.odd); len(said.words) > 0 {
		return s.failure(s.odd)
	}
	return broken(reason)
}

// trouble returns the error in an event that is no part of an answer, nil if it is none.
func (s *stream) trouble(e event) error {
	said := refusalOf(e.raw)
	if said.explicit || string(e.title) == "error" || e.body {
		return s.failure(e.raw)
	}
	if len(said.words) > 0 {
		s.odd = slices.Clone(e.raw)
	}
	return nil
}

func isLimit(err error) bool {
	_, ok := errors.AsType[*LimitError](err)
	return ok
}
