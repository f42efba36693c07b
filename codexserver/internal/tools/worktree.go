package tools

import (
	"context"
	"fmt"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/plain"
)

// noteOf returns what the model of a conversation is told about its worktree, where it cannot commit.
func noteOf(w *git.Worktree) string {
	return "You work in a git worktree of your own. You need not commit: what git status names there when you are " +
		"done is committed on its branch " + w.Branch + " for you."
}

// commits makes a turn commit what it leaves in the worktree that was made for its thread, if that works in one. The prompt is
// what the work was asked for by, or its first line.
func (t *Table) commits(b *begun, th *thread.Thread, prompt string) {
	if t.options.Home == "" {
		return
	}
	w, err := t.options.Report.Scratch.FindWorktree(git.Worktrees(t.options.Home), th.Info().Cwd)
	if err != nil {
		b.Remark("Nothing is committed: " + plain.Short(err.Error(), plain.MaxWords) + ".")
		return
	}
	if w == nil || w.Thread != th.ID() {
		return
	}
	b.Order.Subject = git.Subject(prompt)
	b.Order.Worktree = &protocol.Worktree{
		Path: plain.Short(w.Path, maxTree), Branch: plain.Short(w.Branch, maxName), Base: w.Base,
	}
	b.Order.Commit = func(subject string) (commit string, remarks []string) {
		done, err := w.Commit(context.Background(), git.CommitOptions{
			Prompt: subject, Thread: w.Thread, Withheld: t.withheld(w.Cwd),
		})
		if err != nil {
			why := plain.Short(err.Error(), plain.MaxWords)
			return "", []string{"Nothing was committed on " + w.Branch + ": " + why + "."}
		}
		return done.Commit, committed(w.Branch, &done)
	}
}

// committed says what a commit has, and what it lacks.
func committed(branch string, done *git.Committed) (remarks []string) {
	if done.Commit != "" {
		remarks = append(remarks, fmt.Sprintf("The work is committed on %s; bring it back with git merge --squash %s.",
			branch, branch))
	}
	paths, whys := map[string][]string{}, []string(nil)
	for _, gap := range done.Left {
		if paths[gap.Why] == nil {
			whys = append(whys, gap.Why)
		}
		paths[gap.Why] = append(paths[gap.Why], gap.Path)
	}
	for _, why := range whys {
		remarks = append(remarks, fmt.Sprintf("Not committed: %s (%s).", plain.Paths(paths[why]), why))
	}
	return remarks
}

// withheld returns what fails for a path whose content must not be in a commit, for a conversation in a folder.
func (t *Table) withheld(dir string) func(path string) error { return engine.Withheld(t.engine, dir) }
