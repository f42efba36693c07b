package mcphttp

import (
	"net/http"
	"slices"

	"github.com/codexmcp/codexmcp/jsonrpc"
)

// may reports whether the principal's token allows a scope.
func (p Principal) may(s Scope) bool { return p.Scopes == nil || slices.Contains(p.Scopes, s) }

// readers are the methods that need codex:read only. One that is not in the
// table needs codex:run, even one that does not exist yet.
var readers = []string{
	"initialize", "ping", "server/discover", "logging/setLevel",
	"notifications/initialized", "notifications/roots/list_changed",
	"tools/list",
	"subscriptions/listen", "tasks/get", "tasks/list", "tasks/result",
}

// needs returns the scopes that a request needs.
func (e *envelope) needs() []Scope {
	scope := ScopeRun
	switch {
	case slices.Contains(readers, e.method), e.reads:
		scope = ScopeRead
	case e.method == "tasks/update":
		return []Scope{ScopeApprove} // it contains only answers
	}
	if e.params.Answers {
		return []Scope{scope, ScopeApprove}
	}
	return []Scope{scope}
}

// ownRequest is a request of the server to the client.
type ownRequest struct {
	stream *stream
	method string
}

// needs returns the scopes that a message of the session needs. A response needs
// codex:approve, except the one to roots/list, which says where a turn works. A cancellation
// needs the scopes of the cancelled request.
func (s *session) needs(e *envelope) []Scope {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case e.kind == response && s.calls[e.id].method == "roots/list":
		return []Scope{ScopeRun}
	case e.kind == response:
		return []Scope{ScopeApprove}
	case e.method == "notifications/cancelled":
		if st := s.requests[e.params.RequestID]; st != nil {
			return st.needs()
		}
	}
	return e.needs()
}

// needsFor returns the scopes that a GET or DELETE of the session needs. DELETE ends the
// turns of the session, so it needs codex:run if there may be any.
func (s *session) needsFor(method string) []Scope {
	s.mu.Lock()
	defer s.mu.Unlock()
	if method == http.MethodDelete && s.ran {
		return []Scope{ScopeRun}
	}
	return []Scope{ScopeRead}
}

// allow reports whether the principal has the needed scopes. If not, it answers the message
// with 403. The challenge has the named scopes, for which the client should ask.
func (g *Guard) allow(w http.ResponseWriter, who Principal, id jsonrpc.ID, needed, named []Scope) bool {
	if !slices.ContainsFunc(needed, func(s Scope) bool { return !who.may(s) }) {
		return true
	}
	w.Header().Set("WWW-Authenticate", g.challenge("insufficient_scope", FormatScopes(named)))
	fail(w, http.StatusForbidden, id, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest,
		"the token does not allow this: it needs %s", FormatScopes(needed)))
	return false
}

// allowInSession is allow for clients up to 2025-11-25. They ask only for the scopes in the
// challenge, so it includes those of the token. Clients of 2026-07-28 add the missing scopes
// to those of their token.
func (g *Guard) allowInSession(w http.ResponseWriter, who Principal, id jsonrpc.ID, needed []Scope) bool {
	named := slices.DeleteFunc(Scopes(), func(s Scope) bool { return !who.may(s) && !slices.Contains(needed, s) })
	return g.allow(w, who, id, needed, named)
}
