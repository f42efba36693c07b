package mcphttp

import (
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
)

// route returns the stream for a message, nil for an answer to no request, and after that of an exchange. s.mu is held.
//
// An answer, and a message that names a request, is sent on the stream of that request. Any
// other message is sent on the stream of GET if the client reads it, otherwise on the stream of the
// newest tool call. Without a call it is added to the stream of GET, where the client can read it
// later.
func (s *session) route(out *jsonrpc.Message) *stream {
	if s.only != nil {
		if s.only.done {
			return nil
		}
		return s.only
	}
	if out.Method == "" {
		if one := s.requests[out.ID]; one != nil {
			return one.stream
		}
		return nil
	}
	st := s.related(out)
	if st == nil && s.out.get.reader == nil {
		st = s.newestCall()
	}
	if st == nil {
		st = &s.out.get
	}
	if !out.ID.IsZero() {
		s.calls[out.ID] = ownRequest{st, out.Method}
	}
	return st
}

// related returns the stream of the request that a message names, nil without one.
func (s *session) related(out *jsonrpc.Message) *stream {
	m := top(out.Params)
	switch out.Method {
	case "notifications/progress":
		token := scalar(m["progressToken"])
		return s.find(func(e *envelope) bool { return token != "" && e.params.ProgressToken == token })
	case "notifications/cancelled":
		id, _ := mcptypes.ParseRequestID(m["requestId"])
		st := s.calls[id].stream
		delete(s.calls, id)
		if st != nil && st.done {
			return nil
		}
		return st
	}
	if id := scalar(member(m["_meta"], "requestId")); id != "" { // of codex/event
		return s.find(func(e *envelope) bool { return e.id.String() == id })
	}
	if call := text(m["codex_mcp_tool_call_id"]); call != nil {
		return s.find(func(e *envelope) bool { return asText(e.id) == *call })
	}
	return nil
}

// find returns the stream of a request without an answer.
func (s *session) find(is func(*envelope) bool) *stream {
	for _, one := range s.requests {
		if is(one) {
			return one.stream
		}
	}
	return nil
}

// newestCall returns the stream of the newest tools/call without an answer.
func (s *session) newestCall() (newest *stream) {
	for _, one := range s.requests {
		if one.method == "tools/call" && (newest == nil || one.stream.number > newest.number) {
			newest = one.stream
		}
	}
	return newest
}

// asText returns an id as text: a string without its quotes.
func asText(id jsonrpc.ID) string {
	if s, ok := id.Str(); ok {
		return s
	}
	return id.String()
}
