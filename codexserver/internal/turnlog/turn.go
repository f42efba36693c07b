package turnlog

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	// maxKept bounds the commands and refusals that a turn keeps: the last ones of each.
	maxKept = 1000
	// maxComing bounds the text of a message that is being written, in bytes.
	maxComing = 1 << 20
	// maxRerouted bounds the reroutes that a turn keeps: the first ones.
	maxRerouted = 16
)

// Turn is what one turn does, from before its begin to its end. [Log.Add] writes its events. It is
// safe for concurrent use.
type Turn struct {
	mu       sync.Mutex
	place    place
	began    time.Time // zero before
	duration time.Duration
	status   protocol.TurnStatus // "" before the turn begins
	now      moment
	answer   answer
	commands commands
	refused  []protocol.Refusal
	dropped  protocol.Truncated // how much of the lists is no longer kept
	plan     []protocol.PlanStep
	tokens   tokens
	patches  patches
	diff     string   // of the patches, from the engine
	remarks  []string // for the caller
	tree     tree
}

// place is where a turn runs.
type place struct {
	thread   string
	model    string
	rerouted []protocol.ModelReroute // the first changes of what answers
	dir      string                  // the working folder
	real     string                  // the same without links
}

// answer is what the model says.
type answer struct {
	last    string          // its last message
	coming  strings.Builder // the message that is being written
	text    string          // the turn's last message, at its end
	lacks   string          // why the text is incomplete, or ""
	stopped bool            // the answer to a question has aborted the turn
}

// commands are the commands that the turn runs.
type commands struct {
	list     []*protocol.Command
	running  map[string]*protocol.Command // by call
	approved map[string]approval.Decider  // by the call that was approved
	last     int                          // the number of the last one
	acted    bool                         // something began that may change files
	ran      bool                         // a command, a tool, or a patch that was not applied
}

// NewTurn returns a turn that has not begun.
func NewTurn(o Options) *Turn {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Changes = o.Changes.Resolved(o.Wait)
	return &Turn{now: moment{doing: "starting", since: time.Now()}, tree: tree{options: o, take: git.Look}}
}

// Begin begins the turn. Begun is the event with which the thread began, and used is the thread's last
// token count, or nil. Each Begin needs an End.
func (t *Turn) Begin(ctx context.Context, begun protocol.SessionConfigured, used *protocol.TokenUsage) {
	t.begin(begun, used)
	t.tree.begin(ctx, begun.Cwd, begun.WritableRoots)
}

func (t *Turn) begin(begun protocol.SessionConfigured, used *protocol.TokenUsage) {
	real := begun.Cwd
	if resolved, err := filepath.EvalSymlinks(begun.Cwd); err == nil {
		real = resolved
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.began, t.status = time.Now(), protocol.StatusRunning
	t.place = place{thread: begun.SessionID, model: begun.Model, dir: begun.Cwd, real: real}
	t.tokens.begin(begun, used)
}

// Continue records what the turn did in a process that has ended, before it begins here.
func (t *Turn) Continue(before *protocol.TurnResult) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range before.Commands {
		t.commands.list = append(t.commands.list, &c)
		t.commands.last = max(t.commands.last, c.ID)
	}
	t.refused, t.tree.earlier, t.tree.failed = before.Refused, before.Changes, errCut
	t.dropped = protocol.Truncated{Commands: before.Truncated.Commands, Refused: before.Truncated.Refused}
}

// Began returns when the turn began, and the thread's last token count then, or zeros before.
func (t *Turn) Began() (at time.Time, used *protocol.TokenUsage) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.began, t.tokens.given
}

// Remark keeps remarks for the caller, each once.
func (t *Turn) Remark(words ...string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.remark(words)
}

func (t *Turn) remark(words []string) {
	for _, one := range words {
		if len(t.remarks) < maxKept && !slices.Contains(t.remarks, one) {
			t.remarks = append(t.remarks, one)
		}
	}
}

// Remarks returns the remarks for the caller: why questions could not be answered, and what was left
// out.
func (t *Turn) Remarks() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.remarks)
}

// End ends the turn with the error of [engine.Conversation] Turn. It compares the folder with how it was
// before, for a bounded time.
func (t *Turn) End(err error) {
	found := t.found()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tree.changed = found
	var abort *engine.AbortError
	switch {
	case err == nil:
		t.status = protocol.StatusCompleted
	case errors.As(err, &abort):
		t.status = protocol.StatusAborted
	default:
		t.status = protocol.StatusFailed
	}
	if !t.began.IsZero() {
		t.duration = time.Since(t.began)
	}
}

// done is what a turn has done until a moment.
type done struct {
	result  protocol.TurnResult // all but what the turn changed, and the answer
	cwd     string              // the working folder
	acted   bool                // something began that may change files
	ran     bool                // that was a command, a tool, or a patch that was not applied
	diff    string              // the engine's, of the patches
	changed *changes            // at the end of the turn
}

