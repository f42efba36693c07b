package report

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/repo"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// maxKept bounds the commands, refusals and steps that a collector keeps. It keeps the
// last ones of each.
const maxKept = 1000

// Options configure how a turn is watched. The zero value takes the changes from events.
type Options struct {
	// Scratch says where git works for the snapshot. Untrusted programs, such as the
	// turn's commands, must not be able to write there. Without a folder there is no
	// snapshot.
	Scratch repo.Scratch
	// Wait makes Begin wait for the snapshot. Engines that do not wait for Ready need
	// it: each [engine.Streamer].
	Wait bool
	// Off leaves out the snapshot: the changes are those of patches.
	Off bool
	// Files bounds the files that a snapshot reads, see [repo.SurveyOptions].
	Files int
	// Before and After are how long reading the folder may take before and after the turn.
	// Default: 5s before, or 2s with Wait, and 30s after.
	Before, After time.Duration
	// Turns knows the other turns of the server. Nil means that there are none.
	Turns *Turns
	// Looks limits how many folders are read at a time, since each takes file
	// descriptors: its capacity is the limit. A turn waits for a place within its own
	// time limit. Nil means no limit.
	Looks chan struct{}
	// Logger receives the reason why a snapshot failed. Default: nothing is logged.
	Logger *slog.Logger
}

// Collector collects what one turn does. It is safe for concurrent use.
type Collector struct {
	tree tree
	acts *timeline

	mu       sync.Mutex
	report   Report
	dir      string
	begin    time.Time
	acted    bool
	asked    int // questions that are open
	commands map[string]*Command
	list     []*Command
	last     int                         // the number of the thread's last command
	approved map[string]approval.Decider // by the call that was approved
	patches  patches
	earlier  []Change // of the process that ran the turn before
	diff     string   // of the turn
	tokens   tokens
}

// New returns the collector of one turn.
func New(o Options) *Collector {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Collector{
		tree:     tree{options: o, take: repo.Look},
		acts:     newTimeline(&o),
		commands: map[string]*Command{},
		approved: map[string]approval.Decider{},
	}
}

// Begin begins the turn. T is the event with which the thread began, and used is the
// thread's last token count, or nil. Roots are folders besides the working folder where
// commands may write. Each Begin needs an End.
func (c *Collector) Begin(ctx context.Context, t protocol.SessionConfigured, used *protocol.TokenUsage, roots ...string) {
	c.mu.Lock()
	c.begin, c.dir = time.Now(), t.Cwd
	c.report.ThreadID, c.report.Model, c.report.Status, c.report.ChangesFrom = t.SessionID, t.Model, Running, FromEvents
	c.tokens.begin(t, used)
	c.mu.Unlock()
	if filepath.IsAbs(t.Cwd) {
		c.acts.enter(cmp.Or(repo.Root(realPath(t.Cwd)), realPath(t.Cwd)))
	}
	c.tree.begin(ctx, t.Cwd, roots)
}

// realPath returns the path without symbolic links if it exists.
func realPath(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

// Number sets how many commands the thread ran before the turn.
func (c *Collector) Number(commands int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = max(c.last, commands)
}

// Ready is called before each event is delivered. If the event begins a change of files,
// it waits until the snapshot is taken or ctx ends, for a bounded time.
func (c *Collector) Ready(ctx context.Context, m protocol.EventMsg) {
	if acts(m) {
		c.tree.ready(ctx)
	}
}

// acts reports whether an event begins something that may change files.
func acts(m protocol.EventMsg) bool {
	switch m.(type) {
	case protocol.ExecCommandBegin, protocol.PatchApplyBegin, protocol.MCPToolCallBegin:
		return true
	}
	return false
}

// Event records an event. It does not block. It ignores events before Begin.
func (c *Collector) Event(m protocol.EventMsg) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.begin.IsZero() {
		return
	}
	if acts(m) {
		c.acted = true
		c.tree.acting()
	}
	c.tokens.event(m)
	switch m := m.(type) {
	case protocol.TokenCount:
		if m.RateLimits != nil {
			c.report.Quota = m.RateLimits
		}
	case protocol.PlanUpdate:
		c.report.Plan = m.Plan
	case protocol.ExecCommandBegin:
		c.acts.begin(m.CallID, m.Began, false, nil)
		c.last++
		command := &Command{ID: c.last, Shown: showCommand(m.Command), Cwd: show(m.Cwd, maxPath), ApprovedBy: c.approved[m.CallID]}
		delete(c.approved, m.CallID)
		c.commands[m.CallID] = command
		c.list = keep(append(c.list, command), &c.report.omitted.Commands)
	case protocol.ExecCommandEnd:
		c.acts.done(m.CallID, true)
		if command := c.commands[m.CallID]; command != nil {
			command.Exit = &Exit{m.ExitCode, time.Duration(m.Duration)}
			delete(c.commands, m.CallID)
		}
	case protocol.TurnDiff:
		c.diff = m.UnifiedDiff
	case protocol.MCPToolCallBegin:
		c.acts.begin(m.CallID, time.Time{}, false, nil)
	case protocol.MCPToolCallEnd:
		c.acts.done(m.CallID, true)
	case protocol.PatchApplyBegin:
		c.acts.begin(m.CallID, m.Began, true, c.patches.begin(m))
	case protocol.PatchApplyEnd:
		c.acts.done(m.CallID, m.Success)
		c.patches.end(m)
	case protocol.BackgroundEvent:
		if m.Refused != nil {
			c.refuse(refusalOf(m.Refused))
		}
	}
}

