package history

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// Model follows a server step by step while it works, and knows at each step what may happen
// next. A test reports the steps as it sees them: what its clients send and get, what they
// answer, what the server records, and what its engine is told and does. The order of the
// reports must be that of causes: an answer is reported before it is sent.
//
// The functions describe the commands; nil means none. Model is safe for concurrent use.
type Model struct {
	// Free reports whether a command runs without a question.
	Free func(command string) bool
	// Allowed and Forbidden report whether a rule of the configuration decides.
	Allowed, Forbidden func(command string) bool
	// Lasting returns the lasting rule that the question about a command offers, or "".
	Lasting func(command string) string

	mu       sync.Mutex
	faults   []Fault
	trace    []string
	begun    time.Time
	calls    map[string]*modelCall
	turns    map[string]*modelTurn
	requests map[string]*modelRequest
	gone     map[string]bool // clients
	session  map[string]bool // thread and command of approvals for the session
	uses     []use
}

// Say is an answer of a person.
type Say string

// The answers. Unclear ones decide nothing, or deny.
const (
	Yes        Say = "approved"
	ForSession Say = "approved_for_session"
	Always     Say = "approved_always"
	No         Say = "denied"
	Stop       Say = "abort"
	Unclear    Say = "unclear"
)

func (s Say) approves() bool { return approves(string(s)) }

type modelCall struct {
	thread, turn, command string
	answers               []modelAnswer
	decision              string // of the record, "" before
	told                  string
	ran                   int
	begins, ends          int // its lines in the record
}

type modelAnswer struct {
	place, client string
	say           Say
	at            time.Time
	unsure        bool // its client left at that moment, or had
}

type modelTurn struct {
	thread       string
	begun, ended int
	stopped      bool // a decision ended it
}

type modelRequest struct {
	client, turn string
	answered     bool
	excused      bool // nobody waits for the answer
}

// use is a decision by a lasting rule.
type use struct {
	call, rule string
	at         time.Time
}

// The kinds of faults that only a model can see.
const (
	Unjustified Kind = "an approval was recorded that nobody gave"
	Misheard    Kind = "the engine was told another decision than the record has"
	Exchanged   Kind = "another command ran than was asked about"
	Late        Kind = "a call took effect after its turn"
	Ignored     Kind = "an answer was lost"
	Foreign     Kind = "a client was told what another turn did"
	TwoStarts   Kind = "a turn has begun twice"
	Invented    Kind = "the record has an effect that did not happen"
	Endless     Kind = "an effect has not one end in the record"
)

func (m *Model) lock() func() {
	m.mu.Lock()
	if m.calls == nil {
		m.calls, m.turns, m.requests, m.session = map[string]*modelCall{}, map[string]*modelTurn{}, map[string]*modelRequest{}, map[string]bool{}
		m.gone = map[string]bool{}
		m.begun = time.Now()
	}
	return m.mu.Unlock
}

func (m *Model) note(format string, args ...any) {
	m.trace = append(m.trace, fmt.Sprintf("%v ", time.Since(m.begun))+fmt.Sprintf(format, args...))
}

func (m *Model) add(kind Kind, what, format string, args ...any) {
	f := Fault{kind, what, fmt.Sprintf(format, args...)}
	m.faults = append(m.faults, f)
	m.note("FAULT %v", f)
}

// Trace returns the steps so far, one a line.
func (m *Model) Trace() string {
	defer m.lock()()
	return strings.Join(m.trace, "\n")
}

// Sent reports that a client sends a request. The turn is the one that the request would begin, or "".
func (m *Model) Sent(request, client, turn string) {
	defer m.lock()()
	m.note("%s sends %s for turn %s", client, request, turn)
	m.requests[request] = &modelRequest{client: client, turn: turn}
}

// Excused reports that the answer to a request may not come, because its client cancels it.
func (m *Model) Excused(request string) {
	defer m.lock()()
	m.note("%s is cancelled", request)
	m.requests[request].excused = true
}

func (m *Model) Returned(request, text string) {
	defer m.lock()()
	m.note("%s returns %.600s", request, text)
	r := m.requests[request]
	r.answered = true
	for _, word := range strings.FieldsFunc(text, func(c rune) bool { return strings.ContainsRune(" ,;\"\\\n", c) }) {
		id, did, ok := strings.Cut(word, "=")
		c := m.calls[id]
		if !ok || c == nil {
			continue
		}
		switch {
		case r.turn != "" && c.turn != r.turn:
			m.add(Foreign, request, "it is of turn %s, and was told of %s", r.turn, id)
		case did == "ran" && c.ran == 0:
			m.add(Missing, id, "the client was told that it ran")
		case did != "ran" && c.ran > 0:
			m.add(Untold, id, "the client was told %q", did)
		}
	}
}

