package rollout

import (
	"time"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// timestampLayout is the layout of the timestamps in the lines.
const timestampLayout = "2006-01-02T15:04:05.000Z"

// Timestamp returns a time in the form of rollouts.
func Timestamp(t time.Time) string { return t.UTC().Format(timestampLayout) }

// usualLine is the room in bytes for a line.
const usualLine = 256

// lineOf returns a line of the file.
func lineOf(t protocol.RolloutType, payload any) (b []byte, err error) {
	b = append(make([]byte, 0, usualLine), `{"timestamp":"`...)
	b = time.Now().UTC().AppendFormat(b, timestampLayout)
	b = append(b, `","type":"`...)
	b = append(b, t...)
	b = append(b, `","payload":`...)
	switch payload := payload.(type) {
	case protocol.ResponseItem:
		b, err = protocol.AppendItem(b, payload)
	case protocol.EventMsg:
		b, err = protocol.AppendEvent(b, payload)
	default:
		var raw []byte
		raw, err = json.Marshal(payload, jsontext.AllowInvalidUTF8(true))
		b = append(b, raw...)
	}
	return append(b, "}\n"...), err
}
