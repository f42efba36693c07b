package tools

import (
	"context"
	"errors"
	"fmt"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/codexserver/internal/review"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/internal/turn"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/plain"
	"github.com/codexmcp/codexmcp/internal/text"
	"github.com/codexmcp/codexmcp/mcptypes"
)

var reviewTool = &tool{
	name: "codex-review", title: "Codex Review", turn: true, hints: &mcptypes.ToolAnnotations{ReadOnlyHint: &yes},
	description: "Have Codex look for faults in changes of a git repository. Read-only, asks nothing.",
	purpose:     "have changes of a git repository looked at for faults, read-only.",
	offered:     func(t *Table) bool { return t.options.Home != "" },
	arguments:   func() arguments { return new(reviewArguments) },
	result: func() *schema {
		return resultOf[protocol.TurnResult](func(name string, _ *schema) bool { return name == "threadId" || ofReview(name) })
	},
}

type reviewArguments struct {
	Target       protocol.ReviewTarget `json:"target" required:"true" enum:"uncommitted,base,commit" about:"Changes to review: those not committed, all since the base branch, or a commit."`
	Branch       *string               `json:"branch" about:"For base."`
	Commit       *string               `json:"commit"`
	Instructions string                `json:"instructions"`
	Cwd          string                `json:"cwd" about:"As for codex."`
	ThreadID     string                `json:"threadId" about:"Review in this conversation."`
	Background   bool                  `json:"background"`

	dir      string
	scratch  git.Scratch
	log      *turn.Turn
	task     *review.Task // set by take
	revision string       // that the arguments name; the id of a commit
}

// maxInstructions is the size of the longest instructions in bytes.
const maxInstructions = 100 << 10

func (a *reviewArguments) check() error {
	for _, one := range []struct {
		name   string
		given  *string
		target protocol.ReviewTarget
	}{{"branch", a.Branch, protocol.ReviewBase}, {"commit", a.Commit, protocol.ReviewCommit}} {
		switch {
		case a.Target == one.target && one.given == nil:
			return fmt.Errorf("argument /%s is missing: the target is %s", one.name, one.target)
		case a.Target != one.target && one.given != nil:
			return fmt.Errorf("argument /%s is for the target %s", one.name, one.target)
		}
	}
	if len(a.Instructions) > maxInstructions {
		return fmt.Errorf("argument /instructions: %d bytes are more than %d", len(a.Instructions), maxInstructions)
	}
	if a.Cwd != "" && a.ThreadID != "" {
		return errors.New("argument /cwd: the conversation of /threadId has a folder of its own")
	}
	return nil
}

// nothingError means that there is nothing to review in a repository, which is a pass.
type nothingError struct{ root string }

func (e *nothingError) Error() string {
	return "there is nothing to review in " + e.root + ": no file differs"
}

// take reads the changes to review.
func (a *reviewArguments) take(ctx context.Context) error {
	argument, revision := "target", ""
	switch a.Target {
	case protocol.ReviewBase:
		argument, revision = "branch", *a.Branch
	case protocol.ReviewCommit:
		argument, revision = "commit", *a.Commit
	}
	c, err := git.Review(ctx, a.dir, a.scratch, a.Target, revision)
	var wrong *git.RevisionError
	switch {
	case ctx.Err() != nil:
		return &engine.AbortError{Reason: protocol.AbortInterrupted, Cause: context.Cause(ctx)}
	case errors.As(err, &wrong):
		return fmt.Errorf("argument /%s: %w", argument, err)
	case err != nil:
		return fmt.Errorf("argument /cwd: %w", err)
	}
	about := "what is not committed, new files too"
	switch a.Target {
	case protocol.ReviewBase:
		about = fmt.Sprintf("what differs from the commit where the current branch left %q (%s), but for files that git does not know", revision, c.Commit)
	case protocol.ReviewCommit:
		about, revision = fmt.Sprintf("the commit %s; the files on disk may be of another one", c.Commit), c.Commit
	}
	a.revision, a.task = revision, &review.Task{Root: c.Root, About: about, Instructions: a.Instructions, Files: review.ParseDiff(c.Diff), Cut: c.Cut}
	if len(a.task.Files) == 0 {
		return &nothingError{c.Root}
	}
	return nil
}