// Gone reports that a client leaves without a word. What it sent at this moment may be lost.
func (m *Model) Gone(client string) {
	defer m.lock()()
	m.note("%s is gone", client)
	m.gone[client] = true
	for _, r := range m.requests {
		r.excused = r.excused || r.client == client
	}
	for _, c := range m.calls {
		for i := range c.answers {
			if a := &c.answers[i]; a.client == client && a.at.Equal(time.Now()) {
				a.unsure = true
			}
		}
	}
}

func (m *Model) Begun(turn, thread string) {
	defer m.lock()()
	m.note("turn %s begins in %s", turn, thread)
	t := m.turns[turn]
	if t == nil {
		t = &modelTurn{thread: thread}
		m.turns[turn] = t
	}
	if t.begun++; t.begun > 1 {
		m.add(TwoStarts, turn, "it began %d times", t.begun)
	}
}

func (m *Model) Ended(turn string) {
	defer m.lock()()
	m.note("turn %s ends", turn)
	t := m.turns[turn]
	if t.ended++; t.ended > 1 {
		m.add(TwoEnds, turn, "%d ends", t.ended)
	}
}

func (m *Model) Asks(call, turn, command string) {
	defer m.lock()()
	m.note("%s asks about %q", call, command)
	m.calls[call] = &modelCall{thread: m.turns[turn].thread, turn: turn, command: command}
}

// Answered reports that a person answers a question. The place is "client" or "desk".
func (m *Model) Answered(call, place, client string, say Say) {
	defer m.lock()()
	m.note("%s at the %s answers %s about %s", client, place, say, call)
	if c := m.calls[call]; c != nil {
		c.answers = append(c.answers, modelAnswer{place: place, client: client, say: say, at: time.Now(), unsure: m.gone[client]})
	} else {
		m.add(Exchanged, call, "a question about it was shown, and the engine did not ask")
	}
}

// Decided reports a decision of the record. Reason is why it is what it is.
func (m *Model) Decided(call, decision, by, reason string) {
	defer m.lock()()
	m.note("the record has %s by %s about %s", decision, by, call)
	c := m.calls[call]
	switch {
	case c == nil:
		m.add(Exchanged, call, "the record has a decision about what was not asked")
		return
	case c.decision != "":
		m.add(Redecided, call, "%s after %s", decision, c.decision)
		return
	}
	c.decision = decision
	if decision == string(Stop) {
		m.turns[c.turn].stopped = true
	}
	if !approves(decision) {
		m.decidedAgainst(call, c, reason)
		return
	}
	if decision == string(ForSession) {
		m.session[c.thread+" "+c.command] = true
	}
	if m.Forbidden != nil && m.Forbidden(c.command) {
		m.add(AfterDenial, call, "a rule denies %q", c.command)
	}
	approved := time.Now() // the first approval, whose record may have to wait for a lasting rule
	for _, a := range c.answers {
		if a.say.approves() && a.at.Before(approved) {
			approved = a.at
		}
	}
	if i := slices.IndexFunc(c.answers, func(a modelAnswer) bool { return !a.unsure && a.denies() && a.at.Before(approved) }); i >= 0 {
		m.add(AfterDenial, call, "%s had answered %s", c.answers[i].client, c.answers[i].say)
	}
	m.justify(call, c, by)
}

// Begins reports that the record has the beginning of a call, with its command and whether it names a decision.
func (m *Model) Begins(call, command string, decided bool) {
	defer m.lock()()
	m.note("the record has that %s begins %q", call, command)
	c := m.calls[call]
	if c == nil { // it needs no decision
		c = &modelCall{command: command}
		m.calls[call] = c
	}
	c.begins++
	if c.command != command {
		m.add(Exchanged, call, "the record has %q, and %q was asked", command, c.command)
	}
	if decided != approves(c.decision) {
		m.add(Unjustified, call, "the decision is %q, and the call names one: %t", c.decision, decided)
	}
}

// Ends reports that the record has the end of a call.
func (m *Model) Ends(call string) {
	defer m.lock()()
	m.note("the record has the end of %s", call)
	if c := m.calls[call]; c != nil {
		c.ends++
	}
}

func (a modelAnswer) denies() bool { return a.say == No || a.say == Stop }

// decidedAgainst checks a decision that denies: no approval was lost. Which of several answers is the
// first is not known, so that one denial is enough.
func (m *Model) decidedAgainst(call string, c *modelCall, reason string) {
	if reason == "interrupted" || m.Forbidden != nil && m.Forbidden(c.command) {
		return
	}
	lost, now := -1, time.Now()
	left := reason == "peer_gone" && m.left(c.turn) // which withdraws the question, perhaps before an answer of the same time
	for i, a := range c.answers {
		switch {
		case !a.say.approves():
			return
		case !a.unsure && (a.at.Before(now) || !left):
			lost = i
		}
	}
	if lost >= 0 {
		m.add(Ignored, call, "%s had answered %s, and it was denied", c.answers[lost].client, c.answers[lost].say)
	}
}

