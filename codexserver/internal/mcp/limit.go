package mcp

import "sync/atomic"

// limit counts the requests that are handled, or the calls that are unfinished. The zero limit
// is ready.
type limit struct{ n atomic.Int64 }

// enter counts one more. It returns false if there would be more than most; otherwise the caller
// must call leave.
func (l *limit) enter(most int64) bool {
	if l.n.Add(1) > most {
		l.leave()
		return false
	}
	return true
}

func (l *limit) leave() { l.n.Add(-1) }

// tooMany is the error for a request that would exceed a limit.
const tooMany = "%d requests are under way; send this one again when one of them has ended or was cancelled"
