package shared

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/codexmcp/codexmcp/jsonrpc"
)

// farewell is how long the server may take to answer the running calls after a signal.
const farewell = 2 * time.Second

// EndedError reports that the server ended before the client did.
type EndedError struct {
	// PID is the server's process.
	PID int
}

// Error implements error.
func (e *EndedError) Error() string {
	return fmt.Sprintf("the shared server (process %d) has ended; a new process of this program starts another one", e.PID)
}

// Relay copies the client's messages from in to the server, and the server's to out, until
// the server has closed the connection. It closes the connection. After the end of in the
// server answers the running calls. The same happens when ctx ends, but for a short time
// only. If the server ends first, Relay answers the open requests with an error and returns
// an [*EndedError]; the client never gets a part of a message.
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
	for _, id := range open.all() {
		_, err := fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q}}`+"\n", id, jsonrpc.CodeInternalError, &EndedError{c.pid})
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
		return &EndedError{c.pid}
	}
}

// upload copies the client's messages until the end of in, and calls ended before the server
// learns of it.
func (c *Conn) upload(in io.Reader, open *unanswered, ended func()) {
	messages := lines{each: open.sent, most: maxLine}
	for b := make([]byte, 16<<10); ; {
		n, err := in.Read(b)
		messages.read(b[:n])
		if _, failed := c.UnixConn.Write(b[:n]); failed != nil {
			// The server has ended. The client's messages are read on, since they need an answer too.
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

// download copies the server's messages, whole lines only, until the end of the
// connection. The error is that of out.
func (c *Conn) download(out io.Writer, open *unanswered) error {
	var long []byte // a line that does not fit into the reader's buffer
	for {
		line, err := c.in.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			long = append(long, line...)
			continue
		}
		if err != nil {
			return nil
		}
		if len(long) > 0 {
			line = append(long, line...)
			long = nil
		}
		open.received(line)
		if _, err := out.Write(line); err != nil {
			return err
		}
	}
}
