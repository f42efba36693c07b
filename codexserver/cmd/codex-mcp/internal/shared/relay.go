package shared

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/go-json-experiment/json"
)

// farewell is how long the server may take to answer the running calls after a signal.
const farewell = 2 * time.Second

// Relay copies the client's messages from in to the server, and the server's to out, until
// the server has closed the connection. It closes the connection. After the end of in the
// server answers the running calls. The same happens when ctx ends, but for a short time
// only. Relay answers the requests that are open then with an error. It returns that error if the
// server has ended first. The client never gets a part of a message.
//
// A read of in may still be going on when Relay returns.
func (c *Conn) Relay(ctx context.Context, in io.Reader, out io.Writer) error {
	defer c.Close()
	var open sync.Map // the ids of the client's requests that have no answer
	inputEnd := make(chan struct{})
	go c.upload(in, &open, func() { close(inputEnd) })
	stop := context.AfterFunc(ctx, func() {
		_ = c.CloseWrite()
		_ = c.SetReadDeadline(time.Now().Add(farewell))
	})
	defer stop()
	if err := c.download(out, &open); err != nil {
		return nil // the client has gone
	}
	ended := fmt.Errorf("the shared server (process %d) has ended; a new process of this program starts another one", c.pid)
	left := ctx.Err() != nil
	select {
	case <-inputEnd:
		left = true
	default:
	}
	if left { // the server closed the connection because of that, and may live
		ended = fmt.Errorf("the client left before the shared server (process %d) answered", c.pid)
	}
	for id := range open.Range {
		_, err := fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%v,"error":{"code":%d,"message":%q}}`+"\n", id, jsonrpc.CodeInternalError, ended)
		if err != nil {
			return nil // the client has gone
		}
	}
	if left {
		return nil
	}
	return ended
}

// upload copies the client's messages until the end of in, and calls ended before the server
// learns of it. It keeps the ids of requests in open.
func (c *Conn) upload(in io.Reader, open *sync.Map, ended func()) {
	for r := bufio.NewReader(in); ; {
		line, err := r.ReadBytes('\n')
		if err == nil {
			sent(open, line)
		}
		if _, failed := c.UnixConn.Write(line); failed != nil {
			// The server has ended. The client must not wait for somebody who reads.
			_, _ = io.Copy(io.Discard, in)
			return
		}
		if err != nil {
			ended()
			_ = c.CloseWrite()
			return
		}
	}
}

// sent keeps the id of a request of the client, and drops that of one which it cancels: that needs no answer.
func sent(open *sync.Map, line []byte) {
	m, _ := jsonrpc.Parse(line)
	var cancelled struct {
		RequestID jsonrpc.ID `json:"requestId"`
	}
	switch {
	case m.Method != "" && !m.ID.IsZero():
		open.Store(m.ID, nil)
	case m.Method == "notifications/cancelled" && json.Unmarshal(m.Params, &cancelled) == nil:
		open.Delete(cancelled.RequestID)
	}
}

// download copies the server's messages, whole lines only, until the end of the
// connection, and drops the ids of answered requests. The error is that of out.
func (c *Conn) download(out io.Writer, open *sync.Map) error {
	for {
		line, err := c.in.ReadBytes('\n')
		if err != nil {
			return nil
		}
		if m, _ := jsonrpc.Parse(line); m.Method == "" {
			open.Delete(m.ID)
		}
		if _, err := out.Write(line); err != nil {
			return err
		}
	}
}
