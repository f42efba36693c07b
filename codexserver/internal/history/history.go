// Package history checks what a server did against what it may do, from what is left of it:
// the record of decisions, the files of conversations, the disk, and what its clients were
// told. It is for tests, such as those that kill servers. It reads the files by itself, so
// that it does not share the mistakes of the code that writes them.
//
//	h := history.History{…}     what a test knows: Effects, Told, Left
//	h.ReadRollout(path)         the calls of a conversation
//	h.ReadRecord(path)          the decisions, and what began
//	for _, fault := range h.Check() { t.Error(fault) }
//
// The tests have a model that checks the same while a server works, step by step. TestRandom plays random steps
// with it, and prints the seed that finds a fault: go test -run TestRandom -seed N.
package history

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// History is what is known of some conversations.
type History struct {
	// Calls are the calls of the models, by conversation and id.
	Calls map[ID]*Call
	// Turns are the turns by their key.
	Turns map[string]*Turn
	// Tasks are what clients know of their tasks at the end.
	Tasks []Task
	// Left are processes that servers have left.
	Left []string
	// Free reports whether a command may run without a decision. Nil means that none may.
	Free func(command []string) bool

	// Recorded is true if the record was read.
	Recorded bool
}

// ID identifies a call.
type ID struct{ Thread, Call string }

// Call is one call of a model.
type Call struct {
	ID
	// Command is a command's argv, and Patch is true for a patch.
	Command []string
	Patch   bool
	// Begun is how often it began, by the record.
	Begun int
	// Output is what the model was told, "" for nothing.
	Output string
	// Cut is true if the model was told that its server ended before it had a result.
	Cut bool
	// Decisions are those in the record, in its order.
	Decisions []Decision
	// Effects is how often it took effect on the disk. It is -1 if that is not known.
	Effects int
	// Files are the files that a patch adds, as they are now.
	Files []File
}

// Decision is a decision in the record.
type Decision struct {
	Approves bool
	// Withdrawn is true if nobody decided: the turn ended before.
	Withdrawn bool
	By        string
}

// File is a file of a patch.
type File struct {
	Path string
	// State is what the file has: the content before, after, or another.
	State State
}

// State is the content of a file.
type State string

// The states of a file.
const (
	Before State = "before"
	After  State = "after"
	Other  State = "other"
)

// Turn is a turn.
type Turn struct {
	Thread, Key string
	// Begun and Ended count its beginnings, of which the first is its own, and its ends.
	Begun, Ended int
}

// Task is a task as its client knows it at the end.
type Task struct {
	Name, Thread string
	// Ended is true if the client was told the end, and Told is all that it was told.
	Ended bool
	Told  string
}

// ended reports whether an output has the exit code of a command, as native or Codex writes it.
func ended(output string) bool {
	return strings.Contains(output, `"exit_code":`) || strings.Contains(output, "Process exited with code ")
}

// approves reports whether a decision approves.
func approves(decision string) bool {
	return slices.Contains([]string{"approved", "approved_for_session", "approved_always"}, decision)
}

// succeeded reports whether an output says that a call did what it was to do.
func succeeded(output string) bool {
	return strings.Contains(output, `"exit_code":0`) || strings.Contains(output, "Process exited with code 0\n")
}

// maybe reports whether an output tells the model that the call may have had effects.
func maybe(output string) bool { return strings.Contains(output, "It may have run") }

// Fault is something that must not happen.
type Fault struct {
	// Kind is one of the kinds below.
	Kind Kind
	// What names the call, the turn or the task.
	What, Why string
}

// Kind is the kind of a fault.
type Kind string

// The kinds of faults.
const (
	Twice       Kind = "a call took effect twice"
	Unapproved  Kind = "a call took effect without an approval"
	AfterDenial Kind = "a call took effect after a denial"
	OneForTwo   Kind = "one approval was used twice"
	Undecided   Kind = "a question was lost"
	Redecided   Kind = "a question has two decisions"
	Unrecorded  Kind = "a call took effect without a record before it"
	HalfPatch   Kind = "a patch is half applied without a word"
	Missing     Kind = "a call was reported as done and had no effect"
	Untold      Kind = "a call may have had effects, and the model was not told"
	Unsaid      Kind = "a call was cut, and its client was not told"
	NoEnd       Kind = "a turn or a task has no end"
	TwoEnds     Kind = "a turn has two ends"
	LeftOver    Kind = "a process was left"
	Unanswered  Kind = "a call has no answer"
)

