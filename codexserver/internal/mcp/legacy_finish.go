package mcp

import "time"

// drain is how long requests may continue after a client with a session has disconnected.
// It is enough for short requests, but not for a turn.
const drain = 50 * time.Millisecond

// Begin records that the client has begun a session. At the end of its input it has then disconnected, and its
// turns end. Otherwise the input is a file of calls, which are finished.
func (ss *LegacySession) Begin() { ss.note(&ss.began) }

// InputEnded records the end of the client's input. It is a hook of the peer.
func (ss *LegacySession) InputEnded(error) { ss.note(&ss.ended) }

func (ss *LegacySession) note(what *bool) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	*what = true
	if ss.began && ss.ended && ss.drained == nil {
		ss.drained = time.AfterFunc(drain, ss.stop)
	}
}

// Close ends the wait for the end of the session. The client must be closed.
func (ss *LegacySession) Close() {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.drained != nil {
		ss.drained.Stop()
	}
}
