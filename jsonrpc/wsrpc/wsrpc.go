package wsrpc

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"

	"github.com/coder/websocket"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// New returns a transport over an open connection, which belongs to the
// transport from then on.
func New(conn *websocket.Conn) jsonrpc.Transport { return &transport{conn: conn} }

// transport has no state of its own: a frame is a message, and the connection does the rest.
type transport struct{ conn *websocket.Conn }

// SetReadLimit bounds the length of a message. WebSocket does not let one be
// skipped: a longer one ends the connection with status 1009.
func (t *transport) SetReadLimit(bytes int) { t.conn.SetReadLimit(int64(bytes)) }

// Read returns the next text frame. Only a close frame with a status of an orderly end is the end of
// the input; a connection that is just cut may have lost messages.
func (t *transport) Read(ctx context.Context) ([]byte, error) {
	kind, msg, err := t.conn.Read(ctx)
	if err != nil {
		switch websocket.CloseStatus(err) {
		case websocket.StatusNormalClosure, websocket.StatusGoingAway:
			return nil, io.EOF
		}
		if errors.Is(err, io.EOF) { // without a close frame, so not a clean end
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	// An error of this type concerns one message: the connection lives on.
	if kind != websocket.MessageText {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "a message is a text frame")
	}
	return msg, nil
}

// maxFrame is the length of a frame. Codex's app-server ends a connection at a frame of more
// than 16 MiB, and takes longer messages in several frames.
const maxFrame = 8 << 20

// Write sends each message. WebSocket has no way to send several at once.
func (t *transport) Write(ctx context.Context, messages [][]byte) error {
	for _, m := range messages {
		if err := t.send(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

func (t *transport) send(ctx context.Context, m []byte) error {
	if len(m) <= maxFrame {
		return t.conn.Write(ctx, websocket.MessageText, m)
	}
	w, err := t.conn.Writer(ctx, websocket.MessageText)
	if err != nil {
		return err
	}
	for part := range slices.Chunk(m, maxFrame) {
		if _, err := w.Write(part); err != nil {
			return errors.Join(err, w.Close())
		}
	}
	return w.Close()
}

// Close sends a close frame and, whatever comes back, closes the connection.
func (t *transport) Close() error {
	err := t.conn.Close(websocket.StatusNormalClosure, "")
	if websocket.CloseStatus(err) != -1 || errors.Is(err, net.ErrClosed) || errors.Is(err, io.EOF) {
		return nil // the other side has closed first
	}
	return err
}
