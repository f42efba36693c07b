package engine

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// The interfaces below are optional. A server finds them by type assertion on the [Engine];
// [Steerer], [Stopper], [Checker], [Former] and [Resolver] on the [Conversation]. A client does not have
// methods whose interface the engine lacks.

// ErrNotFound means that a conversation does not exist.
var ErrNotFound = errors.New("not found")

// ErrCursor means that a cursor is not that of a page.
var ErrCursor = errors.New("not the nextCursor of a page")

// ErrNoTurn means that a message was not taken, because no turn is running or the turn has
// just ended.
var ErrNoTurn = errors.New("no turn is running")

// RefusedError means that a request is wrong. Its message is for the client.
type RefusedError struct {
	// Err is what is wrong.
	Err error
}

// Error implements error.
func (e *RefusedError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *RefusedError) Unwrap() error { return e.Err }

// Traits are what a server should know of an engine. The zero value is that of an engine that is
// no [Describer].
type Traits struct {
	// Name is what questions call the engine. Default: "Codex". Clients of MCP 2025-06-18 and older, whose
	// programs read the first sentence of a question, are always told "Codex".
	Name string
	// Title is what the server and its tools call themselves and the engine, in the information about the server, its
	// instructions and descriptions. Default: Name.
	Title string
	// Confines means that the engine has a sandbox for commands with the modes of [protocol.Config], and that
	// [protocol.SessionConfigured] says what a conversation has beyond the configuration. Without it the server says
	// nothing of a sandbox, and itself asks about a call that chooses [protocol.SandboxDangerFullAccess].
	Confines bool
	// Streams means that the conversations share one stream of events, such as the connection
	// to another process. Emit of their hosts never waits. If a client reads too slowly, deltas
	// are left out, and an event reports how many.
	Streams bool
	// Announces means that whatever changes files begins with [protocol.ExecCommandBegin],
	// [protocol.PatchApplyBegin] or [protocol.MCPToolCallBegin], and only when Emit has returned.
	// The server reads the folder before the first of them, and not at all in a turn without. A command that is
	// ReadOnly does not count.
	Announces bool
	// Reach returns the absolute paths of all folders that a command was able to write without
	// a question at any time, and of the folders in which callers had it work. A folder counts
	// before the first command runs that can write it. The server starts no program there
	// itself. Nil: the engine does not know.
	Reach func() []string
	// Holder returns the error that a turn of the conversation with an id would have because
	// another program runs one, or nil. A nil function: the engine does not know.
	Holder func(ctx context.Context, conversationID string) error
	// CanContinue returns why this process could not continue turns of processes that have
	// ended now, such as a missing key of the provider, or nil. With it the engine is a
	// [Resumer], and its conversations obey [protocol.TurnInput.Continue]. A nil function: it continues none.
	CanContinue func(ctx context.Context) error
}

// Describer is an engine with traits.
type Describer interface {
	// Traits returns the same traits each time.
	Traits() Traits
}

// TraitsOf returns the traits of an engine, with the defaults.
func TraitsOf(e Engine) (t Traits) {
	if d, ok := e.(Describer); ok {
		t = d.Traits()
	}
	t.Name = cmp.Or(t.Name, "Codex")
	t.Title = cmp.Or(t.Title, t.Name)
	return t
}

// Saved is a conversation that outlives its engine in a file.
type Saved struct {
	// ID is the conversation's id.
	ID string
	// File is the absolute path of its file. The server shows what is in it.
	File string
}

// Resumer is an engine whose conversations outlive it in files.
type Resumer interface {
	// Resume opens a conversation again. Before it returns, it emits
	// [protocol.SessionConfigured] with the initial messages. The error is [ErrNotFound]
	// for a missing file, a [*ConfigError] for a fault in the configuration.
	Resume(ctx context.Context, s Saved, cfg protocol.Config, host Host) (Conversation, error)
	// Find returns the conversation with an id, or [ErrNotFound].
	Find(ctx context.Context, id string) (Saved, error)
}

