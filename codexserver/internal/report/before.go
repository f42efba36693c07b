package report

import (
	"cmp"
	"errors"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/repo"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// errCut is why it is not known what a turn's commands changed that two processes ran.
var errCut = errors.New("the server ended during the turn, and what was there before it is not known any more")

// Continue makes the collector continue a turn of a process that has ended. Did is its last
// [Report.JSON]; it has what the turn did until then. It must be called before Begin.
func (c *Collector) Continue(did jsontext.Value) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tree.failed = errCut
	var w struct {
		Changes   []wireChange  `json:"changes"`
		Commands  []wireCommand `json:"commands"`
		Refused   []wireRefusal `json:"refused"`
		Truncated counts        `json:"truncated"`
	}
	if json.Unmarshal(did, &w) != nil {
		return
	}
	c.report.omitted = counts{Changes: w.Truncated.Changes, Commands: w.Truncated.Commands, Refused: w.Truncated.Refused}
	for _, one := range w.Changes {
		change := repo.Change{Path: one.Path, From: one.From, Kind: one.Kind}
		if one.Added != nil && one.Removed != nil {
			change.Lines = &repo.Lines{Added: *one.Added, Removed: *one.Removed}
		}
		c.earlier = append(c.earlier, Change{change, one.By})
	}
	for _, one := range w.Commands {
		command := &Command{ID: one.ID, Shown: one.Command, Cwd: one.Cwd, ApprovedBy: approval.Decider(one.ApprovedBy)}
		if one.ExitCode != nil {
			command.Exit = &Exit{Code: *one.ExitCode}
			if one.DurationMS != nil {
				command.Exit.Duration = time.Duration(*one.DurationMS) * time.Millisecond
			}
		}
		c.list = append(c.list, command)
		c.last = max(c.last, one.ID)
	}
	for _, one := range w.Refused {
		c.report.Refused = append(c.report.Refused, Refusal{
			Kind: one.Kind, What: one.What, Cwd: one.Cwd, Why: one.Why, By: approval.Decider(one.By), Reason: elicit.Reason(one.Reason),
		})
	}
}

// withEarlier adds the changes of an earlier process to those of this one.
func (c *Collector) withEarlier(now []Change) []Change {
	seen := map[string]int{}
	all := make([]Change, 0, len(c.earlier)+len(now))
	for _, change := range append(append(all, c.earlier...), now...) {
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
