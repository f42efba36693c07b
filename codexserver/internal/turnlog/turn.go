package turnlog

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/repo"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

const (
	// maxKept bounds the commands and refusals that a turn keeps: the last ones of each.
	maxKept = 1000
	// maxComing bounds the text of a message that is being written, in bytes.
	maxComing = 1 << 20
	// maxRerouted bounds the reroutes that a turn keeps: the first ones.
	maxRerouted = 16
)

// Status is the state of a turn.
type Status string

// The statuses.
const (
	Completed  Status = "completed"
	Incomplete Status = "incomplete" // the answer is cut off, or empty
	Failed     Status = "failed"
	Aborted    Status = "aborted"
	Waiting    Status = "waiting" // for the answer to a question
	Running    Status = "running"
)

// Turn is what one turn does, from before its begin to its end. [Log.Add] writes its events. It is
// safe for concurrent use.
type Turn struct {
	mu       sync.Mutex
	place    place
	began    time.Time // zero before
	duration time.Duration
	status   Status // "" before the turn begins
	now      moment
	answer   answer
	commands commands
	refused  []Refusal
	dropped  Dropped
	plan     []protocol.PlanStep
	tokens   tokens
	patches  patches
	diff     string   // of the patches, from the engine
	remarks  []string // for the caller
}

// place is where a turn runs.
type place struct {
	thread string
	model  Model
	dir    string // the working folder
	real   string // the same without links
}

// Model is what answers a turn.
type Model struct {
	// Name is the name of the model that answers.
	Name string
	// Rerouted has the first changes of what answers, in their order.
	Rerouted []protocol.ModelReroute
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
	list     []*Command
	running  map[string]*Command         // by call
	approved map[string]approval.Decider // by the call that was approved
	last     int                         // the number of the last one
	acted    bool                        // something began that may change files
	ran      bool                        // a command, a tool, or a patch that was not applied
}

// Command is a command that ran.
type Command struct {
	// ID is the command's number in the thread, counted from 1.
	ID int
	// Shown is the argv as questions show it, shortened.
	Shown string
	// Cwd is the folder, shortened. "" is the working folder.
	Cwd string
	// Exit is nil while the command runs, or if its end was not reported.
	Exit *Exit
	// ApprovedBy is "" when no question was asked.
	ApprovedBy approval.Decider
}

// Exit is how a command ended.
type Exit struct {
	Code     int
	Duration time.Duration
}

// Refusal is something that was not approved.
type Refusal struct {
	// Kind is "command", "patch", "access" or "other".
	Kind string
	// What is the command, the patch's paths, or the question, shortened.
	What string
	// Cwd is a command's folder. "" is the working folder.
	Cwd string
	// Why is the text that the model received as the reason.
	Why string
	// By names who decided.
	By approval.Decider
	// Reason is the kind of reason, as one word.
	Reason elicit.Reason
}

// String returns the refusal as a line, such as "Not run: `git push` (declined)".
func (r Refusal) String() string {
	what, _ := elicit.ShowCode(r.What)
	done := "done"
	switch r.Kind {
	case "command":
		done = "run"
	case "patch":
		done, what = "applied", "changes of "+what
	case "access":
		done = "given"
	}
	return "Not " + done + ": " + what + " (" + Brief(strings.TrimPrefix(r.Why, "not run: ")) + ")"
}

// Dropped counts what a turn did and no longer keeps.
type Dropped struct{ Commands, Refused int }

// NewTurn returns a turn that has not begun.
func NewTurn() *Turn { return &Turn{now: moment{doing: "starting", since: time.Now()}} }

