package rollout

import (
	"fmt"
	"io"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/safefile"
	"github.com/go-json-experiment/json"
)

// maxTail is the size of the end of a rollout that is searched, in bytes.
const maxTail = 1 << 20

// RateLimits returns the last rate limits in a rollout, and when the provider reported
// them. The limits are nil when the end of the rollout has none.
func RateLimits(path string) (limits *protocol.RateLimits, reported time.Time, err error) {
	f, err := safefile.Open(path)
	if err != nil {
		return nil, reported, fmt.Errorf("rollout: %w", err)
	}
	defer f.Close()
	if err := f.SeekTail(maxTail); err != nil { // in the middle of a line, which is skipped
		return nil, reported, fmt.Errorf("rollout: %w", err)
	}
	err = eachLine(io.LimitReader(f, maxTail), func(line []byte) bool {
		var l protocol.RolloutLine
		if json.Unmarshal(line, &l) != nil || l.Type != protocol.RolloutEventMsg {
			return true
		}
		m, err := protocol.ParseEvent(l.Payload)
		count, ok := m.(protocol.TokenCount)
		if err != nil || !ok || count.RateLimits == nil || count.RateLimits.Primary == nil && count.RateLimits.Secondary == nil {
			return true
		}
		if at, err := time.Parse(time.RFC3339, l.Timestamp); err == nil {
			limits, reported = count.RateLimits, at
		}
		return true
	}, func() {}, func() {})
	return limits, reported, err
}
