package workers

import (
	"bufio"
	"context"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
)

// transport sends each request over the connection of its passage, once. Unlike
// [http.Transport] it takes an answer that comes before the worker has read the whole
// request, and whose connection the worker then closes.
type transport struct{}

var errNoPassage = errors.New("a request that was not admitted, or is sent again")

const (
	// maxAnswerHeader bounds the headers of an answer, in bytes.
	maxAnswerHeader = 1 << 20
	// maxEarlier is how many answers with a status of 1xx may come before the answer.
	maxEarlier = 5
)

// RoundTrip implements [http.RoundTripper].
func (transport) RoundTrip(r *http.Request) (*http.Response, error) {
	p, ok := r.Context().Value(passageKey{}).(*passage)
	if !ok || p.conn == nil {
		return nil, errNoPassage
	}
	conn := p.conn
	p.conn = nil
	last := *r
	last.Close = true
	stop := context.AfterFunc(r.Context(), func() { conn.Close() })
	sent := make(chan error, 1)
	go func() { sent <- last.Write(conn) }()
	answer, err := readAnswer(conn, r)
	if err != nil {
		stop()
		conn.Close()
		return nil, errors.Join(err, <-sent, r.Context().Err())
	}
	answer.Body = &answerBody{answer.Body, conn, stop, sent}
	return answer, nil
}

// readAnswer reads the headers of an answer.
func readAnswer(conn net.Conn, r *http.Request) (*http.Response, error) {
	limited := &io.LimitedReader{R: conn, N: maxAnswerHeader}
	in := bufio.NewReader(limited)
	for range maxEarlier {
		answer, err := http.ReadResponse(in, r)
		if err != nil {
			return nil, err
		}
		if answer.StatusCode >= http.StatusOK {
			limited.N = math.MaxInt64
			return answer, nil
		}
	}
	return nil, errors.New("the worker does not answer")
}

// answerBody ends the connection with the answer.
type answerBody struct {
	io.ReadCloser
	conn net.Conn
	stop func() bool
	sent <-chan error
}

// Close implements [io.Closer]. The request is not read any more after it returns.
func (b *answerBody) Close() error {
	b.stop()
	err := b.conn.Close()
	<-b.sent // fails where the worker has not read to the end
	return err
}
