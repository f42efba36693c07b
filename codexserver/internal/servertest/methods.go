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

// LoginAPIKey implements [engine.Accounts].
func (*Engine) LoginAPIKey(context.Context, string) error { return nil }

// LoginChatGPT implements [engine.Accounts]. The login with the id "l" ends at once.
func (*Engine) LoginChatGPT(_ context.Context, done func(protocol.LoginChatGPTComplete)) (*protocol.LoginChatGPTResult, error) {
	go done(protocol.LoginChatGPTComplete{LoginID: "l", Success: true})
	return &protocol.LoginChatGPTResult{LoginID: "l", AuthURL: "http://127.0.0.1/"}, nil
}

// CancelLogin implements [engine.Accounts].
func (*Engine) CancelLogin(_ context.Context, id string) error {
	if id != "l" {
		return engine.ErrNotFound
	}
	return nil
}

// Logout implements [engine.Accounts].
func (*Engine) Logout(context.Context) error { return nil }

// UserInfo implements [engine.Accounts].
func (*Engine) UserInfo(context.Context) (*protocol.UserInfoResult, error) {
	return &protocol.UserInfoResult{}, nil
}

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