// left reports whether the client that began a turn has gone.
func (m *Model) left(turn string) bool {
	for _, r := range m.requests {
		if r.turn == turn {
			return m.gone[r.client]
		}
	}
	return false
}

// justify looks for who gave an approval.
func (m *Model) justify(call string, c *modelCall, by string) {
	switch {
	case by == "rule" && m.Allowed != nil && m.Allowed(c.command):
	case by == "rule":
		m.uses = append(m.uses, use{call, m.lasting(c.command), time.Now()})
	default:
		if !slices.ContainsFunc(c.answers, func(a modelAnswer) bool {
			return a.place == by && (string(a.say) == c.decision || a.say.approves() && c.decision == string(Yes))
		}) {
			m.add(Unjustified, call, "nobody at the %s answered %s", by, c.decision)
		}
		if c.decision == string(Always) && m.lasting(c.command) == "" {
			m.add(Unjustified, call, "%q has no lasting rule", c.command)
		}
	}
}

func (m *Model) lasting(command string) string {
	if m.Lasting == nil {
		return ""
	}
	return m.Lasting(command)
}

func (m *Model) Told(call, decision string) {
	defer m.lock()()
	m.note("the engine is told %s about %s", decision, call)
	c := m.calls[call]
	if c.told != "" {
		m.add(Redecided, call, "the engine was told %s and %s", c.told, decision)
	}
	c.told = decision
	if recorded := cmp.Or(c.decision, "nothing"); decision != recorded && !(recorded == string(Always) && decision == string(Yes)) {
		m.add(Misheard, call, "%s, and the record has %s", decision, recorded)
	}
}

// Ran reports that a command takes effect. Unasked is true if the engine did not ask about this
// call, because the command is free or was approved for the session.
func (m *Model) Ran(call, thread, turn, command string, unasked bool) {
	defer m.lock()()
	m.note("%s runs %q in %s", call, command, thread)
	c := m.calls[call]
	if c == nil {
		c = &modelCall{thread: thread, turn: turn, command: command}
		m.calls[call] = c
	}
	if c.thread == "" { // only the record had it
		c.thread, c.turn = thread, turn
	}
	if c.begins <= c.ran {
		m.add(Unrecorded, call, "the record has %d beginnings before", c.begins)
	}
	if c.ran++; c.ran > 1 {
		m.add(Twice, call, "%d times", c.ran)
	}
	t := m.turns[turn]
	switch {
	case t == nil || t.ended > 0:
		m.add(Late, call, "turn %s has ended", turn)
	case t.stopped:
		m.add(AfterDenial, call, "a decision has ended turn %s", turn)
	}
	switch {
	case c.command != command || c.thread != thread:
		m.add(Exchanged, call, "%q in %s, and %q in %s was asked", command, thread, c.command, c.thread)
	case unasked && (m.Free != nil && m.Free(command) || m.session[thread+" "+command]):
	case c.decision == "":
		m.add(Unapproved, call, "%q", command)
	case !approves(c.decision):
		m.add(AfterDenial, call, "the record has %s", c.decision)
	case !approves(c.told):
		m.add(AfterDenial, call, "the engine was told %q", c.told)
	}
}

// End returns the faults, after everything has ended.
func (m *Model) End() []Fault {
	defer m.lock()()
	for _, id := range slices.Sorted(maps.Keys(m.calls)) {
		if c := m.calls[id]; c.told == "" && c.decision == "" && c.ran == 0 {
			m.add(Undecided, id, "it was asked and not decided")
		} else if c.begins > c.ran {
			m.add(Invented, id, "%d beginnings, %d effects", c.begins, c.ran)
		} else if c.ends != c.begins {
			m.add(Endless, id, "%d beginnings, %d ends", c.begins, c.ends)
		} else if c.told != "" && c.decision == "" {
			m.add(Undecided, id, "the record has no decision")
		}
	}
	for _, id := range slices.Sorted(maps.Keys(m.turns)) {
		if m.turns[id].ended == 0 {
			m.add(NoEnd, id, "the turn has no end")
		}
	}
	for _, id := range slices.Sorted(maps.Keys(m.requests)) {
		if r := m.requests[id]; !r.answered && !r.excused {
			m.add(Unanswered, id, "%s got no answer", r.client)
		}
	}
	for _, u := range m.uses {
		if !m.accepted(u) {
			m.add(Unjustified, u.call, "nobody accepted the rule %q", u.rule)
		}
	}
	return m.faults
}

// accepted reports whether a person had accepted the rule that decided.
func (m *Model) accepted(u use) bool {
	for _, c := range m.calls {
		if u.rule == "" || m.lasting(c.command) != u.rule || c.decision != string(Always) {
			continue
		}
		if slices.ContainsFunc(c.answers, func(a modelAnswer) bool { return a.say == Always && !a.at.After(u.at) }) {
			return true
		}
	}
	return false
}
