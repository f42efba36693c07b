package servertest

import (
	"context"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// AuthStatus implements [engine.Accounts].
func (*Engine) AuthStatus(context.Context, protocol.GetAuthStatusParams) (*protocol.GetAuthStatusResult, error) {
	return &protocol.GetAuthStatusResult{AuthMethod: protocol.AuthAPIKey}, nil
}

// Logout implements [engine.Accounts].
func (*Engine) Logout(context.Context) error { return nil }

// SearchFiles implements [engine.Searcher]. A search for "slow" ends with its context.
func (*Engine) SearchFiles(ctx context.Context, p protocol.FuzzyFileSearchParams) (*protocol.FuzzyFileSearchResult, error) {
	if p.Query == "slow" {
		<-ctx.Done()
	}
	return &protocol.FuzzyFileSearchResult{Files: []protocol.FuzzyFile{}}, nil
}