// begin returns the input of the turn. It reads the changes, unless that was done before the thread began.
func (a *reviewArguments) begin(ctx context.Context) (protocol.TurnInput, error) {
	if a.task == nil {
		if err := a.take(ctx); err != nil {
			return protocol.TurnInput{}, fmt.Errorf("codex-review: %w", err)
		}
	}
	prompt, named := a.task.Prompt()
	if named > 0 {
		a.log.Remark(fmt.Sprintf("The changes of %d of %d files were too long to be handed over; the reviewer was asked to read them itself.", named, len(a.task.Files)))
	}
	if a.task.Cut {
		a.log.Remark("The changes are too many to be read as a whole: findings in files at their end could not be checked.")
	}
	return protocol.TurnInput{
		Items: protocol.TextInput(prompt), OutputSchema: []byte(review.Schema),
		Review: &protocol.Review{Target: a.Target, Revision: a.revision, Instructions: a.Instructions},
	}, nil
}

// maxAnswer is how many bytes are shown of an answer that cannot be read.
const maxAnswer = 10_000

// end adds the reviewer's answer to the result, and returns it as a text for people. Failed is why there is none.
func (a *reviewArguments) end(answer string, did *protocol.TurnResult, failed error) (string, error) {
	if nothing, is := errors.AsType[*nothingError](failed); is {
		did.Status, did.Outcome, did.Why = protocol.StatusCompleted, protocol.ReviewPass, nothing.Error()
		return nothing.Error(), nil
	}
	if failed != nil {
		did.Outcome, did.Why = protocol.ReviewUnknown, plain.Short(failed.Error(), plain.MaxWords)
		return answer, failed
	}
	words, err := a.task.Read(answer, did)
	if err == nil {
		return words, nil
	}
	if answer = text.Brief(answer, maxAnswer); answer != "" {
		err = fmt.Errorf("%w\n\n%s", err, answer)
	}
	did.Status = protocol.StatusFailed
	return "codex-review: " + err.Error(), err
}

func (a *reviewArguments) run(ctx context.Context, c *Call) (_ *mcptypes.CallToolResult, err error) {
	c.named = thread.CanonicalID(a.ThreadID)
	b, attend := c.newTurn(a.Background)
	if a.ThreadID == "" {
		attend.Submission = c.Awaited.Submission
	}
	b.Order.Read, a.scratch, a.log = a.end, c.table.options.Report.Scratch, b.Turn
	th, err := a.thread(ctx, c, attend)
	if nothing, is := errors.AsType[*nothingError](err); is {
		did := &protocol.TurnResult{Content: nothing.Error(), Changes: []protocol.Change{}, Commands: []protocol.Command{}, Refused: []protocol.Refusal{}}
		_, err = a.end("", did, err)
		return structured(did, did.Content), err
	}
	if err != nil {
		return nil, err
	}
	attend.Review = a.begin
	return c.run(ctx, b, th, attend, protocol.TurnInput{}), nil
}

// thread returns the thread that a call names, or a new read-only one.
func (a *reviewArguments) thread(ctx context.Context, c *Call, attend thread.Attend) (*thread.Thread, error) {
	if a.ThreadID != "" {
		th, err := c.revive(ctx, c.named, protocol.Config{}, attend)
		if err != nil {
			return nil, err
		}
		if !th.Reviews() {
			return nil, errors.New("argument /threadId: this engine reviews in new conversations alone")
		}
		a.dir = th.Info().Cwd
		return th, nil
	}
	var err error
	if a.dir, err = c.workingFolder(ctx, a.Cwd); err != nil {
		return nil, err
	}
	if err := config.CheckFolder(a.dir); err != nil {
		return nil, err
	}
	if err := c.table.Rules.Repository(a.dir); err != nil {
		return nil, err
	}
	if err := a.take(ctx); err != nil {
		return nil, err
	}
	return c.Threads.Start(ctx, c.caller(), protocol.Config{
		Cwd: a.dir, Sandbox: protocol.SandboxReadOnly, ApprovalPolicy: protocol.ApprovalNever, ReadOnly: true, FromCall: true,
	}, attend)
}
