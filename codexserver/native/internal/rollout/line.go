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

// appendLine appends a line of the file to b.
func appendLine(b []byte, t protocol.RolloutType, payload func([]byte) ([]byte, error)) ([]byte, error) {
	b = append(b, `{"timestamp":"`...)
	b = time.Now().UTC().AppendFormat(b, timestampLayout)
	b = append(b, `","type":"`...)
	b = append(b, t...)
	b = append(b, `","payload":`...)
	b, err := payload(b)
	return append(b, "}\n"...), err
}

func appendJSON(b []byte, payload any) ([]byte, error) {
	raw, err := json.Marshal(payload, jsontext.AllowInvalidUTF8(true))
	return append(b, raw...), err
}
