package turn

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/changes"
	"github.com/codexmcp/codexmcp/codexserver/internal/record"
	"github.com/codexmcp/codexmcp/codexserver/internal/show"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/paths"
	"github.com/codexmcp/codexmcp/internal/plain"
	"github.com/codexmcp/codexmcp/internal/safefile"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	// maxKept bounds the commands and refusals that a turn keeps: the last ones of each.
	maxKept = 1000
	// maxComing bounds the text of a message that is being written, in bytes.
	maxComing = 1 << 20
	// maxRerouted is how many reroutes the caller is told of in words.
	maxRerouted = 16
	// maxReason bounds the reason of a reroute in the result, in bytes.
	maxReason = 200
)

// Turn is what one turn does, from before its begin to its end. [Turn.Add] reads its events. It is
// safe for concurrent use.
type Turn struct {
	// Order is set by whoever makes the turn, before [Turn.Queue]. From then on only the turn changes it.
	Order Order

	started chan struct{} // closed when the engine has reported the start
	done    chan struct{} // closed when the turn has ended

	mu        sync.Mutex
	ctx       context.Context         // ends with the turn at the latest; nil before it is queued
	stop      context.CancelCauseFunc // ends ctx
	cause     error                   // why it was interrupted before it was queued
	place     place
	time      span
	status    protocol.TurnStatus // "" while the turn is queued
	err       error               // with which it ended
	concluded *Result             // nil before [Turn.Conclude] has made it
	result    *Result             // nil before the end
	now       moment
	answer    answer
	commands  commands
	refused   []protocol.Refusal
	failed    failures
	dropped   protocol.Truncated // how much of the lists is no longer kept
	plan      []protocol.PlanStep
	tokens    tokens
	remarks   []string // for the caller
	missing   []protocol.Missing
	folder    folder
	setup     check // of a new worktree
	check     check
	form      form
	stopped   bool // a person has ended the turn

	// attempts are all of several attempts, for the first of them, which is the turn of the call; nil for other turns. They do
	// not change after [Join].
	attempts []*Turn
}

// span is when the turn ran.
type span struct {
	first    time.Time // its begin in the first process that ran it; zero before
	began    time.Time // its begin here; zero before
	duration time.Duration
}

// folder is the working folder, before the turn and after it.
type folder struct {
	patches   changes.Patches
	diff      string // of the patches, from the engine
	options   changes.Options
	before    *changes.Before   // nil before the turn begins
	found     *changes.Found    // at the end of the turn
	continued bool              // in another process
	earlier   []protocol.Change // of that
	roots     []string          // further folders in which commands may write
}

// place is where a turn runs.
type place struct {
	thread   string
	rollout  string // the thread's file, or ""
	model    string
	rerouted []protocol.Rerouted // the first changes of what answers, few and short: the result never leaves them out
	reroutes int                 // all
	dir      string              // the working folder
	real     string              // the same without links
}

// answer is what the model says.
type answer struct {
	Said
	coming  strings.Builder // its Coming
	stopped bool            // a person has ended the turn, perhaps by the answer to a question
}

// commands are the commands that the turn runs.
type commands struct {
	list     []*protocol.Command
	approved map[string]grant // by the call that was approved, until it begins
	open     map[string]*open // by call
	last     int              // the number of the last one
	acted    bool             // something began that may change files
	ran      bool             // a command, a tool, or a patch that was not applied
}

// ending is the status of a turn that has ended but for its result.
const ending protocol.TurnStatus = "ending"

// New returns a turn that has not begun. O says how it finds what it changes.
func New(o changes.Options) *Turn {
	return &Turn{
		now: moment{Now: show.Now{Doing: "starting", Since: time.Now()}}, folder: folder{options: o},
		started: make(chan struct{}), done: make(chan struct{}),
		commands: commands{approved: map[string]grant{}, open: map[string]*open{}},
	}
}

// Queue queues the turn, once. It ends with life at the latest.
func (t *Turn) Queue(life context.Context) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ctx, t.stop = context.WithCancelCause(life); t.cause != nil {
		t.stop(t.cause)
	}
}

