package workers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
)

// transport sends each request once, over the connection of its admission. In contrast to
// [http.Transport] it accepts an answer that the worker sends before it has read the whole
// request, also if the worker then closes the connection.
type transport struct{}

var (
	errNotAdmitted = errors.New("the request was not admitted, or has been sent already")
	// errUnwritten means that the worker got no part of the request.
	errUnwritten = errors.New("nothing was sent")
)

const (
	// maxAnswerHeader limits the headers of an answer, in bytes.
	maxAnswerHeader = 1 << 20
	// maxHeads limits the answers to a request: those with a status of 1xx and the final
	// one.
	maxHeads = 5
	// smallBody is the length of a body, in bytes, that the system keeps until the worker reads it.
	smallBody = 32 << 10
)

// RoundTrip implements [http.RoundTripper].
func (transport) RoundTrip(r *http.Request) (*http.Response, error) {
	a, ok := r.Context().Value(admissionKey{}).(*admission)
	if !ok || a.conn == nil {
		return nil, errNotAdmitted
	}
	conn := a.conn
	a.conn = nil
	stop := context.AfterFunc(r.Context(), func() { conn.Close() })
	sent := make(chan error, 1)
	send := func() { sent <- conn.send(r) }
	if r.ContentLength >= 0 && r.ContentLength <= smallBody { // the worker need not read it meanwhile
		send()
	} else {
		go send()
	}
	answer, err := conn.readAnswer(r)
	if err != nil {
		stop()
		conn.Close()
		err = errors.Join(err, <-sent, r.Context().Err())
		if !conn.wrote {
			err = errors.Join(errUnwritten, err)
		}
		return nil, err
	}
	answer.Body = &answerBody{ReadCloser: answer.Body, conn: conn, stop: stop, sent: sent, last: answer.Close}
	return answer, nil
}

// send sends a request.
func (c *connection) send(r *http.Request) error {
	c.wrote = false
	// Write would send the headers alone if it knew that it writes to a buffer.
	if err := r.Write(struct {
		io.Writer
		io.ByteWriter
	}{c.out, c.out}); err != nil {
		return err
	}
	return c.out.Flush()
}

// readAnswer reads the headers of the final answer. It skips answers with a status of 1xx.
func (c *connection) readAnswer(r *http.Request) (*http.Response, error) {
	c.limited.N = maxAnswerHeader
	for range maxHeads {
		answer, err := http.ReadResponse(c.in, r)
		if err != nil {
			return nil, err
		}
		if answer.StatusCode >= http.StatusOK {
			c.limited.N = math.MaxInt64
			return answer, nil
		}
	}
	return nil, fmt.Errorf("the worker sent %d answers with a status of 1xx and no final one", maxHeads)
}

// answerBody gives the connection back when the answer is closed.
type answerBody struct {
	io.ReadCloser
	conn *connection
	stop func() bool
	sent <-chan error
	last bool // the worker closes the connection
	over bool // the answer has been read to its end
}

// Read implements [io.Reader].
func (b *answerBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.over = b.over || errors.Is(err, io.EOF)
	return n, err
}

// Close implements [io.Closer]. After it returns, the transport does not use the request. It closes the
// connection unless the request was sent, and the answer read, to the end: what comes next would be for nobody.
func (b *answerBody) Close() error {
	if b.stop() && b.over && !b.last {
		select {
		case err := <-b.sent:
			if err == nil {
				return b.conn.keep()
			}
			return b.conn.Close()
		default: // the worker has not read the whole request
		}
	}
	err := b.conn.Close()
	<-b.sent // an error if the worker did not read the whole request
	return err
}
