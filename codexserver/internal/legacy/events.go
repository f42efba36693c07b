package legacy

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/go-json-experiment/json/jsontext"
)

// sendToolEvent sends an event to the caller of a tool. The thread is "" before
// its conversation has begun.
func (ss *Session) sendToolEvent(request jsonrpc.ID, thread string, e protocol.Event) {
	meta := append([]byte(`"_meta":{"requestId":`), request.String()...)
	if thread != "" {
		meta = append(append(meta, `,"threadId":`...), quote(thread)...)
	}
	ss.sendEvent("codex/event", append(meta, '}'), e)
}

// sendListenerEvent sends an event to a listener of a conversation.
func (ss *Session) sendListenerEvent(thread string, e protocol.Event) {
	id := append([]byte(`"conversationId":`), quote(thread)...)
	ss.sendEvent("codex/event/"+e.Msg.EventType(), id, e)
}

// sendEvent sends an event with a member more, if there is one.
func (ss *Session) sendEvent(method string, member []byte, e protocol.Event) {
	b := []byte{'{'}
	if len(member) > 0 {
		b = append(append(b, member...), ',')
	}
	b = append(append(b, `"id":`...), quote(e.ID)...)
	b, err := protocol.AppendEvent(append(b, `,"msg":`...), e.Msg)
	if err != nil {
		ss.log.Error("event not sent", "error", err)
		return
	}
	err = ss.peer.Notify(context.Background(), method, json.RawMessage(append(b, '}')))
	switch {
	case errors.Is(err, jsonrpc.ErrFull):
		ss.log.Error("the client does not read: the session ends", "waiting", unread(ss.server.MaxUnread).end())
		ss.stop()
	case err != nil:
		ss.log.Debug("event not sent", "method", method, "error", err)
	}
}

// quote writes a string; bytes that are not UTF-8 become U+FFFD.
func quote(s string) json.RawMessage {
	b, _ := jsontext.AppendQuote(nil, s) // the error is about those bytes
	return json.RawMessage(b)
}
