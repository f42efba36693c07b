package rollout

import (
	"fmt"
	"io"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/regularfile"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/go-json-experiment/json"
)

// maxTail is how much of the end of a rollout is searched, in bytes.
const maxTail = 1 << 20

// RateLimits returns the limits that the provider reported last in a rollout, and when.
// It returns nil when the end of the rollout has none.
func RateLimits(path string) (limits *protocol.RateLimits, told time.Time, err error) {
	f, err := regularfile.Open(path)
	if err != nil {
		return nil, told, fmt.Errorf("rollout: %w", err)
	}
	defer f.Close()
	if err := f.SeekTail(maxTail); err != nil { // into a line, which is skipped
		return nil, told, fmt.Errorf("rollout: %w", err)
	}
	err = eachLine(io.LimitReader(f, maxTail), func(line []byte) {
		var l protocol.RolloutLine
		if json.Unmarshal(line, &l) != nil || l.Type != protocol.RolloutEventMsg {
			return
		}
		m, err := protocol.ParseEvent(l.Payload)
		count, ok := m.(protocol.TokenCount)
		if err != nil || !ok || count.RateLimits == nil || count.RateLimits.Primary == nil && count.RateLimits.Secondary == nil {
			return
		}
		if at, err := time.Parse(time.RFC3339, l.Timestamp); err == nil {
			limits, told = count.RateLimits, at
		}
	}, func() {})
	return limits, told, err
}
