package shared

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"
)

// farewell is how long the server may take to answer the running calls after a signal.
const farewell = 2 * time.Second

// Relay copies the client's messages from in to the server, and the server's to out, until
// the server has closed the connection. It closes the connection. After the end of in the
// server answers the running calls. The same happens when ctx ends, but for a short time
// only. Relay returns an error if the server has ended first; to the client it is then as if
// its own server had been killed. The client never gets a part of a message.
//
// A read of in may still be going on when Relay returns.
func (c *Conn) Relay(ctx context.Context, in io.Reader, out io.Writer) error {
	defer c.Close()
	var left atomic.Bool // the client has gone before the server
	go func() {
		_, err := io.Copy(c.UnixConn, in)
		if _, gone := errors.AsType[*net.OpError](err); !gone { // it is the end of in
			left.Store(true)
			_ = c.CloseWrite()
		}
	}()
	defer context.AfterFunc(ctx, func() {
		left.Store(true)
		_ = c.CloseWrite()
		_ = c.SetReadDeadline(time.Now().Add(farewell))
	})()
	for {
		line, err := c.in.ReadBytes('\n')
		if err != nil {
			break
		}
		if _, err := out.Write(line); err != nil {
			return nil // the client has gone
		}
	}
	if left.Load() {
		return nil
	}
	return fmt.Errorf("the shared server (process %d) has ended; a new process of this program starts another one",
		c.pid)
}