// Begin begins the turn. T is the event with which the thread began, and used is the thread's last
// token count, or nil.
func (t *Turn) Begin(begun protocol.SessionConfigured, used *protocol.TokenUsage) {
	real := begun.Cwd
	if resolved, err := filepath.EvalSymlinks(begun.Cwd); err == nil {
		real = resolved
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.began, t.status = time.Now(), Running
	t.place = place{thread: begun.SessionID, model: Model{Name: begun.Model}, dir: begun.Cwd, real: real}
	t.tokens.begin(begun, used)
}

// Continue records what the turn did in a process that has ended, before it begins here.
func (t *Turn) Continue(commands []Command, refused []Refusal, dropped Dropped) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range commands {
		t.commands.list = append(t.commands.list, &c)
		t.commands.last = max(t.commands.last, c.ID)
	}
	t.refused, t.dropped = refused, dropped
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

// End ends the turn with the error of [engine.Conversation] Turn.
func (t *Turn) End(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var abort *engine.AbortError
	switch {
	case err == nil:
		t.status = Completed
	case errors.As(err, &abort):
		t.status = Aborted
	default:
		t.status = Failed
	}
	if !t.began.IsZero() {
		t.duration = time.Since(t.began)
	}
}

// Did is what a turn has done until a moment.
type Did struct {
	// Thread is the id of the thread.
	Thread string
	// Model is what answers.
	Model Model
	// Cwd is the working folder.
	Cwd string
	// Status is "" before the turn begins.
	Status   Status
	Duration time.Duration
	// Usage is nil while it is not known.
	Usage    *Usage
	Plan     []protocol.PlanStep
	Commands []Command
	Refused  []Refusal
	Dropped  Dropped
	// Acted is true if something began that may change files. Ran is true if that was a
	// command, a tool, or a patch that was not applied.
	Acted, Ran bool
	// Diff is the engine's diff of the patches.
	Diff string
}

// Did returns what the turn has done until now.
func (t *Turn) Did() Did {
	t.mu.Lock()
	defer t.mu.Unlock()
	d := Did{
		Thread: t.place.thread, Model: t.place.model, Cwd: t.place.dir, Status: t.status, Duration: t.duration,
		Usage: t.tokens.usage(), Plan: t.plan, Refused: slices.Clone(t.refused), Dropped: t.dropped,
		Acted: t.commands.acted, Ran: t.commands.ran, Diff: t.diff,
	}
	for _, c := range t.commands.list {
		d.Commands = append(d.Commands, *c)
	}
	if d.Status == Running {
		d.Duration = time.Since(t.began)
		if len(t.now.questions) > 0 {
			d.Status = Waiting
		}
	}
	return d
}

// Patches returns the changes of the turn's patches, sorted by path, and how many files are left
// out. Paths below the working folder are relative to it.
func (t *Turn) Patches() ([]repo.Change, int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.patches.changes(t.place.dir), t.patches.omitted
}

// Patched returns the change of the file at an absolute path by the turn's patches, or nil.
func (t *Turn) Patched(path string) *repo.Change {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.patches.of(path)
}

// PatchedOutside returns the changes by patches of the files that a snapshot does not cover, sorted
// by path.
func (t *Turn) PatchedOutside(covered func(path string) bool) []repo.Change {
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
	return whole(u.Turn), whole(u.Thread)
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
	model := &t.place.model
	model.Name = m.ToModel
	if len(model.Rerouted) < maxRerouted {
		model.Rerouted = append(slices.Clip(model.Rerouted), m)
		t.remark([]string{Show(m.Words(), MaxWords) + "."})
	}
}

// runs records the start of a command, which is a number in its thread.
func (t *Turn) runs(m protocol.ExecCommandBegin, number int) {
	c := &t.commands
	c.ran, c.last = true, max(c.last+1, number)
	command := &Command{ID: c.last, Shown: ShowCommand(m.Command), Cwd: t.folder(m.Cwd), ApprovedBy: c.approved[m.CallID]}
	delete(c.approved, m.CallID)
	if c.running == nil {
		c.running = map[string]*Command{}
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
		command.Exit = &Exit{m.ExitCode, time.Duration(m.Duration)}
		delete(c.running, m.CallID)
	}
}

func (t *Turn) refuse(r Refusal) {
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
