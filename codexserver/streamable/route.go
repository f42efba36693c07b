package streamable

import (
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// route returns the stream that a message takes: of the request that it answers or
// belongs to. What belongs to no request takes the standing stream if the client reads
// it, else that of the newest call, else it is kept for the standing one. nil is an
// answer that no request waits for. s.mu is held.
func (s *session) route(out *summary) *stream {
	if out.method == "" {
		return s.requests[out.id]
	}
	st := s.related(out)
	if st == nil && s.standing.reader == nil {
		st = s.newestCall()
	}
	if st == nil {
		st = &s.standing
	}
	if !out.id.IsZero() {
		put(&s.calls, out.id, ownRequest{st, out.method})
	}
	return st
}

// related returns the stream of the request that a message names, nil if it names none.
func (s *session) related(out *summary) *stream {
	rel := out.relation()
	switch out.method {
	case "notifications/progress":
		return s.find(func(e *envelope) bool { return rel.progressToken != "" && e.params.ProgressToken == rel.progressToken })
	case "notifications/cancelled":
		st := s.calls[rel.cancelled].stream
		remove(&s.calls, rel.cancelled)
		if st != nil && st.done {
			return nil
		}
		return st
	}
	if rel.requestID != "" {
		return s.find(func(e *envelope) bool { return e.id.String() == rel.requestID })
	}
	if rel.call != "" {
		return s.find(func(e *envelope) bool { return asText(e.id) == rel.call })
	}
	return nil
}

// find returns the stream of an unanswered request.
func (s *session) find(is func(*envelope) bool) *stream {
	for _, st := range s.requests {
		if is(st.request) {
			return st
		}
	}
	return nil
}

// newestCall returns the stream of the newest unanswered call of a tool.
func (s *session) newestCall() (newest *stream) {
	for _, st := range s.requests {
		if st.request.method == "tools/call" && (newest == nil || st.number > newest.number) {
			newest = st
		}
	}
	return newest
}

// asText is an id as text, whatever its JSON type.
func asText(id jsonrpc.ID) string {
	if s, ok := id.Str(); ok {
		return s
	}
	return id.String()
}
