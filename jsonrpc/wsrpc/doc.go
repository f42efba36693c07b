// Package wsrpc carries JSON-RPC over WebSocket, one message in one text frame, with
// github.com/coder/websocket.
//
//	peer ── message ──▶ New(conn) ── text frame ──▶ WebSocket
//
// The client:
//
//	conn, _, err := websocket.Dial(ctx, "ws://localhost:8080", nil)
//	if err != nil {
//		return err
//	}
//	peer := jsonrpc.NewPeer(wsrpc.New(conn), handler, nil)
//	err = peer.Run(ctx)
//
// The server, in an http.Handler; the connection lasts as long as the handler runs:
//
//	conn, err := websocket.Accept(w, r, nil)
//	if err != nil {
//		return // Accept has answered
//	}
//	err = jsonrpc.NewPeer(wsrpc.New(conn), handler, nil).Run(r.Context())
//
// It is a separate package so that package jsonrpc does not import WebSocket.
//
// # What is configured elsewhere
//
// The calls of websocket.Accept and websocket.Dial choose the origins that may connect,
// subprotocols, compression and keep-alive. By default Accept refuses other origins: keep
// that for everything that a browser can reach.
//
// # What can go wrong
//
//   - A close frame with status 1000 or 1001 ends the input, and Run returns nil. If
//     a connection ends without such a frame, Run returns io.ErrUnexpectedEOF.
//   - A WebSocket cannot be half closed. Answers that are not yet sent when the other
//     side closes are lost.
//   - A message longer than Options.MaxMessage ends the connection with status 1009,
//     because WebSocket cannot skip a message.
//   - A binary frame is answered with an invalid request, and text that is not JSON
//     with a parse error. The connection continues.
//
// # Where to go next
//
// Package jsonrpc explains peers, order, cancellation and limits.
package wsrpc
