package mcptool

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/repo"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/mcptypes"
)

//go:embed worktree.json
var worktreeTool string

type worktreeArguments struct {
	ThreadID string         `json:"threadId"`
	Action   worktreeAction `json:"action"`
	Name     string         `json:"name"`
	Message  string         `json:"message"`
	Token    string         `json:"token"`
}

// worktreeAction is what to do with a worktree.
type worktreeAction string

const (
	statusAction  worktreeAction = "status"
	applyAction   worktreeAction = "apply"
	branchAction  worktreeAction = "branch"
	discardAction worktreeAction = "discard"
)

// maxMessage is the size of the longest commit message in bytes.
const maxMessage = 2000

func (a *worktreeArguments) check() error {
	if a.ThreadID == "" {
		return errors.New("argument /threadId is missing")
	}
	for name, given := range map[string]bool{"name": a.Name != "", "message": a.Message != ""} {
		if given && a.Action != branchAction {
			return fmt.Errorf("argument /%s is for the action branch", name)
		}
	}
	if len(a.Message) > maxMessage {
		return fmt.Errorf("argument /message: %d bytes are at most %d, so that a question can show them", len(a.Message), maxMessage)
	}
	return nil
}

func (t *Table) callWorktree(ctx context.Context, c *call, a *worktreeArguments) *mcptypes.CallToolResult {
	ws, id := t.worktrees, thread.CanonicalID(a.ThreadID)
	w, err := ws.open().Find(id)
	if errors.Is(err, fs.ErrNotExist) {
		words := fmt.Sprintf("codex-worktree: conversation %q has no worktree", id)
		if bad, ok := errors.AsType[*repo.RecordError](err); ok {
			words += ", unless it is one that cannot be read: " + bad.Error()
		}
		return failure(id, words)
	}
	if err != nil {
		return failure(id, "codex-worktree: "+err.Error())
	}
	if _, _, err := t.options.bounds().resolve(w.Root()); err != nil {
		return failure(id, "codex-worktree: argument /threadId: "+err.Error())
	}
	v := &visit{call: c, worktree: w, id: id, config: t.revived(id)}
	v.job = c.newJob(c.Audience.Turn)
	if ws.trouble != nil {
		v.job.log.Remark(ws.trouble.Error())
	}
	var text string
	switch a.Action {
	case statusAction:
		text, err = v.status(ctx)
	case applyAction:
		text, err = v.asked(ctx, v.apply)
	case branchAction:
		text, err = v.asked(ctx, func(ctx context.Context, h engine.Host) (string, error) { return v.branch(ctx, h, a.Name, a.Message) })
	case discardAction:
		text, err = v.discard(ctx, a.Token)
	}
	if err != nil {
		text = "codex-worktree: " + explain(err)
	}
	if !errors.As(err, new(*repo.UnfinishedError)) {
		v.job.log.Remark(ws.unfinished(w.Root(), id)...)
	}
	r := result(id, append([]string{Cut(text, maxWorktreeText)}, v.job.log.Remarks()...)...)
	if err != nil {
		r.IsError = new(true)
	}
	return r
}

// maxWorktreeText is how many runes the text of a result has at most.
const maxWorktreeText = 10_000

// visit is one call about a worktree.
type visit struct {
	call     *call
	worktree *repo.Worktree
	id       string
	config   func() protocol.Config
	job      *Job // watches the questions
}

// asked runs f, which asks a question, instead of a turn of the thread.
func (v *visit) asked(ctx context.Context, f func(context.Context, engine.Host) (string, error)) (text string, err error) {
	t, err := v.call.Threads.Revive(ctx, v.id, v.job.attendance, v.config)
	if err != nil {
		return "", err
	}
	if v.job.thread = t; v.call.Begun != nil {
		v.call.Begun(v.job)
	}
	err = t.Act(ctx, v.job.attendance, func(ctx context.Context, h engine.Host) (err error) {
		text, err = f(ctx, h)
		return err
	})
	return text, err
}

func (v *visit) status(ctx context.Context) (string, error) {
	s, err := v.worktree.Status(ctx)
	if err != nil {
		return "", err
	}
	lines := []string{fmt.Sprintf("The worktree is %s, made from commit %s of %s.", v.worktree.Path(), s.Base, v.worktree.Root())}
	if len(s.Files) == 0 {
		lines = append(lines, "No file has changed.")
	}
	lines = append(lines, changed("Changed", s.Files, s.More)...)
	if s.Saved {
		lines = append(lines, "All of it was applied, or is on a branch.")
	}
	lines = append(lines, skips("Not looked into", s.Skipped)...)
	return strings.Join(append(lines, s.Notes...), "\n"), nil
}

func changed(heading string, files []repo.Change, more int) []string {
	return rows(heading, files, more, func(c repo.Change) string {
		line := string(c.Kind) + " " + shown(c.Path)
		if c.Kind == repo.Rename {
			line = "move " + shown(c.Path) + " from " + shown(c.From)
		}
		if c.Lines == nil {
			return line + " (binary)"
		}
		return fmt.Sprintf("%s (+%d -%d)", line, c.Lines.Added, c.Lines.Removed)
	})
}

// maxNotes is how many sentences of a plan a question shows.
const maxNotes = 20

