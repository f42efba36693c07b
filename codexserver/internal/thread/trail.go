package thread

import (
	"cmp"
	"fmt"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// How many bytes are kept of one thread.
const (
	MaxTranscript = 4 << 20
	MaxDiffs      = 8 << 20
	MaxOutputs    = 8 << 20
)

// Trail records what one thread does. It is an [Observer], and safe for concurrent use.
type Trail struct {
	store      *TrailStore
	transcript *text
	diffs      *text  // nil before the first
	outputs    *shelf // nil before the first command

	// Guarded by store.mu.
	turns    int
	running  bool
	commands int
	list     []*output          // the last commands, in the order of their start
	open     map[string]*output // by call
	answer   string             // the turn's last message so far
	closed   bool
}

// New returns the trail of a new thread. The caller must close it.
func (s *TrailStore) New() *Trail {
	return &Trail{store: s, transcript: (&shelf{store: s, max: MaxTranscript}).newText()}
}

// Close removes everything. Later calls are ignored.
func (t *Trail) Close() {
	t.store.mu.Lock()
	defer t.store.mu.Unlock()
	t.closed = true
	t.transcript.clear()
	if t.diffs != nil {
		t.diffs.clear()
	}
	for _, o := range t.list {
		o.text.clear()
	}
	t.list, t.open = nil, nil
}

// do runs f under the lock, unless the trail is closed.
func (t *Trail) do(f func()) {
	t.store.mu.Lock()
	defer t.store.mu.Unlock()
	if !t.closed {
		f()
	}
}

// Begin records the start of a turn, with the user's words.
func (t *Trail) Begin(words string) {
	now := time.Now().UTC().Format(time.RFC3339)
	t.do(func() {
		t.turns++
		t.running, t.answer = true, ""
		t.entry(fmt.Sprintf("=== turn %d, %s", t.turns, now), "")
		t.entry("user:", words)
	})
}

// Elsewhere records that another program begins a turn.
func (t *Trail) Elsewhere() {
	now := time.Now().UTC().Format(time.RFC3339)
	t.do(func() { t.entry("=== a turn of another program, "+now, "") })
}

// End records the end of the turn. Err is why it failed or was aborted, or nil.
func (t *Trail) End(err error) {
	t.do(func() {
		t.running, t.answer = false, ""
		for _, o := range t.open {
			o.runs, o.unended, o.rest = false, true, nil
		}
		clear(t.open)
		if err != nil {
			t.entry("the turn did not complete:", err.Error())
		}
	})
}

// Count returns how many turns and commands have begun.
func (t *Trail) Count() (turns, commands int) {
	t.store.mu.Lock()
	defer t.store.mu.Unlock()
	return t.turns, t.commands
}

// Event implements [Observer].
func (t *Trail) Event(e Event) {
	switch m := e.Msg.(type) {
	case protocol.AgentMessageDelta, protocol.AgentReasoningDelta, protocol.AgentReasoningRawContentDelta, protocol.TokenCount:
		// frequent, so without the lock
	case protocol.SessionConfigured:
		before := past(m.InitialMessages) // may take a while
		t.do(func() { t.past(before) })
	default:
		t.do(func() { t.event(m) })
	}
}

// Asked implements [Observer]. The question is recorded with its decision.
func (*Trail) Asked(*approval.Request) {}

// Decided implements [Observer].
func (t *Trail) Decided(r *approval.Request, d approval.Decision) {
	t.do(func() {
		t.entry("question:", r.Question.Message)
		heading := fmt.Sprintf("%s by %s", d.Decision, d.By)
		if d.Decision.Approves() {
			t.entry(heading, "")
			return
		}
		t.entry(heading+":", d.ForModel())
	})
}

// Changed records the diff of a turn that has ended.
func (t *Trail) Changed(turn int, diff string) {
	t.do(func() {
		if t.diffs == nil {
			t.diffs = (&shelf{store: t.store, max: MaxDiffs}).newText()
		}
		t.diffs.add(fmt.Sprintf("# turn %d\n", turn))
		t.diffs.add(valid(diff))
	})
}

// Page is a part of a text.
type Page struct {
	// Text is the part.
	Text string
	// Offset is where the part begins in the whole text.
	Offset int64
	// Total is the length of the whole text.
	Total int64
	// Cut is how many bytes of the whole text are not kept.
	Cut int64
	// Note is a remark for the reader, or "".
	Note string
}

func (t *Trail) page(from *text, offset int64, most int) (Page, error) {
	s, at, err := from.read(offset, most)
	return Page{Text: s, Offset: at, Total: from.to, Cut: from.from}, err
}

// Transcript returns a part of the transcript.
func (t *Trail) Transcript(offset int64, most int) (Page, error) {
	t.store.mu.Lock()
	defer t.store.mu.Unlock()
	return t.page(t.transcript, offset, most)
}

// Diff returns a part of the diffs of the turns that have ended.
func (t *Trail) Diff(offset int64, most int) (Page, error) {
	t.store.mu.Lock()
	defer t.store.mu.Unlock()
	p, err := t.page(cmp.Or(t.diffs, &text{}), offset, most)
	switch {
	case t.running:
		p.Note = "A turn is running: its diff comes when it has ended."
	case p.Total == 0:
		p.Note = "No turn is known to have changed files."
	}
	return p, err
}

// Output returns a part of the output of a command, by its number in the thread. 0 is the
// last one. It also returns the number.
func (t *Trail) Output(command int, offset int64, most int) (p Page, number int, err error) {
	t.store.mu.Lock()
	defer t.store.mu.Unlock()
	if command == 0 {
		command = t.commands
	}
	first := t.commands - len(t.list) + 1
	switch {
	case t.commands == 0:
		return p, 0, &RangeError{"command", "no command has run"}
	case command < 1 || command > t.commands:
		return p, 0, &RangeError{"command", fmt.Sprintf("%d is not one of the %d that have run", command, t.commands)}
	case command < first:
		return p, 0, &RangeError{"command", fmt.Sprintf("%d is no longer kept: the first that is is %d", command, first)}
	}
	o := t.list[command-first]
	if p, err = t.page(o.text, offset, most); err != nil {
		return p, command, err
	}
	p.Cut += o.omitted
	switch {
	case o.runs:
		p.Note = "The command is running."
	case o.unended:
		p.Note = "The turn ended before the command did."
	case p.Total == 0:
		p.Note = "The command has printed nothing."
	}
	return p, command, nil
}
