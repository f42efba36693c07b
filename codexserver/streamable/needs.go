package streamable

import (
	"net/http"
	"slices"

	"github.com/codexmcp/codexmcp/jsonrpc"
)

// may reports whether the principal's token has a scope.
func (p Principal) may(s Scope) bool { return p.Scopes == nil || slices.Contains(p.Scopes, s) }

// readers are the methods that need codex:read alone. What is in neither table needs
// codex:run, also a method that does not exist yet.
var readers = []string{
	"initialize", "ping", "server/discover", "logging/setLevel",
	"notifications/initialized", "notifications/roots/list_changed",
	"tools/list", "resources/list", "resources/templates/list", "resources/read",
	"subscriptions/listen", "tasks/get", "tasks/list", "tasks/result",
}

// readingTools are the tools whose calls need codex:read alone.
var readingTools = []string{"codex-list", "codex-models", "codex-show", "codex-wait"}

// needs returns the scopes that a request needs.
func (e *envelope) needs() []Scope {
	scope := ScopeRun
	switch {
	case slices.Contains(readers, e.method), e.method == "tools/call" && e.params.Name != nil && slices.Contains(readingTools, *e.params.Name):
		scope = ScopeRead
	case e.method == "tasks/update":
		return []Scope{ScopeApprove} // it has answers and nothing else
	}
	if e.params.Answers {
		return []Scope{scope, ScopeApprove}
	}
	return []Scope{scope}
}

// ownRequest is a request of the server.
type ownRequest struct {
	stream *stream
	method string
}

// needs returns the scopes that a message of the session needs. An answer needs
// codex:approve, but for one that says where a turn works. A cancellation needs
// what the cancelled request did.
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
			return st.request.needs()
		}
	}
	return e.needs()
}

// needsFor returns the scopes that a GET or DELETE of the session needs. The end of a
// session ends its turns.
func (s *session) needsFor(method string) []Scope {
	s.mu.Lock()
	defer s.mu.Unlock()
	if method == http.MethodDelete && s.ran {
		return []Scope{ScopeRun}
	}
	return []Scope{ScopeRead}
}

// allow reports whether the principal has the scopes that a message needs, and answers
// a message for which it lacks one. The answer names the scopes that the client is to
// ask for.
func (g *Guard) allow(w http.ResponseWriter, who Principal, id jsonrpc.ID, needed, named []Scope) bool {
	if !slices.ContainsFunc(needed, func(s Scope) bool { return !who.may(s) }) {
		return true
	}
	w.Header().Set("WWW-Authenticate", g.challenge("insufficient_scope", FormatScopes(named)))
	fail(w, http.StatusForbidden, id, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "the token does not allow this: it needs %s", FormatScopes(needed)))
	return false
}

// allowInSession is allow for clients up to 2025-11-25, which ask only for what the
// answer names: it includes what the token allows already. Clients of 2026-07-28 add what
// is missing to what they have.
func (g *Guard) allowInSession(w http.ResponseWriter, who Principal, id jsonrpc.ID, needed []Scope) bool {
	named := slices.DeleteFunc(Scopes(), func(s Scope) bool { return !who.may(s) && !slices.Contains(needed, s) })
	return g.allow(w, who, id, needed, named)
}
