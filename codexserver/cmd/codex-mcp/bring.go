package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/cmd/codex-mcp/internal/terminal"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/codexserver/internal/patch"
	"github.com/codexmcp/codexmcp/codexserver/internal/record"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/plain"
	"github.com/spf13/pflag"
)

// checkBring fails for what --bring does not go with.
func (a *askOptions) checkBring(fs *pflag.FlagSet) error {
	switch {
	case !fs.Changed("resume"):
		return errors.New("--bring needs --resume with the id of a conversation, or last")
	case len(a.task) > 0:
		return errors.New("--bring runs no task; leave out one of the two")
	}
	for _, name := range []string{"demo", "json", "check", "image"} {
		if fs.Changed(name) {
			return fmt.Errorf("--bring runs no task, and asks on the terminal; leave out --%s", name)
		}
	}
	return nil
}

// Bring writes the work of a conversation's worktree into the checkout that the worktree was made from, if the person at
// the terminal approves it. No engine, model or server takes part.
func (a *askOptions) Bring(ctx context.Context, stdout, stderr io.Writer) error {
	ctx, stop := signal.NotifyContext(ctx, endingSignals()...)
	defer stop()
	return status(a.bringOn(ctx, terminal.Standard(os.Stdin, stdout, stderr), os.Getenv))
}

// bringOn is Bring on a console, and returns the exit status.
func (a *askOptions) bringOn(ctx context.Context, console *terminal.Console, getenv func(string) string) int {
	c, err := configure(a.options, getenv, a.logger(console.Err))
	if err == nil {
		err = c.bring(ctx, a, console)
	}
	refusal := (*git.Refusal)(nil)
	switch {
	case err == nil:
		return terminal.StatusAnswered
	case errors.As(err, &refusal):
		fmt.Fprint(console.Err, "codex-mcp: nothing was brought: ", terminal.Row(refusal.Why), pathLines(refusal.Paths))
		return terminal.StatusFailed
	case ctx.Err() != nil, errors.Is(err, context.Canceled):
		fmt.Fprintln(console.Err, "codex-mcp: nothing was brought: interrupted")
		return terminal.StatusInterrupted
	}
	fmt.Fprintln(console.Err, "codex-mcp: nothing was brought:", terminal.Prose(err.Error()))
	if wrongLine(err) || errors.Is(err, engine.ErrNotFound) {
		return statusWrong
	}
	return terminal.StatusImpossible
}

// pathLines returns the end of a line and, if there are paths, a colon and a line for each.
func pathLines(paths []string) string {
	const most = 40
	lines := "\n"
	if len(paths) > 0 {
		lines = ":\n"
	}
	for _, path := range paths[:min(len(paths), most)] {
		lines += "  " + elicit.ShowCommand([]string{path}) + "\n"
	}
	if more := len(paths) - most; more > 0 {
		lines += fmt.Sprintf("  and %d more\n", more)
	}
	return lines
}

// bringing brings the work of one worktree.
type bringing struct {
	*configuration
	console  *terminal.Console
	thread   string
	worktree *git.Worktree
	withheld func(folder string) func(path string) error // see [engine.Withholder]
	notes    []string                                    // what a person is told of what is not brought
}

// bring finds the worktree of a conversation, by the record that the server has made of it, and brings its work.
func (c *configuration) bring(ctx context.Context, a *askOptions, console *terminal.Console) error {
	about, _, err := native.NamesOf(ctx, c.home, a.resume)
	if err != nil {
		return err
	}
	e, err := native.New(c.nativeOptions()) // which reads Codex's configuration too, and starts nothing
	if err != nil {
		return err
	}
	defer e.Close()
	traits := engine.TraitsOf(e)
	scratch := git.Scratch{Dir: filepath.Join(c.home, "tmp"), Programs: &box.Programs{More: traits.Reach}}
	w, err := scratch.FindWorktree(git.Worktrees(c.home), about.Cwd)
	switch {
	case err != nil:
		return err
	case w == nil:
		return &git.Refusal{Why: "the conversation " + about.ConversationID + " has no worktree of this server"}
	case w.Thread != "" && w.Thread != about.ConversationID:
		return &git.Refusal{Why: "the worktree " + w.Path + " is another conversation's"}
	}
	if err := traits.Holder(ctx, about.ConversationID); err != nil {
		return &git.Refusal{Why: err.Error()} // its work is half done
	}
	b := &bringing{configuration: c, console: console, thread: about.ConversationID, worktree: w, withheld: e.Withheld}
	return b.run(ctx, a.options)
}

// run asks and writes. Without an error the work is in the checkout.
func (b *bringing) run(ctx context.Context, o *options) error {
	w := b.worktree
	if !b.console.Asks(false) {
		return &git.Refusal{Why: "there is no terminal to ask on"}
	}
	if err := b.commit(ctx); err != nil {
		return err
	}
	merge, err := w.Merge(ctx)
	if err != nil {
		return err
	}
	defer merge.Close()
	plan, err := b.plan(ctx, merge)
	if err != nil {
		return err
	}
	changes := plan.Changes()
	if len(changes) == 0 {
		b.say("there is nothing to bring: " + word(w.Root) + " has the work of " + w.Branch)
		for _, note := range b.notes {
			b.say(plain.Line(note))
		}
		return nil
	}
	question, err := b.question(plan, merge.Commit)
	if err != nil {
		return err
	}
	approved, feedback, err := terminal.Approve(ctx, b.console, question)
	if err != nil {
		return err
	}
	if err := b.apply(o, plan, question, approved, feedback); err != nil {
		return err
	}
	root := word(w.Root)
	b.say(fmt.Sprintf("brought %s of %s into %s, and nothing is committed there; to remove the branch and the "+
		"worktree: git -C %[3]s worktree remove %s && git -C %[3]s branch -D %[2]s",
		plain.Counted(len(changes), "file"), w.Branch, root, word(w.Path)))
	return nil
}

