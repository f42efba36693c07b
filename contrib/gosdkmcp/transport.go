package gosdkmcp

import (
	"context"
	"errors"
	"io"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Transport is an [mcp.Transport] to a server in the same process. Each connection
// is a session of the server.
type Transport struct {
	// Server must be set.
	Server *codexserver.Server
}

// Connect implements [mcp.Transport]. The session ends when the connection is closed, and
// Close waits for its end. The end of ctx does not end the session.
func (t *Transport) Connect(ctx context.Context) (mcp.Connection, error) {
	if t.Server == nil {
		return nil, errors.New("gosdkmcp: Transport.Server is nil")
	}
	fromClient, toServer := io.Pipe()
	fromServer, toClient := io.Pipe()
	s := &session{PipeWriter: toServer, ended: make(chan struct{})}
	go func() {
		defer close(s.ended)
		s.err = t.Server.Serve(context.WithoutCancel(ctx), jsonrpc.Lines(fromClient, toClient, nil))
		fromClient.Close() // later writes of the client fail
		toClient.Close()
	}()
	transport := mcp.IOTransport{Reader: fromServer, Writer: s, MaxLineLength: -1}
	return transport.Connect(ctx)
}

// session is the client's end of a session.
type session struct {
	*io.PipeWriter
	ended chan struct{}
	err   error // of the session, set before ended is closed
}

// Close ends the input of the session and waits for the session's end.
func (s *session) Close() error {
	err := s.PipeWriter.Close()
	<-s.ended
	return errors.Join(err, s.err)
}
