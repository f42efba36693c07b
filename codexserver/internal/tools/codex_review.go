package tools

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/codexserver/internal/review"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
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
		return resultOf[protocol.TurnResult](func(name string, _ *schema) bool {
			return name == "threadId" || ofReview(name)
		})
	},
}

type reviewArguments struct {
	Target       protocol.ReviewTarget `json:"target" required:"true" enum:"uncommitted,base,commit" about:"Changes to review: those not committed, all since the base branch, or a commit."`
	Branch       *string               `json:"branch" about:"For base."`
	Commit       *string               `json:"commit"`
	Instructions string                `json:"instructions"`
	Cwd          string                `json:"cwd" about:"As for codex."`
	Background   bool                  `json:"background"`
}

// maxInstructions is the size of the longest instructions in bytes.
const maxInstructions = 100 << 10

func (a *reviewArguments) check() error {
	for _, option := range []struct {
		name   string
		given  *string
		target protocol.ReviewTarget
	}{{"branch", a.Branch, protocol.ReviewBase}, {"commit", a.Commit, protocol.ReviewCommit}} {
		switch {
		case a.Target == option.target && option.given == nil:
			return fmt.Errorf("argument /%s is missing: the target is %s", option.name, option.target)
		case a.Target != option.target && option.given != nil:
			return fmt.Errorf("argument /%s is for the target %s", option.name, option.target)
		}
	}
	if len(a.Instructions) > maxInstructions {
		return fmt.Errorf("argument /instructions: %d bytes are more than %d", len(a.Instructions), maxInstructions)
	}
	return nil
}

// take reads the changes to review in a folder.
func (a *reviewArguments) take(ctx context.Context, dir string, t *Table) (*review.Task, error) {
	argument, revision := "target", ""
	switch a.Target {
	case protocol.ReviewBase:
		argument, revision = "branch", *a.Branch
	case protocol.ReviewCommit:
		argument, revision = "commit", *a.Commit
	}
	c, err := git.Review(ctx, dir, t.options.Report.Scratch, a.Target, revision, engine.Withheld(t.engine, dir))
	var wrong *git.RevisionError
	switch {
	case ctx.Err() != nil:
		return nil, &engine.AbortError{Reason: protocol.AbortInterrupted, Cause: context.Cause(ctx)}
	case errors.As(err, &wrong):
		return nil, fmt.Errorf("argument /%s: %w", argument, err)
	case err != nil:
		return nil, fmt.Errorf("argument /cwd: %w", err)
	}
	about := "what is not committed, new files too"
	switch a.Target {
	case protocol.ReviewBase:
		about = fmt.Sprintf("what differs from the commit where the current branch left %q (%s), "+
			"but for files that git does not know", revision, c.Commit)
	case protocol.ReviewCommit:
		about, revision = fmt.Sprintf("the commit %s; the files on disk may be of another one", c.Commit), c.Commit
	}
	words := strings.TrimSpace("Review " + string(a.Target) + " " + revision + "\n" + a.Instructions)
	return &review.Task{
		Root: c.Root, About: about, Words: words, Instructions: a.Instructions,
		Files: review.ParseDiff(c.Diff), Cut: c.Cut,
	}, nil
}

// maxAnswer is how many bytes are shown of an answer that cannot be read.
const maxAnswer = 10_000

// read adds the reviewer's answer to the result, and returns it as a text for people. Failed is why there is none.
func read(task *review.Task, answer string, result *protocol.TurnResult, failed error) (string, error) {
	words, err := task.Read(answer, result, failed)
	if err == nil || failed != nil {
		return words, err
	}
	if answer = text.Brief(answer, maxAnswer); answer != "" {
		err = fmt.Errorf("%w\n\n%s", err, answer)
	}
	result.Status = protocol.StatusFailed
	return "codex-review: " + err.Error(), err
}

func (a *reviewArguments) run(ctx context.Context, c *Call) (*mcptypes.CallToolResult, error) {
	dir, err := c.workingFolder(ctx, a.Cwd)
	if err != nil {
		return nil, err
	}
	if err := c.table.checkRepository(dir); err != nil {
		return nil, err
	}
	task, err := a.take(ctx, dir, c.table)
	if err != nil {
		return nil, err
	}
	if len(task.Files) == 0 {
		result := protocol.TurnResult{
			Status: protocol.StatusCompleted, Outcome: protocol.ReviewPass,
			Why:     "there is nothing to review in " + task.Root + ": no file differs",
			Changes: []protocol.Change{}, Commands: []protocol.Command{}, Refused: []protocol.Refusal{},
		}
		result.Content = result.Why
		return structured(result, result.Content), nil
	}
	b, attend := c.newTurn(a.Background)
	attend.Submission, attend.Review = c.Awaited.Submission, task.Words
	b.Order.Read = func(answer string, did *protocol.TurnResult, failed error) (string, error) {
		return read(task, answer, did, failed)
	}
	prompt, unread := task.Prompt()
	if unread != "" {
		b.Remark("The reviewer was asked to read what was not handed over: " + unread + ".")
	}
	th, err := c.Threads.Start(ctx, c.table.Caller(c.Client, c.Roots), protocol.Config{
		Cwd: dir, Sandbox: protocol.SandboxReadOnly, ApprovalPolicy: protocol.ApprovalNever,
		ReadOnly: true, FromCall: true,
	}, attend)
	if err != nil {
		return nil, err
	}
	in := protocol.TurnInput{Items: protocol.TextInput(prompt), OutputSchema: []byte(review.Schema)}
	return c.run(ctx, b, th, attend, in), nil
}