// Error implements error.
func (f Fault) Error() string { return fmt.Sprintf("%s: %s: %s", f.Kind, f.What, f.Why) }

// Check returns the faults of a history whose servers have all ended.
func (h *History) Check() (faults []Fault) {
	add := func(kind Kind, what, format string, args ...any) {
		faults = append(faults, Fault{kind, what, fmt.Sprintf(format, args...)})
	}
	told := map[string]string{}
	for _, t := range h.Tasks {
		told[t.Thread] += t.Told
		if !t.Ended {
			add(NoEnd, t.Name, "its client was not told its end")
		}
	}
	for _, key := range slices.Sorted(maps.Keys(h.Turns)) {
		switch t := h.Turns[key]; {
		case t.Ended == 0:
			add(NoEnd, t.Thread+" "+key, "its file has no end")
		case t.Ended > 1:
			add(TwoEnds, t.Thread+" "+key, "its file has %d ends", t.Ended)
		}
	}
	ids := slices.SortedFunc(maps.Keys(h.Calls),
		func(a, b ID) int { return cmp.Or(cmp.Compare(a.Thread, b.Thread), cmp.Compare(a.Call, b.Call)) })
	for _, id := range ids {
		h.checkCall(h.Calls[id], told[id.Thread], func(kind Kind, format string, args ...any) {
			add(kind, id.Thread+" "+id.Call, format, args...)
		})
	}
	for _, p := range h.Left {
		add(LeftOver, p, "it runs")
	}
	return faults
}

func (h *History) checkCall(c *Call, told string, add func(Kind, string, ...any)) {
	approvals, denials := 0, 0
	for _, d := range c.Decisions {
		switch {
		case d.Withdrawn:
		case d.Approves:
			approvals++
		default:
			denials++
		}
	}
	free := h.Free != nil && len(c.Command) > 0 && h.Free(c.Command)
	effects := max(c.Effects, 0)
	if effects > 1 {
		add(Twice, "%d times", effects)
	}
	if c.Begun > 1 && approvals < c.Begun && !free {
		add(OneForTwo, "%d beginnings, %d approvals", c.Begun, approvals)
	}
	switch {
	case effects == 0 && c.Begun == 0, free, approvals > 0:
	case denials > 0:
		add(AfterDenial, "%d effects, %d beginnings, and the record has %d denials", effects, c.Begun, denials)
	default:
		add(Unapproved, "%d effects, %d beginnings", effects, c.Begun)
	}
	if approvals > 0 && denials > 0 && effects > 0 && lastDecides(c.Decisions, false) {
		add(AfterDenial, "the last decision is a denial")
	}
	if h.Recorded && effects > c.Begun && !(effects > 1 && c.Begun == 1) { // which is reported
		add(Unrecorded, "%d effects, %d beginnings", effects, c.Begun)
	}
	if c.Begun > 0 && c.Effects == 0 && !c.Patch && c.Output != "" && !ended(c.Output) && !c.Cut && !maybe(c.Output) {
		add(Untold, "it had begun, and the model was told %.100q", c.Output)
	}
	if c.Cut && !strings.Contains(told, "was not run again") {
		add(Unsaid, "the client was told %.100q", told)
	}
	if c.Effects == 0 && succeeded(c.Output) {
		add(Missing, "the model was told %.100q", c.Output)
	}
	if effects > 0 && c.Output != "" && !ended(c.Output) && !c.Cut && !maybe(c.Output) && !c.Patch {
		add(Untold, "the model was told %.100q", c.Output)
	}
	if c.Output == "" {
		add(Unanswered, "the model was not told what became of it")
	}
	h.checkPatch(c, add)
}

// checkPatch checks what has become of the files of a patch that had begun.
func (h *History) checkPatch(c *Call, add func(Kind, string, ...any)) {
	states := map[State][]string{}
	for _, f := range c.Files {
		states[f.State] = append(states[f.State], f.Path)
	}
	whole := len(states[Other]) == 0 && (len(states[Before]) == 0 || len(states[After]) == 0)
	switch {
	case len(c.Files) == 0:
	case !whole:
		if !c.Cut {
			add(HalfPatch, "%v, and the model was told %.100q", states, c.Output)
		}
	case len(states[After]) == 0 && succeeded(c.Output):
		add(Missing, "its files are as before, and the model was told %.100q", c.Output)
	}
}

func lastDecides(all []Decision, approves bool) bool {
	for _, d := range slices.Backward(all) {
		if !d.Withdrawn {
			return d.Approves == approves
		}
	}
	return false
}
