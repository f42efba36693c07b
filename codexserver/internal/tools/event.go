package tools

import (
	"encoding/json"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// EventMethod is the notification that sends the events of a turn to the caller of a tool.
const EventMethod = "codex/event"

// EventParams returns the params of the notification [EventMethod]. The request is the zero
// ID for an event that no call waits for. The thread is "" before it has begun.
func EventParams(request jsonrpc.ID, thread string, e protocol.Event) (json.RawMessage, error) {
	b := append(make([]byte, 0, 256), '{') // room for a delta
	if request != (jsonrpc.ID{}) {
		b = append(append(b, `"_meta":{"requestId":`...), request.String()...)
		if thread != "" {
			b = quote(append(b, `,"threadId":`...), thread)
		}
		b = append(b, `},`...)
	}
	b = quote(append(b, `"id":`...), e.ID)
	b, err := protocol.AppendEvent(append(b, `,"msg":`...), e.Msg)
	return append(b, '}'), err
}
