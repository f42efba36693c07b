package shared

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// farewell is how long the server may take to answer the running calls after a signal.
const farewell = 2 * time.Second

// Relay copies the client's messages from in to the server, and the server's to out, until
// the server has closed the connection. It closes the connection. After the end of in the
// server answers the running calls. The same happens when ctx ends, but for a short time
// only. If the server ends first, Relay answers the open requests with an error, which it
// returns; the client never gets a part of a message.
//
// A read of in may still be going on when Relay returns.
func (c *Conn) Relay(ctx context.Context, in io.Reader, out io.Writer) error {
	defer c.Close()
	var open unanswered
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
	for _, id := range open.all() {
		_, err := fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q}}`+"\n", id, jsonrpc.CodeInternalError, ended)
		if err != nil {
			return nil // the client has gone
		}
	}
	select {
	case <-inputEnd:
		return nil
	case <-ctx.Done():
		return nil
	default:
		return ended
	}
}

// maxLine is the longest message that the server accepts, in bytes. It refuses a longer one without
// an id.
const maxLine = 64 << 20

// upload copies the client's messages until the end of in, and calls ended before the server
// learns of it.
func (c *Conn) upload(in io.Reader, open *unanswered, ended func()) {
	r := bufio.NewReaderSize(in, 16<<10)
	for line := []byte(nil); ; {
		piece, err := r.ReadSlice('\n')
		if len(line)+len(piece) <= maxLine {
			line = append(line, piece...)
		}
		if err == nil {
			open.sent(line)
			line = nil
		}
		if _, failed := c.UnixConn.Write(piece); failed != nil {
			// The server has ended. The client must not wait for somebody who reads.
			_, _ = io.Copy(io.Discard, in)
			return
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			ended()
			_ = c.CloseWrite()
			return
		}
	}
}

// download copies the server's messages, whole lines only, until the end of the
// connection. The error is that of out.
func (c *Conn) download(out io.Writer, open *unanswered) error {
	for {
		line, err := c.in.ReadBytes('\n')
		if err != nil {
			return nil
		}
		open.received(line)
		if _, err := out.Write(line); err != nil {
			return err
		}
	}
}

// unanswered has the ids of the client's requests that the server has not answered. It is
// safe for concurrent use. The zero value is ready.
type unanswered struct {
	mu  sync.Mutex
	ids map[jsonrpc.ID]bool
}

// message has the members of a message that [unanswered] needs.
type message struct {
	ID     *jsonrpc.ID    `json:"id"`
	Method *string        `json:"method"`
	Params jsontext.Value `json:"params"`
}

// read reads a line of JSON-RPC. What is not one message, such as a batch, has no members: the server
// refuses it in an answer without an id.
func read(line []byte, v any) (ok bool) {
	return json.Unmarshal(line, v, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) == nil
}

// sent records a line of the client.
func (u *unanswered) sent(line []byte) {
	var m message
	if !read(line, &m) || m.Method == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.ids == nil {
		u.ids = map[jsonrpc.ID]bool{}
	}
	var params struct {
		RequestID *jsonrpc.ID `json:"requestId"`
	}
	switch {
	case m.ID != nil:
		u.ids[*m.ID] = true
	case *m.Method == mcptypes.NotificationsCancelled.Name() && read(m.Params, &params) && params.RequestID != nil:
		delete(u.ids, *params.RequestID) // it needs no answer
	}
}

// received records a line of the server.
func (u *unanswered) received(line []byte) {
	var m message
	if read(line, &m) && m.ID != nil && m.Method == nil {
		u.mu.Lock()
		defer u.mu.Unlock()
		delete(u.ids, *m.ID)
	}
}

// all returns the ids of the requests without an answer.
func (u *unanswered) all() []jsonrpc.ID {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.SortedFunc(maps.Keys(u.ids), func(a, b jsonrpc.ID) int { return strings.Compare(a.String(), b.String()) })
}