// Context returns the context of a turn that was queued.
func (t *Turn) Context() context.Context {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ctx
}

// Interrupt ends the turn, without waiting, with a cause. It does nothing after the end. The first of several attempts takes
// the others with it.
func (t *Turn) Interrupt(cause error) {
	for _, attempt := range t.all() {
		attempt.end(cause)
	}
}

// Release ends what still waits for the turn, whose work has ended.
func (t *Turn) Release() { t.end(nil) }

// end ends this turn alone.
func (t *Turn) end(cause error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stop == nil {
		t.cause = cause
		return
	}
	t.stop(cause)
}

// Started returns a channel that is closed when the engine has reported the start.
func (t *Turn) Started() <-chan struct{} { return t.started }

// Done returns a channel that is closed when the turn has ended.
func (t *Turn) Done() <-chan struct{} { return t.done }

// Wait waits for the end of the turn. It returns nil, an [*engine.TurnError] or an [*engine.AbortError], with a
// [*SpentError] if the budget has ended the turn. A turn that never began counts as aborted.
func (t *Turn) Wait() error {
	<-t.done
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

// ThreadID returns the id of the turn's thread.
func (t *Turn) ThreadID() string { return t.Order.Thread }

// Begin begins the turn. Begun is the event with which the thread began, and used is the thread's last
// token count, or nil. Each Begin needs an End. The time of its budget begins: a spent one interrupts the turn with a
// [*SpentError].
func (t *Turn) Begin(ctx context.Context, begun protocol.SessionConfigured, used *protocol.TokenUsage) {
	real := paths.Real(begun.Cwd)
	t.mu.Lock()
	t.time.began, t.status = time.Now(), protocol.StatusRunning
	passed := time.Duration(0)
	if t.folder.continued {
		used, passed = t.tokens.given, time.Since(t.time.first)
	} else {
		t.time.first = t.time.began
	}
	t.Order.Budget.begin(ctx, t.stop, passed)
	t.place = place{thread: begun.SessionID, rollout: begun.RolloutPath, model: begun.Model, dir: begun.Cwd, real: real}
	t.tokens.begin(begun, used)
	earlier, continued := t.folder.earlier, t.folder.continued
	t.folder.roots = begun.WritableRoots
	t.mu.Unlock()
	var before *changes.Before
	if continued {
		before = changes.Continued(begun.Cwd, earlier)
	} else {
		before = changes.Look(ctx, begun.Cwd, begun.WritableRoots, t.folder.options)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.folder.before = before
}

// Continue records what the turn did in a process that has ended, before it begins here. It began there at a
// time, when its thread had used tokens.
func (t *Turn) Continue(before *protocol.TurnResult, began time.Time, used *protocol.TokenUsage) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.time.first, t.tokens.given = began, used
	for _, c := range before.Commands {
		t.commands.list = append(t.commands.list, &c)
		t.commands.last = max(t.commands.last, c.ID)
	}
	t.refused, t.folder.earlier, t.folder.continued = before.Refused, before.Changes, true
	t.dropped = protocol.Truncated{Commands: before.Truncated.Commands, Refused: before.Truncated.Refused}
}

// Remark keeps remarks for the caller, each once. It does nothing after the end.
func (t *Turn) Remark(words ...string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.remark(words...)
}

// remark is Remark for a caller that holds t.mu.
func (t *Turn) remark(words ...string) {
	for _, one := range words {
		if !t.over() && len(t.remarks) < maxKept && !slices.Contains(t.remarks, one) {
			t.remarks = append(t.remarks, one)
		}
	}
}

// Ready is called before each event is delivered. If the event begins a change of files,
// it waits until the snapshot is taken or the turn ends, for a bounded time.
func (t *Turn) Ready(m protocol.EventMsg) {
	if !Changes(m) {
		return
	}
	t.mu.Lock()
	before := t.folder.before
	t.mu.Unlock()
	before.Ready()
}

// Conclude makes the result of the turn from the error of [engine.Conversation] Turn. It compares the folder with how it
// was before, and commits its work, each for a bounded time, and returns the diff. [Turn.End] must follow. Later calls are ignored.
func (t *Turn) Conclude(err error) (diff string) {
	if safefile.IsFull(err) {
		_ = t.folder.options.Room.Release() // of what is closed, nothing needs to be written
	}
	t.mu.Lock()
	if t.status == ending || t.over() {
		t.mu.Unlock()
		return ""
	}
	if err == nil && t.Order.Budget.bounds() && t.tokens.used() == 0 {
		t.remark("The budget of tokens was not held: the model's provider does not count them.")
	}
	before, work := t.folder.before, changes.Did{
		Begun: t.status != "", Patches: &t.folder.patches, Diff: t.folder.diff,
		Acted: t.commands.acted, Ran: t.commands.ran, Commands: len(t.commands.list) > 0,
	}
	t.status, t.err = ending, err
	t.mu.Unlock()
	found := before.After(work) // which alone has the patches from now on
	tree := t.Order.Worktree
	if work.Begun && t.Order.Commit != nil {
		committed := *tree
		committed.Commit = t.commit()
		tree = &committed
	}
	t.conclude(err, &found, tree)
	return found.Diff
}

// over reports whether the turn has ended. The caller holds t.mu.
func (t *Turn) over() bool { return t.result != nil }

// End ends the turn with the result that [Turn.Conclude] has made. If that panicked, the result says so. Later calls are
// ignored.
func (t *Turn) End() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over() {
		return
	}
	if t.result = t.concluded; t.result == nil {
		t.result = broken(t.Order.Thread)
	}
	t.status, t.Order.Read = t.result.Status, nil // the turn may be kept for long
	t.now.questions = nil
	if t.stop != nil {
		t.stop(nil)
	}
	close(t.done)
	if t.now.first != nil {
		t.now.change()
	}
}

