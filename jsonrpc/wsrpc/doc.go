// Package wsrpc carries JSON-RPC over WebSocket, one message in one text frame, with
// github.com/coder/websocket.
//
//	peer ── message ──▶ New(conn) ── text frame ──▶ WebSocket
//
// The side that dials:
//
//	conn, _, err := websocket.Dial(ctx, "ws://localhost:8080", nil)
//	if err != nil {
//		return err
//	}
//	peer := jsonrpc.NewPeer(wsrpc.New(conn), handler, nil)
//	err = peer.Run(ctx)
//
// and the side that accepts, in an http.Handler; the connection lives as long as the
// handler runs:
//
//	conn, err := websocket.Accept(w, r, nil)
//	if err != nil {
//		return // Accept has answered
//	}
//	err = jsonrpc.NewPeer(wsrpc.New(conn), handler, nil).Run(r.Context())
//
// It is a package of its own so that package jsonrpc needs no WebSocket.
//
// # What is settled elsewhere
//
// Which origins may connect, subprotocols, compression and keep-alive are settled when
// the connection is accepted or dialled, with that package. It refuses other origins by
// default: leave that on for whatever a browser can reach.
//
// # What can go wrong
//
//   - A close frame with status 1000 or 1001 is a clean end of input: Run
//     returns nil. A connection that ends without one is io.ErrUnexpectedEOF.
//   - A WebSocket cannot be half closed: answers still under way when the other
//     side closes are lost.
//   - A message longer than Options.MaxMessage ends the connection with status
//     1009, since WebSocket does not let one be skipped.
//   - A binary frame is answered with an invalid request, text that is not JSON
//     with a parse error; the connection lives on.
//
// # Where to go next
//
// Package jsonrpc explains peers, order, cancellation and limits.
package wsrpc
