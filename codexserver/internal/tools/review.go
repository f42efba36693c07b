package tools

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/codexserver/internal/review"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/lazyregexp"
	"github.com/codexmcp/codexmcp/mcptypes"
)

//go:embed review.json
var reviewTool string

type reviewArguments struct {
	Target       protocol.ReviewTarget `json:"target"`
	Branch       *string               `json:"branch"`
	Commit       *string               `json:"commit"`
	Instructions string                `json:"instructions"`
	Cwd          string                `json:"cwd"`
	ThreadID     string                `json:"threadId"`
	Background   bool                  `json:"background"`
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

// revision returns the argument that names a revision, if any, and the argument's name.
func (a *reviewArguments) revision() (revision, name string) {
	switch a.Target {
	case protocol.ReviewBase:
		return *a.Branch, "branch"
	case protocol.ReviewCommit:
		return *a.Commit, "commit"
	}
	return "", ""
}

// reviewCall is a review that a call requested.
type reviewCall struct {
	arguments reviewArguments
	dir       string
	scratch   git.Scratch
	job       *Job

	changes *git.Changes // set by take
	task    review.Task
}

// take reads the changes to review.
func (r *reviewCall) take(ctx context.Context) error {
	revision, name := r.arguments.revision()
	c, err := git.Review(ctx, r.dir, r.scratch, r.arguments.Target, revision)
	var wrong *git.RevisionError
	switch {
	case ctx.Err() != nil:
		return &engine.AbortError{Reason: protocol.AbortInterrupted, Cause: context.Cause(ctx)}
	case errors.As(err, &wrong):
		return fmt.Errorf("argument /%s: %w", cmp.Or(name, "target"), err)
	case err != nil:
		return fmt.Errorf("argument /cwd: %w", err)
	}
	r.changes = c
	r.task = review.Task{Root: c.Root, Instructions: r.arguments.Instructions, Files: review.ParseDiff(c.Diff), Cut: c.Cut}
	switch r.arguments.Target {
	case protocol.ReviewUncommitted:
		r.task.About = "what is not committed, new files too"
	case protocol.ReviewBase:
		r.task.About = fmt.Sprintf("what differs from the commit where the current branch left %q (%s), but for files that git does not know", revision, c.Commit)
	case protocol.ReviewCommit:
		r.task.About = fmt.Sprintf("the commit %s; the files on disk may be of another one", c.Commit)
	}
	if len(r.task.Files) == 0 {
		return fmt.Errorf("there is nothing to review in %s: no file differs", c.Root)
	}
	return nil
}

// plainName matches a revision without a special meaning to a shell or a model.
var plainName = lazyregexp.Regexp{Text: `^[A-Za-z0-9][A-Za-z0-9._/-]{0,199}$`}

// begin returns the task. It reads the changes, unless that was done before the thread
// began.
func (r *reviewCall) begin(ctx context.Context) (protocol.Review, error) {
	if r.changes == nil {
		if err := r.take(ctx); err != nil {
			return protocol.Review{}, fmt.Errorf("codex-review: %w", err)
		}
	}
	if n := r.task.Hidden(); n > 0 {
		r.job.log.Remark(fmt.Sprintf("The changes of %d of %d files were too long to be handed over; the reviewer was asked to read them itself.", n, len(r.task.Files)))
	}
	revision, _ := r.arguments.revision()
	if r.arguments.Target == protocol.ReviewCommit || !plainName.Get().MatchString(revision) {
		revision = r.changes.Commit
	}
	return protocol.Review{
		Target: r.arguments.Target, Revision: revision, Instructions: r.arguments.Instructions, Prompt: r.task.Prompt(),
	}, nil
}

// end parses the reviewer's answer, adds it to the result, and returns it as a text for
// people.
func (r *reviewCall) end(answer string, did *protocol.TurnResult) (string, error) {
	result, err := review.Parse(answer)
	if err != nil {
		if answer = Cut(answer, maxAnswer); answer != "" {
			err = fmt.Errorf("%w\n\n%s", err, answer)
		}
		return "", err
	}
	roots := []string{r.changes.Root}
	if real, err := filepath.EvalSymlinks(r.changes.Root); err == nil {
		roots = append(roots, real)
	}
	if n := result.Check(r.task.Files, r.changes.Cut, roots...); n > 0 {
		result.Problems = append(result.Problems, fmt.Sprintf("The changes are too many to be read as a whole: %d findings could not be checked.", n))
	}
	did.Findings, did.Verdict = append([]protocol.Finding{}, result.Findings...), result.Verdict
	return result.Text(), nil
}

// maxAnswer is how many runes are shown of an answer that cannot be parsed.
const maxAnswer = 10_000

func (t *Table) callReview(ctx context.Context, c *call, a *reviewArguments) *mcptypes.CallToolResult {
	job := c.newJob(c.attendance(a.Background))
	job.attendance.Submission = c.Awaited.Submission
	job.review = &reviewCall{arguments: *a, scratch: t.options.Report.Scratch, job: job}
	th, err := t.reviewThread(ctx, c, job)
	if err != nil {
		return notBegun(ctx, "codex-review", thread.CanonicalID(a.ThreadID), err)
	}
	return c.run(ctx, job, th, protocol.TurnInput{}, a.Background)
}

// reviewThread returns the thread that a call names, or a new read-only one.
func (t *Table) reviewThread(ctx context.Context, c *call, job *Job) (*thread.Thread, error) {
	a := &job.review.arguments
	if a.ThreadID != "" {
		id := thread.CanonicalID(a.ThreadID)
		job.attendance.Submission = ""
		th, err := t.revive(ctx, c, id, job)
		if err != nil {
			return nil, err
		}
		if !th.Reviews() {
			return nil, errors.New("argument /threadId: this engine reviews in new conversations alone")
		}
		job.review.dir = th.Info().Cwd
		return th, nil
	}
	var err error
	if job.review.dir, err = c.workingFolder(ctx, a.Cwd); err == nil {
		if err := config.CheckFolder(job.review.dir); err != nil {
			return nil, err
		}
		err = t.options.bounds().repository(job.review.dir)
	}
	if err != nil {
		return nil, fmt.Errorf("argument /cwd: %w", err)
	}
	if err := job.review.take(ctx); err != nil {
		return nil, err
	}
	return c.Threads.Start(ctx, protocol.Config{
		Cwd: job.review.dir, Sandbox: protocol.SandboxReadOnly, ApprovalPolicy: protocol.ApprovalNever, ReadOnly: true, FromCall: true,
	}, job.attendance)
}
