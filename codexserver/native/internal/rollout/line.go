package rollout

import (
	"fmt"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// timestampLayout is that of the timestamps inside the file.
const timestampLayout = "2006-01-02T15:04:05.000Z"

// Timestamp writes a time as rollouts do.
func Timestamp(t time.Time) string { return t.UTC().Format(timestampLayout) }

// LineError reports a line that has no form in JSON. It alone is lost.
type LineError struct {
	// Type is what the line is.
	Type protocol.RolloutType
	// Err is what is wrong with it.
	Err error
}

// Error implements error.
func (e *LineError) Error() string { return fmt.Sprintf("rollout: %s: %v", e.Type, e.Err) }

// Unwrap returns Err.
func (e *LineError) Unwrap() error { return e.Err }

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

func metaLine(meta protocol.SessionMeta) ([]byte, error) {
	return appendLine(nil, protocol.RolloutSessionMeta, func(b []byte) ([]byte, error) { return appendJSON(b, meta) })
}

func appendJSON(b []byte, payload any) ([]byte, error) {
	raw, err := json.Marshal(payload, jsontext.AllowInvalidUTF8(true))
	return append(b, raw...), err
}
