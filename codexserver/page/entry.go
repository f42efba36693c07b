package page

import "github.com/codexmcp/codexmcp/elicit"

// An entry is one thing that happened in a conversation. Its texts may hold hidden
// characters until show makes them visible.
type entry struct {
	// ID grows from entry to entry.
	ID int `json:"id"`
	// Kind is one of the kinds below; it does not change.
	Kind string `json:"kind"`
	// At is a Unix time in ms.
	At int64 `json:"at"`
	// Title is what was run, called or changed.
	Title string `json:"title,omitzero"`
	// Cwd is the folder of a command.
	Cwd string `json:"cwd,omitzero"`
	// Text is what was said, or what a command printed.
	Text string `json:"text,omitzero"`
	// Cut is how many bytes of the text are missing: at the beginning of a command's
	// output, at the end of other texts.
	Cut int `json:"cut,omitzero"`
	// Running is true until a command, a patch or a tool has ended.
	Running bool `json:"running,omitzero"`
	// Exit is a command's exit code. For a patch or a tool 0 means success.
	Exit *int `json:"exit,omitzero"`
	// Took is the duration in ms.
	Took int64 `json:"took,omitzero"`
	// Steps are a plan's.
	Steps []step `json:"steps,omitzero"`
	// Files are a patch's.
	Files []file `json:"files,omitzero"`
	// Question is replaced when it changes, and never modified, since readers share it.
	Question *questionView `json:"question,omitzero"`

	body     body
	revision uint64
	weight   int  // its size when the conversation last counted it
	dropped  bool // no longer part of the conversation
}

// The kinds of entry.
const (
	kindUser      = "user"      // the user's words: Text
	kindAgent     = "agent"     // the agent's: Text
	kindReasoning = "reasoning" // its thoughts: Text
	kindCommand   = "command"   // Title, Cwd, Text, Running, Exit, Took
	kindPatch     = "patch"     // Files, Running, Exit, Text
	kindTool      = "tool"      // Title, Text, Running, Exit, Took
	kindPlan      = "plan"      // Steps, Text
	kindDiff      = "diff"      // Text, in git's style
	kindNote      = "note"      // Text
	kindError     = "error"     // Text
	kindEnd       = "end"       // of a turn: Text
	kindQuestion  = "question"  // Question
)

type step struct {
	// Step is what is to be done.
	Step string `json:"step"`
	// Status is "pending", "in_progress" or "completed".
	Status string `json:"status"`
}

// open reports whether an entry is a question that is not decided.
func (e *entry) open() bool { return e.Question != nil && e.Question.State != stateDecided }

// size returns about how many bytes an entry takes.
func (e *entry) size() int {
	n := 400 + len(e.Title) + len(e.Cwd) + len(e.body.b) + sizeOf(e.Files)
	for _, s := range e.Steps {
		n += len(s.Step) + len(s.Status)
	}
	if e.Question != nil {
		n += e.Question.size()
	}
	return n
}

// show makes hidden characters of a copy of an entry visible. It needs no lock: it writes
// nothing that the copy shares with the board's entry.
func (e *entry) show() {
	e.Title, e.Cwd = line(e.Title), path(e.Cwd)
	e.Text, e.Cut = elicit.ShowText(string(e.body.b)), e.body.cut
	if e.Steps != nil {
		steps := make([]step, len(e.Steps))
		for i, s := range e.Steps {
			steps[i] = step{line(s.Step), line(s.Status)}
		}
		e.Steps = steps
	}
	e.Files = showFiles(e.Files)
	if e.Question != nil {
		e.Question = e.Question.show()
	}
}

// A body is text that grows, up to maxText bytes. Bytes that it holds are not written
// again, so a copy of the struct can be read while the original grows.
type body struct {
	b    []byte
	tail bool // keeps the end rather than the beginning
	cut  int  // bytes left out
}

// text returns a body that holds the beginning of s.
func text(s string) body {
	var b body
	b.add(s)
	return b
}

// output returns a body that holds the end of s.
func output(s string) body {
	b := body{tail: true}
	b.add(s)
	return b
}

func (b *body) add(s string) {
	if !b.tail {
		n := min(len(s), maxText-len(b.b))
		b.b = append(b.b, s[:n]...)
		b.cut += len(s) - n
		return
	}
	if len(b.b)+len(s) <= maxText {
		b.b = append(b.b, s...)
		return
	}
	keep := maxText / 2 // leaves room, so that the next pieces are not copied each time
	whole := string(b.b) + s
	b.cut += len(whole) - keep
	b.b = []byte(whole[len(whole)-keep:])
}