// So returns what the turn has done until now, without the answer. While it runs, the result has
// only the changes of its patches.
func (t *Turn) So() protocol.TurnResult {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.so()
}

// so is So for a caller that holds t.mu.
func (t *Turn) so() protocol.TurnResult {
	r := protocol.TurnResult{
		ThreadID: plain.Short(t.place.thread, plain.MaxName), Status: t.status,
		Model: plain.Short(t.place.model, plain.MaxName), Rerouted: t.place.rerouted,
		DurationMS: t.time.duration.Milliseconds(), Usage: t.tokens.shown(), Check: t.check.Check,
		Refused: append(slices.Clone(t.refused), t.failed.refusals()...), Missing: slices.Clone(t.missing),
		Truncated: t.dropped,
	}
	for _, step := range t.plan {
		r.Plan = append(r.Plan, protocol.PlanStep{
			Step: plain.Short(step.Step, plain.MaxWords), Status: plain.Short(step.Status, plain.MaxName),
		})
	}
	for _, c := range t.commands.list {
		r.Commands = append(r.Commands, *c)
	}
	if r.Status == protocol.StatusRunning {
		r.DurationMS = time.Since(t.time.began).Milliseconds()
		if len(t.now.questions) > 0 {
			r.Status = protocol.StatusWaiting
		}
	}
	if r.Status == ending {
		r.Status = protocol.StatusRunning
	}
	var f changes.Found
	switch {
	case t.folder.found != nil:
		f = *t.folder.found
	case r.Status != "":
		f = t.folder.before.Now(&t.folder.patches)
	}
	r.ChangesFrom, r.Changes, r.Unknown, r.Truncated.Changes = f.From, f.List, f.Unknown, f.Omitted
	return r
}

// Said is what the model says in a turn.
type Said struct {
	// Text is the turn's last message at its end, and Lacks why it is incomplete, or "".
	Text, Lacks string
	// Last is the model's last message, and Coming the one that is being written.
	Last, Coming string
}

// starts records that the engine has reported the start.
func (t *Turn) starts() {
	select {
	case <-t.started:
	default:
		close(t.started)
	}
}