// Library is an engine that keeps a list of its conversations.
type Library interface {
	// List returns a page of conversations, newest first. The error is [ErrCursor] for a
	// cursor that cannot be read.
	List(ctx context.Context, p protocol.ListConversationsParams) (*protocol.ListConversationsResult, error)
}

// Accounts is an engine that knows who is signed in.
type Accounts interface {
	// AuthStatus returns who is signed in.
	AuthStatus(ctx context.Context, p protocol.GetAuthStatusParams) (*protocol.GetAuthStatusResult, error)
	// Logout signs out; it succeeds if no user was signed in.
	Logout(ctx context.Context) error
}

// Searcher is an engine that finds files.
type Searcher interface {
	// SearchFiles finds files by name. When ctx ends, it returns what it has found.
	SearchFiles(ctx context.Context, p protocol.FuzzyFileSearchParams) (*protocol.FuzzyFileSearchResult, error)
}

// ModelLister is an engine that knows which models can be chosen.
type ModelLister interface {
	// Models lists the models, within limits of time and size. Notes of the list say what
	// could not be determined. It returns an error only if the list would be empty.
	Models(ctx context.Context) (*protocol.ModelList, error)
}

// Steerer is a conversation that takes messages while a turn runs.
type Steerer interface {
	// Steer sends the model a message in the running turn. It can be called from the
	// turn's [protocol.TaskStarted] on.
	Steer(ctx context.Context, items []protocol.InputItem) error
}

// Stopper is a conversation whose engine may begin work that no turn has asked for. It ends that by itself, and says so
// in the next result.
type Stopper interface {
	// Stop ends what works in the conversation, and waits for that. It reports whether something did. No turn runs
	// when it is called.
	Stop(ctx context.Context) (bool, error)
}

// Checker is a conversation that runs lines of the person who configured the server: the check of a turn, which says
// whether the turn is done, and the set-up of a worktree.
type Checker interface {
	// Check runs a line between turns with the shell that runs lines of the model. It is a command
	// of the model in the working folder: the policies, the rules and the sandbox of the conversation hold, and a
	// person is asked as about such a command. It emits the events of a command with the id, of which the last
	// [protocol.ExecCommandEnd] says how the line ended. Why is why that says nothing about the work, perhaps in words
	// of any program: nobody approved it, it did not run, or the sandbox stopped it. It is "" otherwise. An error
	// aborts the turn, and so does the end of ctx, with which the line has ended when Check returns.
	Check(ctx context.Context, l Line) (why string, err error)
}

// Line is a line that a [Checker] runs.
type Line struct {
	// ID is that of its command, and Text the line.
	ID, Text string
	// Limit is how long it may run.
	Limit time.Duration
	// SetUp says that it is the set-up of a worktree, and no check.
	SetUp bool
}

// Purpose says what the line is for, as questions call it.
func (l Line) Purpose() string {
	if l.SetUp {
		return "the set-up of the worktree"
	}
	return "the check of the turn"
}

// Former is a conversation that gives an answer the form that the caller of the turn wants, after the work. A provider
// that holds a model to a schema from the first token on would let it do no work. So Turn tells the model of
// [protocol.TurnInput.OutputSchema] in words alone, and the server calls Form if the answer does not fit.
type Former interface {
	// Form runs a turn after the last one, as Turn does, in which the model writes its answer again and is held to
	// OutputSchema. Items say what is wrong with the answer. Nothing runs in it, and nobody is asked, whatever the
	// model calls all the same: the turn may fail or be incomplete for that. What it may not do is of this turn alone.
	// A process that continues the turn before it by its key takes its answer if it has ended, and else ignores it.
	Form(ctx context.Context, in protocol.TurnInput) error
}

// Resolver is a conversation whose sandbox finds its folders by their names, again for each command. Who can put
// a link in the place of one decides where its commands write, so the server asks before it runs two turns of which
// one could do so to the other.
type Resolver interface {
	// Writes returns the absolute paths, without symbolic links, of all folders that commands can write, also those for
	// temporary files.
	Writes() []string
	// Rest is called at the end of each turn. It calls then once, before it returns or when the programs that the turn
	// left have ended.
	Rest(then func())
}