// did returns what the turn has done until now.
func (t *Turn) did() done {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := protocol.TurnResult{
		ThreadID: Show(t.place.thread, maxName), Status: t.status, Model: Show(t.place.model, maxName), Rerouted: reroutes(t.place.rerouted),
		DurationMS: t.duration.Milliseconds(), Usage: t.tokens.shown(), Refused: slices.Clone(t.refused), Truncated: t.dropped,
	}
	for _, step := range t.plan {
		r.Plan = append(r.Plan, protocol.PlanStep{Step: Show(step.Step, MaxWords), Status: Show(step.Status, maxName)})
	}
	for _, c := range t.commands.list {
		r.Commands = append(r.Commands, *c)
	}
	if r.Status == protocol.StatusRunning {
		r.DurationMS = time.Since(t.began).Milliseconds()
		if len(t.now.questions) > 0 {
			r.Status = protocol.StatusWaiting
		}
	}
	return done{result: r, cwd: t.place.dir, acted: t.commands.acted, ran: t.commands.ran, diff: t.diff, changed: t.tree.changed}
}

// reroutes returns the first reroutes for the result, which never leaves them out.
func reroutes(list []protocol.ModelReroute) (all []protocol.Rerouted) {
	const most, room = 3, 1000
	size := 0
	for i, m := range list[:min(len(list), most)] {
		one := protocol.Rerouted{
			FromProvider: Show(m.FromProvider, maxName), FromModel: Show(m.FromModel, maxName),
			ToProvider: Show(m.ToProvider, maxName), ToModel: Show(m.ToModel, maxName), Reason: Show(m.Reason, maxReason),
		}
		raw, _ := json.Marshal(one, jsontext.AllowInvalidUTF8(true))
		if size += len(raw); i > 0 && size > room {
			break
		}
		all = append(all, one)
	}
	return all
}

// patchChanges returns the changes of the turn's patches, sorted by path, and how many files are left
// out. Paths below the working folder are relative to it.
func (t *Turn) patchChanges() ([]git.Change, int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.patches.changes(t.place.dir), t.patches.omitted
}

// patchOf returns the change of the file at an absolute path by the turn's patches, or nil.
func (t *Turn) patchOf(path string) *git.Change {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.patches.of(path)
}

// patchedOutside returns the changes by patches of the files that a snapshot does not cover, sorted
// by path.
func (t *Turn) patchedOutside(covered func(path string) bool) []git.Change {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.patches.elsewhere(covered)
}

// Tokens returns how many input and output tokens the turn has used, or 0 if they are not known.
func (t *Turn) Tokens() int64 {
	turn, _ := t.Used()
	return turn
}

// Used returns how many input and output tokens the turn and its thread have used, or 0 if they are not known.
func (t *Turn) Used() (turn, thread int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	u := t.tokens.usage()
	if u == nil {
		return 0, 0
	}
	return whole(u.turn), whole(u.thread)
}

func whole(u protocol.TokenUsage) int64 {
	return max(u.InputTokens+u.OutputTokens, u.TotalTokens, 0) // some providers send only the total
}

// Answer returns the turn's last message, and why it is incomplete, or "".
func (t *Turn) Answer() (text, lacks string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.answer.text, t.answer.lacks
}

// Said returns the message that is being written, and the model's last one.
func (t *Turn) Said() (coming, last string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.answer.coming.String(), t.answer.last
}

// Stopped reports whether the answer to a question has aborted the turn.
func (t *Turn) Stopped() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.answer.stopped
}

// folder returns a command's folder for the result, "" for the working folder.
func (t *Turn) folder(cwd string) string {
	if cwd == t.place.dir || cwd == t.place.real {
		return ""
	}
	return Show(cwd, MaxPath)
}

// acts records that something begins that may change files.
func (t *Turn) acts(begun bool) {
	t.tokens.answered = t.tokens.answered || begun
	t.commands.acted = t.commands.acted || begun
}

// speaks records words of the model.
func (t *Turn) speaks(begun bool) {
	t.tokens.answered = t.tokens.answered || begun
}

// reroute records that another model answers, and says it to the caller.
func (t *Turn) reroute(m protocol.ModelReroute) {
	t.place.model = m.ToModel
	if len(t.place.rerouted) < maxRerouted {
		t.place.rerouted = append(slices.Clip(t.place.rerouted), m)
		t.remark([]string{Show(m.Words(), MaxWords) + "."})
	}
}

// runs records the start of a command, which is a number in its thread.
func (t *Turn) runs(m protocol.ExecCommandBegin, number int) {
	c := &t.commands
	c.ran, c.last = true, max(c.last+1, number)
	command := &protocol.Command{
		ID: c.last, Command: ShowCommand(m.Command), Cwd: t.folder(m.Cwd), ApprovedBy: Show(string(c.approved[m.CallID]), maxName),
	}
	delete(c.approved, m.CallID)
	if c.running == nil {
		c.running = map[string]*protocol.Command{}
	}
	c.running[m.CallID] = command
	c.list = keep(append(c.list, command), &t.dropped.Commands)
}

// approve records who approved a call.
func (c *commands) approve(call string, by approval.Decider) {
	if c.approved == nil {
		c.approved = map[string]approval.Decider{}
	}
	c.approved[call] = by
}

// ended records the end of a command.
func (c *commands) ended(m protocol.ExecCommandEnd) {
	if command := c.running[m.CallID]; command != nil {
		command.ExitCode, command.DurationMS = new(m.ExitCode), new(time.Duration(m.Duration).Milliseconds())
		delete(c.running, m.CallID)
	}
}

func (t *Turn) refuse(r protocol.Refusal) {
	t.refused = keep(append(t.refused, r), &t.dropped.Refused)
}

// keep bounds a list, and adds the number of dropped elements to omitted.
func keep[T any](list []T, omitted *int) []T {
	if len(list) <= maxKept {
		return list
	}
	*omitted++
	return slices.Delete(list, 0, 1)
}
