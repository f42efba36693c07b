package mcphttp

import (
	"slices"
	"strings"
)

// Scope is a permission of a token.
type Scope string

// The scopes.
const (
	ScopeRun     Scope = "codex:run"     // start, continue and interrupt turns
	ScopeApprove Scope = "codex:approve" // answer questions
	ScopeRead    Scope = "codex:read"    // read threads, tools and models
)

// Scopes returns all scopes.
func Scopes() []Scope { return []Scope{ScopeRun, ScopeApprove, ScopeRead} }

// ParseScopes returns the scopes in a text, which spaces separate. It ignores other words.
// The result is never nil: a text without a scope allows nothing, whereas nil scopes of a
// [Principal] allow everything.
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

// FormatScopes returns the scopes as a text for [ParseScopes].
func FormatScopes(scopes []Scope) string {
	words := make([]string, len(scopes))
	for i, scope := range scopes {
		words[i] = string(scope)
	}
	return strings.Join(words, " ")
}
