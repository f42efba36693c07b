package workers

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
)

// transport sends each request once, over the connection of its admission. In contrast to
// [http.Transport] it accepts an answer that the worker sends before it has read the whole
// request, also if the worker then closes the connection.
type transport struct{}

var errNotAdmitted = errors.New("the request was not admitted, or has been sent already")

const (
	// maxAnswerHeader limits the headers of an answer, in bytes.
	maxAnswerHeader = 1 << 20
	// maxHeads limits the answers to a request: those with a status of 1xx and the final
	// one.
	maxHeads = 5
)

// RoundTrip implements [http.RoundTripper].
func (transport) RoundTrip(r *http.Request) (*http.Response, error) {
	a, ok := r.Context().Value(admissionKey{}).(*admission)
	if !ok || a.conn == nil {
		return nil, errNotAdmitted
	}
	conn := a.conn
	a.conn = nil
	out := *r
	out.Close = true
	stop := context.AfterFunc(r.Context(), func() { conn.Close() })
	sent := make(chan error, 1)
	go func() { sent <- out.Write(conn) }()
	answer, err := readAnswer(conn, r)
	if err != nil {
		stop()
		conn.Close()
		return nil, errors.Join(err, <-sent, r.Context().Err())
	}
	answer.Body = &answerBody{answer.Body, conn, stop, sent}
	return answer, nil
}

// readAnswer reads the headers of the final answer. It skips answers with a status of 1xx.
func readAnswer(conn net.Conn, r *http.Request) (*http.Response, error) {
	limited := &io.LimitedReader{R: conn, N: maxAnswerHeader}
	in := bufio.NewReader(limited)
	for range maxHeads {
		answer, err := http.ReadResponse(in, r)
		if err != nil {
			return nil, err
		}
		if answer.StatusCode >= http.StatusOK {
			limited.N = math.MaxInt64
			return answer, nil
		}
	}
	return nil, fmt.Errorf("the worker sent %d answers with a status of 1xx and no final one", maxHeads)
}

// answerBody closes the connection when the answer is closed.
type answerBody struct {
	io.ReadCloser
	conn net.Conn
	stop func() bool
	sent <-chan error
}

// Close implements [io.Closer]. After it returns, the transport does not use the request.
func (b *answerBody) Close() error {
	b.stop()
	err := b.conn.Close()
	<-b.sent // an error if the worker did not read the whole request
	return err
}
