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

	odd   []byte  // the last event that was no part of an answer, and may say why
	queue []event // of which at were read
	at    int
}

// event returns the next event, io.EOF at the end of the stream.
func (s *stream) event() (event, error) {
	for s.at == len(s.queue) {
		e, err := s.next()
		if err == nil {
			err = s.read(e)
		}
		if err != nil {
			return event{}, err
		}
	}
	s.at++
	return s.queue[s.at-1], nil
}

// read queues the objects of an event: some servers leave out the empty line between several ones.
func (s *stream) read(e event) error {
	s.queue, s.at, s.parser.kept = s.queue[:0], 0, s.parser.kept[:0]
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
		switch last := len(rest) == 0; {
		case v.kind() == '{':
			s.queue = append(s.queue, event{value: v, title: e.title, open: e.open && last, body: e.body && len(v.raw) == len(whole)})
		case bytes.EqualFold(bytes.Trim(said, "\" \t\r"), []byte("[DONE]")):
			s.queue = append(s.queue, event{done: true})
		case string(e.title) == "error", e.body:
			return s.failure(data)
		case data[0] != '{':
			s.odd = slices.Clone(data)
			return nil
		case e.open:
			return nil
		default:
			return broken("event cannot be read: " + shorten(string(data)))
		}
		data = rest
	}
	return nil
}

// closed returns the error for a stream that ended with err before the answer was whole.
func (s *stream) closed(err error, reason string) error {
	if !errors.Is(err, io.EOF) {
		return err
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