// cwd returns a command's folder for the result, "" for the working folder.
func (t *Turn) cwd(cwd string) string {
	if cwd == t.place.dir || cwd == t.place.real {
		return ""
	}
	return plain.Short(cwd, plain.MaxPath)
}

// reroute records that another model answers, and says it to the caller.
func (t *Turn) reroute(m protocol.ModelReroute) {
	const most, room = 3, 1000
	t.place.model = m.ToModel
	if t.place.reroutes++; t.place.reroutes > maxRerouted {
		return
	}
	t.remark(plain.Short(m.Words(), plain.MaxWords) + ".")
	all := append(slices.Clip(t.place.rerouted), protocol.Rerouted{
		FromProvider: plain.Short(m.FromProvider, plain.MaxName), FromModel: plain.Short(m.FromModel, plain.MaxName),
		ToProvider: plain.Short(m.ToProvider, plain.MaxName), ToModel: plain.Short(m.ToModel, plain.MaxName),
		Reason: plain.Short(m.Reason, maxReason),
	})
	raw, _ := json.Marshal(all, jsontext.AllowInvalidUTF8(true))
	if n := len(all); n == t.place.reroutes && (n == 1 || n <= most && len(raw) <= room) {
		t.place.rerouted = all
	}
}

// misses records that the tools of an MCP server are missing. The last reason counts.
func (t *Turn) misses(m protocol.Missing) {
	m = protocol.Missing{Server: plain.Short(m.Server, plain.MaxName), Why: plain.Short(m.Why, plain.MaxWords)}
	byName := func(a, b protocol.Missing) int { return cmp.Compare(a.Server, b.Server) }
	i, known := slices.BinarySearchFunc(t.missing, m, byName)
	switch {
	case known:
		t.missing[i].Why = m.Why
	case len(t.missing) < maxKept:
		t.missing = slices.Insert(t.missing, i, m)
	}
}

// grant is an approval of a call.
type grant struct {
	by approval.Decider
	id string // in the record
}

// open is a call that has begun.
type open struct {
	grant
	command *protocol.Command // nil for others
}

// Ruled is called with the line of a [Step] that is in the record. An approval without a question allows its call.
func (t *Turn) Ruled(line *record.Line) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if line.Event == record.Decided && line.Call != "" {
		t.commands.decided(line.Call, elicit.Decision(line.Decision), grant{approval.Decider(line.By), line.DecisionID})
	}
}

// Unended returns the lines of the record for the calls whose ends the turn did not report, and forgets them.
func (t *Turn) Unended() (lines []record.Line) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := &t.commands
	for _, call := range slices.Sorted(maps.Keys(c.open)) {
		lines = append(lines, record.Line{
			Event: record.Ends, DecisionID: c.open[call].id, Call: call,
			Outcome: record.Outcome{Words: "the turn ended before the end was reported"},
		})
	}
	clear(c.open)
	clear(c.approved)
	return lines
}

// decided records the decision about a call.
func (c *commands) decided(call string, d elicit.Decision, by grant) {
	if !d.Approves() {
		delete(c.approved, call)
		return
	}
	c.approved[call] = by
}

// runs records the start of a command, which is a number in its thread and has begun.
func (t *Turn) runs(m protocol.ExecCommandBegin, number int) {
	c := &t.commands
	c.ran, c.last = true, max(c.last+1, number)
	begun := c.open[m.CallID]
	begun.command = &protocol.Command{
		ID: c.last, Command: plain.ShortCommand(m.Command, plain.MaxWords), Cwd: t.cwd(m.Cwd),
		ApprovedBy: plain.Short(string(begun.by), plain.MaxName), Check: t.check.is(m.CallID),
		Setup: t.setup.is(m.CallID),
	}
	c.list = keep(append(c.list, begun.command), &t.dropped.Commands)
}

// keep bounds a list, and adds the number of dropped elements to omitted.
func keep[T any](list []T, omitted *int) []T {
	if len(list) <= maxKept {
		return list
	}
	*omitted++
	return slices.Delete(list, 0, 1)
}