// Tokens returns how many input and output tokens the turn has used, or 0 if they are
// not known.
func (c *Collector) Tokens() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	u := c.tokens.usage()
	if u == nil {
		return 0
	}
	return max(u.Turn.InputTokens+u.Turn.OutputTokens, u.Turn.TotalTokens) // some providers send only the total
}

// keep bounds a list, and adds the number of dropped elements to omitted.
func keep[T any](list []T, omitted *int) []T {
	if len(list) <= maxKept {
		return list
	}
	*omitted++
	return slices.Delete(list, 0, 1)
}

// Asked records a question. It does not block.
func (c *Collector) Asked(*approval.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked++
}

// Decided records the decision about a question. It does not block.
func (c *Collector) Decided(r *approval.Request, d approval.Decision) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked--
	approved := d.Decision.Approves()
	refusal := Refusal{Kind: "other", Why: show(d.ForModel(), maxWords), By: d.By, Reason: d.Reason}
	switch m := r.Event.(type) {
	case protocol.ExecApprovalRequest:
		if approved {
			c.approved[m.CallID] = d.By
		}
		refusal.Kind, refusal.What, refusal.Cwd = "command", showCommand(m.Command), show(m.Cwd, maxPath)
	case protocol.PatchApprovalRequest:
		refusal.Kind, refusal.What = "patch", showPaths(slices.Sorted(maps.Keys(m.Changes)))
	default:
		if r.Question != nil {
			refusal.What = show(r.Question.Message, maxWords)
		}
	}
	if !approved {
		c.refuse(refusal)
	}
}

func (c *Collector) refuse(r Refusal) {
	c.report.Refused = keep(append(c.report.Refused, r), &c.report.omitted.Refused)
}

// refusalOf describes what the engine refused by itself.
func refusalOf(r *protocol.Refused) Refusal {
	out := Refusal{Kind: "other", Why: show(r.Reason, maxWords), By: approval.ByEngine, Reason: reasonPolicy}
	switch {
	case len(r.Command) > 0:
		out.Kind, out.What, out.Cwd = "command", showCommand(r.Command), show(r.Cwd, maxPath)
	case len(r.Changes) > 0:
		out.Kind, out.What = "patch", showPaths(slices.Sorted(maps.Keys(r.Changes)))
	default:
		out.What = show(r.Tool, maxWords)
	}
	return out
}

// reasonPolicy is the reason of a refusal by the engine.
const reasonPolicy elicit.Reason = "policy"

// End ends the turn with the error of [engine.Conversation] Turn. It compares the folder
// with the snapshot, for a bounded time.
func (c *Collector) End(err error) {
	found, unknown := c.tree.end()
	c.acts.leave()
	c.mu.Lock()
	defer c.mu.Unlock()
	var abort *engine.AbortError
	switch {
	case err == nil:
		c.report.Status = Completed
	case errors.As(err, &abort):
		c.report.Status = Aborted
	default:
		c.report.Status = Failed
	}
	if !c.begin.IsZero() {
		c.report.Duration = time.Since(c.begin)
	}
	if unknown != nil {
		c.report.Changes = c.patched()
		c.report.omitted.Changes = c.patches.omitted
		if c.acted || !errors.Is(unknown, errEnded) { // a turn that ran nothing may end before the snapshot
			c.report.Unknown = []repo.Gap{{Path: c.dir, Why: reason(unknown)}}
		}
		c.report.Untold = len(c.list) > 0 && !errors.Is(unknown, errOff) && !errors.Is(unknown, errNone)
		c.diff = diffOfPatches(c.diff, c.dir)
		return
	}
	elsewhere := c.patches.elsewhere(c.tree.covers)
	c.diff = diffOf(found, elsewhere)
	for _, change := range found.changes {
		path := change.Path
		if !filepath.IsAbs(filepath.FromSlash(path)) {
			path = filepath.Join(c.tree.root(), filepath.FromSlash(path))
		}
		c.report.Changes = append(c.report.Changes, Change{change, c.acts.origin(change, path, c.patches.of(path))})
	}
	for _, change := range elsewhere {
		c.report.Changes = append(c.report.Changes, Change{change, ByPatch})
	}
	sort.SliceStable(c.report.Changes, func(i, j int) bool { return c.report.Changes[i].Path < c.report.Changes[j].Path })
	c.report.ChangesFrom, c.report.Unknown = FromTree, found.gaps
}

// patched returns the changes of the turn's patches.
func (c *Collector) patched() []Change {
	var list []Change
	for _, change := range c.patches.changes(c.dir) {
		list = append(list, Change{change, ByPatch})
	}
	return c.withEarlier(list)
}

// Diff returns the turn's changes in git's form, after the turn has ended. Lines that
// begin with # name what the diff lacks. It is "" for a turn without changes.
func (c *Collector) Diff() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.diff
}

// Report returns what the turn has done until now. While it runs, the report has only
// the changes of its patches.
func (c *Collector) Report() Report {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.report
	r.Usage = c.tokens.usage()
	r.Refused = slices.Clone(r.Refused)
	for _, command := range c.list {
		r.Commands = append(r.Commands, *command)
	}
	if r.Status != Running {
		return r
	}
	if c.asked > 0 {
		r.Status = Waiting
	}
	r.Duration = time.Since(c.begin)
	r.Changes = c.patched()
	r.omitted.Changes = c.patches.omitted
	r.Unknown = []repo.Gap{{Path: c.dir, Why: errRuns.Error()}}
	return r
}
