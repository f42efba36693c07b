package mcp

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/codexmcp/codexmcp/codexserver/internal/mcptool"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/go-json-experiment/json/jsontext"
)

// sendToolEvent sends an event to the caller of a tool. The thread is "" before
// its conversation has begun.
func (ss *LegacySession) sendToolEvent(request jsonrpc.ID, thread string, e protocol.Event) {
	params, err := mcptool.EventParams(request, thread, e)
	ss.sendEvent(mcptool.EventMethod, params, err)
}

// sendListenerEvent sends an event to a listener of a conversation.
func (ss *LegacySession) sendListenerEvent(thread string, e protocol.Event) {
	b := append([]byte(`{"conversationId":`), quote(thread)...)
	b = append(append(b, `,"id":`...), quote(e.ID)...)
	b, err := protocol.AppendEvent(append(b, `,"msg":`...), e.Msg)
	ss.sendEvent("codex/event/"+e.Msg.EventType(), append(b, '}'), err)
}

// sendEvent sends an event, unless it could not be written.
func (ss *LegacySession) sendEvent(method string, params json.RawMessage, err error) {
	if err != nil {
		ss.log.Error("event not sent", "error", err)
		return
	}
	err = ss.peer.Notify(context.Background(), method, params)
	switch {
	case errors.Is(err, jsonrpc.ErrFull):
		ss.log.Error("the client does not read: the session ends", "waiting", ss.server.MaxUnread.End())
		ss.stop()
	case err != nil:
		ss.log.Debug("event not sent", "method", method, "error", err)
	}
}

// quote returns a JSON string. Invalid UTF-8 becomes U+FFFD.
func quote(s string) json.RawMessage {
	b, _ := jsontext.AppendQuote(nil, s) // the error reports invalid UTF-8
	return json.RawMessage(b)
}