func (b *bringing) say(text string) { fmt.Fprintln(b.console.Err, "codex-mcp:", text) }

// word returns a path as a word for a shell.
func word(path string) string { return elicit.ShowCommand([]string{path}) }

// commit commits what is left of work in the worktree, such as that of a server that was killed. What cannot be committed is
// not brought, and a person is told.
func (b *bringing) commit(ctx context.Context) error {
	if _, err := os.Lstat(b.worktree.Path); errors.Is(err, fs.ErrNotExist) {
		return nil // its branch is still there
	}
	done, err := b.worktree.Commit(ctx, git.CommitOptions{Thread: b.thread, Withheld: b.withheld(b.worktree.Path)})
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		b.notes = append(b.notes, "What is not committed in the worktree is not in it: "+err.Error())
	case len(done.Left) > 0:
		var left []string
		for _, gap := range done.Left {
			left = append(left, gap.Path)
		}
		b.notes = append(b.notes, "Not in it, since it could not be committed: "+plain.Paths(left))
	}
	return nil
}

// plan plans what the merge changes. It leaves out what the configuration withholds, and what is there already.
func (b *bringing) plan(ctx context.Context, merge *git.Merge) (*patch.Plan, error) {
	withheld := b.withheld(merge.Root)
	if withheld != nil {
		if err := withheld(merge.Root); err != nil {
			return nil, err
		}
	}
	var files []patch.File
	var left []string
	byPath := map[string]git.Merged{}
	for _, f := range merge.Files {
		path := filepath.Join(merge.Root, filepath.FromSlash(f.Path))
		if withheld != nil && withheld(path) != nil {
			left = append(left, f.Path)
			continue
		}
		byPath[path] = f
		files = append(files, patch.File{Path: f.Path, Was: f.Was, Data: f.Data, Program: f.Program})
	}
	if len(left) > 0 {
		b.notes = append(b.notes, "Left out, because the configuration withholds it: "+plain.Paths(left))
	}
	plan, others, err := patch.Replace(patch.Folder{Path: merge.Root, Real: merge.Root, Check: withheld}, files)
	if wrong := (*patch.NameError)(nil); errors.As(err, &wrong) {
		return nil, &git.Refusal{Why: "no working tree may have such a file", Paths: []string{wrong.Path}}
	}
	if err != nil {
		return nil, err
	}
	// After the files were read: what changes from now on, the plan itself finds before it writes.
	var changed []git.Merged
	for path := range plan.Changes() {
		changed = append(changed, byPath[path])
	}
	dirty, err := merge.Dirty(ctx, changed)
	if err != nil {
		return nil, err
	}
	if others = append(others, dirty...); len(others) > 0 {
		slices.Sort(others)
		return nil, &git.Refusal{
			Why:   "in " + merge.Root + " these files are not as HEAD has them; commit, stash or move them first",
			Paths: slices.Compact(others),
		}
	}
	return plan, nil
}

// maxShown bounds the text that a question shows, in bytes.
const maxShown = 4 << 20

// question returns what is asked.
func (b *bringing) question(plan *patch.Plan, commit string) (approval.Patch, error) {
	w := b.worktree
	about := "It is the work of " + w.Branch + " in " + w.Path + ", merged with HEAD; nothing is committed."
	p := approval.Patch{
		CallID: "bring-" + commit, Changes: plan.Changes(), Cwd: w.Root, Once: true, Why: plan.Why(),
		Asker: "codex-mcp", Notes: append([]string{about}, b.notes...),
	}
	size := 0
	for _, change := range p.Changes {
		size += len(change.Diff())
	}
	if size > maxShown {
		return p, &git.Refusal{Why: fmt.Sprintf("its changes are more text than a question shows (%d bytes); "+
			"merge it with git: git merge --squash %s", size, w.Branch)}
	}
	return p.Complete(true).(approval.Patch), nil
}

// apply records the answer and, if it approves, what is written, and writes it. An approval that cannot be recorded does
// not count.
func (b *bringing) apply(o *options, plan *patch.Plan, p approval.Patch, approved bool, feedback string) error {
	end, err := b.openLogs(o, "native")
	defer end()
	if err != nil {
		return err
	}
	log := record.To(b.record)
	line := record.Line{Event: record.Decided, Thread: b.thread, Call: p.CallID, Facts: p.Facts(true)}
	line.By, line.Decision, line.Feedback = string(approval.ByTerminal), string(elicit.Denied), feedback
	if !approved {
		line.Bound()
		_, err := log.Add(line, false)
		return errors.Join(&git.Refusal{Why: "it was denied"}, err)
	}
	line.Decision = string(elicit.Approved)
	id, err := log.Add(line, true)
	if err == nil {
		begins := record.Line{Event: record.Begins, Thread: b.thread, Call: p.CallID, DecisionID: id}
		begins.Facts = p.Facts(false)
		_, err = log.Add(begins, true)
	}
	if err != nil {
		return fmt.Errorf("the approval could not be recorded, so it does not count: %w", err)
	}
	begun, exit, words := time.Now(), 0, ""
	if err = plan.Apply(); err != nil {
		exit, words, err = 1, err.Error(), &git.Refusal{Why: err.Error()}
	}
	ends := record.Line{Event: record.Ends, Thread: b.thread, Call: p.CallID, DecisionID: id}
	ends.Exit, ends.Took, ends.Words = &exit, time.Since(begun).Milliseconds(), plain.Status(words)
	if _, unrecorded := log.Add(ends, false); unrecorded != nil {
		b.log.Warn("not recorded", "error", unrecorded)
	}
	return err
}
