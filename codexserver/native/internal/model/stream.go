package model

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"net/http"
	"slices"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/stack"
)

// attempt is a request in a form, and its answer.
type attempt struct {
	client *Client
	form   form
	wire   wire
	req    *Request
	body   func() ([]byte, error)
	begun  bool  // the provider has begun to answer, or no other form is wanted
	other  *form // that the provider may take after it has refused this one

	held   held
	report func(protocol.EventMsg)
	header http.Header           // of the answer
	next   func() (event, error) // io.EOF at the end
	parser parser
	odd    []byte // the last event that was no part of an answer, and may say why
	err    error  // that ended the stream, io.EOF at its end
}

// encode returns the body of the request.
func (a *attempt) encode() (body []byte, err error) {
	stack.Apart(func() { body, err = a.wire.body(a.req) })
	return body, err
}

// refused returns the error for a refusal with a status, 0 inside a stream.
func (a *attempt) refused(status int, h http.Header, said []byte) error {
	err := a.client.refused(status, h, said)
	later, _ := errors.AsType[*ProviderError](err)
	often := later != nil && later.Again && later.Elsewhere // it is about no form
	if !a.begun && !often && !errors.Is(err, ErrContextWindow) {
		a.other = a.otherForm(cmp.Or(status, http.StatusBadRequest), string(said))
	}
	return err
}

// failure returns the error for what the provider said in the stream.
func (a *attempt) failure(said []byte) error { return a.refused(0, nil, said) }

func (a *attempt) emit(m protocol.EventMsg) {
	if _, limits := m.(protocol.TokenCount); !limits {
		a.begun = true
	}
	a.report(m)
}

// events yields the objects of the stream until it ends, each of which is valid until the next one. Some servers leave
// out the empty line between several.
func (a *attempt) events(yield func(event) bool) {
	for a.err == nil {
		var e event
		if e, a.err = a.next(); a.err == nil && !a.objects(e, yield) {
			return
		}
	}
}

// objects yields the objects of an event. It returns false if no more are wanted.
func (a *attempt) objects(e event, yield func(event) bool) bool {
	whole := bytes.TrimSpace(e.data)
	for data := whole; len(data) > 0; {
		v, rest, ok := a.parser.parse(data)
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
			a.err = a.failure(data)
			return false
		case data[0] != '{':
			a.odd = slices.Clone(data)
			return true
		case e.open:
			return true
		default:
			a.err = broken("event cannot be read: " + shorten(string(data)))
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
func (a *attempt) closed(reason string) error {
	if !errors.Is(a.err, io.EOF) {
		return a.err
	}
	if said := refusalOf(a.odd); len(said.words) > 0 {
		return a.failure(a.odd)
	}
	return broken(reason)
}

// trouble returns the error in an event that is no part of an answer, nil if it is none.
func (a *attempt) trouble(e event) error {
	said := refusalOf(e.raw)
	if said.explicit || string(e.title) == "error" || e.body {
		return a.failure(e.raw)
	}
	if len(said.words) > 0 {
		a.odd = slices.Clone(e.raw)
	}
	return nil
}
