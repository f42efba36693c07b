package report

import (
	"cmp"
	"errors"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/repo"
	"github.com/codexmcp/codexmcp/codexserver/internal/turnlog"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// errCut is why it is not known what a turn's commands changed that two processes ran.
var errCut = errors.New("the server ended during the turn, and what was there before it is not known any more")

// Continue makes the watch and the log continue a turn of a process that has ended. Did is its last
// [Report.JSON]; it has what the turn did until then. It must be called before Begin.
func (w *Watch) Continue(did jsontext.Value) {
	w.tree.failed = errCut
	var before struct {
		Changes   []wireChange  `json:"changes"`
		Commands  []wireCommand `json:"commands"`
		Refused   []wireRefusal `json:"refused"`
		Truncated counts        `json:"truncated"`
	}
	if json.Unmarshal(did, &before) != nil {
		return
	}
	for _, one := range before.Changes {
		change := repo.Change{Path: one.Path, From: one.From, Kind: one.Kind}
		if one.Added != nil && one.Removed != nil {
			change.Lines = &repo.Lines{Added: *one.Added, Removed: *one.Removed}
		}
		w.earlier = append(w.earlier, Change{change, one.By})
	}
	var commands []turnlog.Command
	for _, one := range before.Commands {
		command := turnlog.Command{ID: one.ID, Shown: one.Command, Cwd: one.Cwd, ApprovedBy: approval.Decider(one.ApprovedBy)}
		if one.ExitCode != nil {
			command.Exit = &turnlog.Exit{Code: *one.ExitCode}
			if one.DurationMS != nil {
				command.Exit.Duration = time.Duration(*one.DurationMS) * time.Millisecond
			}
		}
		commands = append(commands, command)
	}
	var refused []turnlog.Refusal
	for _, one := range before.Refused {
		refused = append(refused, turnlog.Refusal{
			Kind: one.Kind, What: one.What, Cwd: one.Cwd, Why: one.Why, By: approval.Decider(one.By), Reason: elicit.Reason(one.Reason),
		})
	}
	w.turn.Continue(commands, refused, turnlog.Dropped{Commands: before.Truncated.Commands, Refused: before.Truncated.Refused})
}

// withEarlier adds the changes of an earlier process to those of this one.
func (w *Watch) withEarlier(now []Change) []Change {
	seen := map[string]int{}
	all := make([]Change, 0, len(w.earlier)+len(now))
	for _, change := range append(append(all, w.earlier...), now...) {
		before, again := seen[cmp.Or(change.From, change.Path)]
		if !again {
			seen[change.Path] = len(all)
			all = append(all, change)
			continue
		}
		if change.Lines != nil && all[before].Lines != nil {
			change.Lines = &repo.Lines{Added: change.Lines.Added + all[before].Lines.Added, Removed: change.Lines.Removed + all[before].Lines.Removed}
		}
		if all[before].Kind == repo.Add && change.Kind == repo.Update {
			change.Kind = repo.Add
		}
		all[before] = change
	}
	return all
}
