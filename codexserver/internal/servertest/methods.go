package servertest

import (
	"context"
	"errors"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// AuthStatus implements [engine.Accounts].
func (*Engine) AuthStatus(context.Context, protocol.GetAuthStatusParams) (*protocol.GetAuthStatusResult, error) {
	return &protocol.GetAuthStatusResult{AuthMethod: protocol.AuthAPIKey}, nil
}

// Logout implements [engine.Accounts].
func (*Engine) Logout(context.Context) error { return nil }

// SavedConfig implements [engine.Configurator].
func (*Engine) SavedConfig(context.Context) (*protocol.UserSavedConfig, error) {
	return &protocol.UserSavedConfig{Profiles: map[string]protocol.SavedProfile{}}, nil
}

// SetDefaultModel implements [engine.Configurator].
func (*Engine) SetDefaultModel(context.Context, protocol.SetDefaultModelParams) error { return nil }

// ExecOneOff implements [engine.Workspace]. The output is the command's name.
func (*Engine) ExecOneOff(_ context.Context, p protocol.ExecOneOffCommandParams) (*protocol.ExecOneOffCommandResult, error) {
	return &protocol.ExecOneOffCommandResult{Stdout: p.Command[0]}, nil
}

// SearchFiles implements [engine.Workspace]. A search for "slow" ends with its context.
func (*Engine) SearchFiles(ctx context.Context, p protocol.FuzzyFileSearchParams) (*protocol.FuzzyFileSearchResult, error) {
	if p.Query == "slow" {
		<-ctx.Done()
	}
	return &protocol.FuzzyFileSearchResult{Files: []protocol.FuzzyFile{}}, nil
}

// GitDiffToRemote implements [engine.Workspace]. Only "/repo" is a repository.
func (*Engine) GitDiffToRemote(_ context.Context, cwd string) (*protocol.GitDiffToRemoteResult, error) {
	if cwd != "/repo" {
		return nil, &engine.RefusedError{Err: errors.New("no repository")}
	}
	return &protocol.GitDiffToRemoteResult{SHA: "0"}, nil
}
