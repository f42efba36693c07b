package engine

import (
	"context"
	"errors"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// The interfaces below are optional. A server finds them by type assertion on
// the [Engine], and [Steerer] and [Reviewer] on the [Conversation]; the methods that need one
// which the engine lacks do not exist for the client.

// ErrNotFound says that what was named (a conversation, a rollout, a login) is
// not there.
var ErrNotFound = errors.New("not found")

// ErrNoTurn says that no turn takes a message: none is running, or it has just
// ended. The message was not taken.
var ErrNoTurn = errors.New("no turn is running")

// RefusedError says that a request is wrong as it was made: its message is for
// the client.
type RefusedError struct {
	// Err says what is wrong with it.
	Err error
}

// Error implements error.
func (e *RefusedError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *RefusedError) Unwrap() error { return e.Err }

// Streamer is an engine whose conversations share one stream of events that must
// not wait, such as the connection to another process. Emit of its hosts never
// waits; the deltas that a client has no room for are left out, and an event says
// how many.
type Streamer interface {
	// StreamsEvents says that Emit must not wait.
	StreamsEvents()
}

// Resumer is an engine whose conversations outlive it in rollouts.
type Resumer interface {
	// Resume continues the conversation of a rollout. It emits
	// [protocol.SessionConfigured] with the initial messages before it returns. A missing
	// rollout is an [ErrNotFound], a faulty configuration a [*ConfigError].
	Resume(ctx context.Context, rolloutPath string, cfg protocol.Config, host Host) (Conversation, error)
	// FindRollout returns the rollout of a conversation, or [ErrNotFound].
	FindRollout(ctx context.Context, conversationID string) (rolloutPath string, err error)
}

// Library is an engine that keeps a list of its conversations.
type Library interface {
	// List returns a page of conversations, newest first.
	List(ctx context.Context, p protocol.ListConversationsParams) (*protocol.ListConversationsResult, error)
	// Archive takes a conversation that is not open out of the list. A path
	// that is not the conversation's rollout is a [*RefusedError].
	Archive(ctx context.Context, p protocol.ArchiveConversationParams) error
}

// Accounts is an engine that knows who is signed in.
type Accounts interface {
	// AuthStatus says who is signed in.
	AuthStatus(ctx context.Context, p protocol.GetAuthStatusParams) (*protocol.GetAuthStatusResult, error)
	// LoginAPIKey signs in with an API key and ends any ChatGPT login under way.
	LoginAPIKey(ctx context.Context, key string) error
	// LoginChatGPT begins a sign-in in the user's browser. Done is called once,
	// from a goroutine of the engine, when it has ended in whatever way.
	LoginChatGPT(ctx context.Context, done func(protocol.LoginChatGPTComplete)) (*protocol.LoginChatGPTResult, error)
	// CancelLogin ends a sign-in; [ErrNotFound] when there is none by that id.
	CancelLogin(ctx context.Context, loginID string) error
	// Logout signs out; it succeeds if no user was signed in.
	Logout(ctx context.Context) error
	// UserInfo returns what the sign-in says about the user.
	UserInfo(ctx context.Context) (*protocol.UserInfoResult, error)
}

// Configurator is an engine whose configuration file clients may see and change.
type Configurator interface {
	// SavedConfig reads the file again on each call.
	SavedConfig(ctx context.Context) (*protocol.UserSavedConfig, error)
	// SetDefaultModel writes to it, comments and order kept.
	SetDefaultModel(ctx context.Context, p protocol.SetDefaultModelParams) error
}

// Commander is an engine that runs single commands outside of conversations.
type Commander interface {
	// ExecOneOff runs a command under the given or configured sandbox policy. A
	// command that cannot be run as asked is a [*RefusedError].
	ExecOneOff(ctx context.Context, p protocol.ExecOneOffCommandParams) (*protocol.ExecOneOffCommandResult, error)
}

// Searcher is an engine that finds files by name.
type Searcher interface {
	// SearchFiles ends early, with what it has, when ctx does.
	SearchFiles(ctx context.Context, p protocol.FuzzyFileSearchParams) (*protocol.FuzzyFileSearchResult, error)
}

// Differ is an engine that compares a working tree with its remote.
type Differ interface {
	// GitDiffToRemote returns the difference to the closest commit that a remote has. A
	// folder without one is a [*RefusedError].
	GitDiffToRemote(ctx context.Context, cwd string) (*protocol.GitDiffToRemoteResult, error)
}

// ModelLister is an engine that knows which models can be chosen.
type ModelLister interface {
	// Models lists them, within bounds of time and size. What could not be found out
	// is a note of the list, and an error where there is nothing else.
	Models(ctx context.Context) (*protocol.ModelList, error)
}

// Steerer is a conversation that takes messages while a turn runs.
type Steerer interface {
	// Steer sends the model a message within the running turn, from the turn's
	// [protocol.TaskStarted] on.
	Steer(ctx context.Context, items []protocol.InputItem) error
}

// Reviewer is a conversation that can review changes without being able to make any.
type Reviewer interface {
	// Review runs a turn, as [Conversation.Turn] does, that changes nothing. Commands run
	// read-only and without network, no question is asked, and there are no patches, web
	// searches or tools of MCP servers, whatever the conversation's configuration, which
	// applies again afterwards. The reviewer's answer is the message of
	// [protocol.TaskComplete], in the form that the prompt asks for.
	Review(ctx context.Context, r protocol.Review) error
}