// apply asks about the changes under every approval policy, because the thread itself may
// not write to the caller's folder.
func (v *visit) apply(ctx context.Context, h engine.Host) (string, error) {
	p, err := v.worktree.Plan(ctx)
	if err != nil {
		return "", err
	}
	left := skips("Left out", p.Skipped)
	if p.Len() == 0 {
		if err := p.Apply(ctx); err != nil {
			return "", err
		}
		return strings.Join(append([]string{"Nothing to apply: " + v.worktree.Root() + " has all of it."}, left...), "\n"), nil
	}
	changes := p.Changes()
	if n := volume(changes); n > maxShown {
		return "", fmt.Errorf("nothing was changed: the changes are %d MiB, which is too much for a question; the action branch has them", n>>20)
	}
	notes := p.Notes()
	if more := len(notes) - maxNotes; more > 0 {
		notes = append(notes[:maxNotes], fmt.Sprintf("The same is true in other ways of %d more.", more))
	}
	if p.Protected() {
		notes = append([]string{"Among them are files that other programs run by themselves, such as those of git, editors and agents."}, notes...)
	}
	notes = append([]string{"They come from the worktree of the conversation, merged with the files as they are now."}, notes...)
	out := h.ApprovePatch(ctx, protocol.PatchApprovalRequest{
		CallID: "worktree-" + v.worktree.ID(), Changes: changes, Cwd: v.worktree.Root(), Once: true, Notes: notes,
	})
	if err := declined("the changes were not applied", out); err != nil {
		return "", err
	}
	if err := p.Apply(ctx); err != nil {
		return "", err
	}
	return strings.Join(append([]string{fmt.Sprintf("Applied: %d files changed in %s.", p.Len(), v.worktree.Root())}, left...), "\n"), nil
}

// maxShown is how many bytes of changes a question may have.
const maxShown = 16 << 20

// volume returns how many bytes of text changes have.
func volume(changes map[string]protocol.FileChange) (n int) {
	for _, c := range changes {
		switch {
		case c.Add != nil:
			n += len(c.Add.Content)
		case c.Delete != nil:
			n += len(c.Delete.Content)
		case c.Update != nil:
			n += len(c.Update.UnifiedDiff)
		}
	}
	return n
}

func (v *visit) branch(ctx context.Context, h engine.Host, name, message string) (string, error) {
	name = cmp.Or(name, "codex/"+v.worktree.ID())
	s, err := v.worktree.Status(ctx)
	if err != nil {
		return "", err
	}
	lines := []string{fmt.Sprintf("Allow Codex to make the branch %s in the repository of %s, with a commit of %d changed files?",
		shown(name), shown(v.worktree.Root()), len(s.Files)+s.More)}
	lines = append(lines, changed("The files", s.Files[:min(len(s.Files), maxNotes)], len(s.Files)-min(len(s.Files), maxNotes)+s.More)...)
	if message != "" {
		lines = append(lines, "The commit's message: "+elicit.ShowCommand([]string{message}))
	}
	const notDone = "the branch was not made"
	out := h.Approve(ctx, &elicit.Question{Message: strings.Join(lines, "\n"), Once: true, NotDone: notDone})
	if err := declined(notDone, out); err != nil {
		return "", err
	}
	b, err := v.worktree.Branch(ctx, repo.BranchOptions{Name: name, Message: message})
	if err != nil {
		return "", err
	}
	done := fmt.Sprintf("The branch %s is at commit %s. Nothing was checked out.", b.Name, b.Commit)
	return strings.Join(append([]string{done}, skips("As before, and not committed", b.Skipped)...), "\n"), nil
}

// declined reports an outcome other than an approval.
func declined(what string, out elicit.Outcome) error {
	if out.Decision.Approves() {
		return nil
	}
	return fmt.Errorf("%s: %s", what, out.ForModel())
}

func (v *visit) discard(ctx context.Context, token string) (text string, err error) {
	discard := func(ctx context.Context, _ engine.Host) error {
		err := v.worktree.Discard(ctx, token)
		var loss *repo.LossError
		if !errors.As(err, &loss) {
			return err
		}
		text = lossText(loss, token)
		return nil
	}
	if t := v.call.Threads.Hold(v.id); t != nil {
		err = t.Act(ctx, thread.Attendance{}, discard)
	} else {
		err = discard(ctx, nil)
	}
	if err != nil || text != "" {
		return text, err
	}
	return "The worktree was discarded. Its conversation has no folder to work in: begin a new one with codex.", nil
}

// lossText describes the work that would be lost.
func lossText(loss *repo.LossError, token string) string {
	first := "Nothing was discarded: work would be lost. "
	if token != "" {
		first = "Nothing was discarded: the token is not that of the worktree as it is now. Work would be lost. "
	}
	lines := []string{first + "To discard it all the same, call again with token " + loss.Token + "."}
	if loss.Unknown != "" {
		lines = append(lines, "What it has cannot be found out: "+loss.Unknown)
	}
	if s := loss.Status; s != nil {
		lines = append(append(lines, changed("Changed files", s.Files, s.More)...), skips("Files that are not looked into", s.Skipped)...)
	}
	lines = append(lines, rows("Commits that no branch has", loss.Commits, 0, func(s string) string { return elicit.OneLine(s, maxBrief) })...)
	return strings.Join(lines, "\n")
}

// explain returns the text of an error, with its files.
func explain(err error) string {
	var conflict *repo.ConflictError
	var refused *repo.RefusedError
	var abort *engine.AbortError
	switch {
	case errors.As(err, &conflict):
		lines := rows("nothing was changed, because these files cannot be merged", conflict.Conflicts, conflict.More,
			func(c repo.Conflict) string { return shown(c.Path) + ": " + elicit.OneLine(c.Reason, maxBrief) })
		return strings.Join(lines, "\n")
	case errors.As(err, &refused):
		return refused.Reason
	case errors.As(err, &abort):
		return abortCause(abort)
	}
	return err.Error()
}
