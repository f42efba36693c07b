package streamable

import (
	"slices"
	"strings"
)

// Scope is something that a token allows.
type Scope string

// The scopes.
const (
	ScopeRun     Scope = "codex:run"     // start, go on with, and interrupt turns
	ScopeApprove Scope = "codex:approve" // answer questions
	ScopeRead    Scope = "codex:read"    // see what there is
)

// Scopes returns all scopes.
func Scopes() []Scope { return []Scope{ScopeRun, ScopeApprove, ScopeRead} }

// ParseScopes returns the scopes that a text separated by spaces names. It ignores
// words that are no scope. The result is never nil: a text without a scope allows
// nothing, where nil scopes of a [Principal] allow everything.
func ParseScopes(text string) []Scope {
	named := strings.Fields(text)
	found := []Scope{}
	for _, scope := range Scopes() {
		if slices.Contains(named, string(scope)) {
			found = append(found, scope)
		}
	}
	return found
}

// FormatScopes returns scopes as [ParseScopes] reads them.
func FormatScopes(scopes []Scope) string {
	words := make([]string, len(scopes))
	for i, scope := range scopes {
		words[i] = string(scope)
	}
	return strings.Join(words, " ")
}
