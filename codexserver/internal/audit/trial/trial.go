// Package trial plays other rules and another policy over a record: what would have run, been asked or been refused.
//
//	record ──▶ calls ──▶ policy.Decide, board.Board ──▶ Result: each command that would be decided differently
//
// It decides with the code that decides live, on what the record says that the engine knew. What only a person or
// the sandbox can say is taken from the record: an answer for the session, and whether the sandbox stopped the
// command.
package trial

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/audit"
	"github.com/codexmcp/codexmcp/codexserver/internal/board"
	"github.com/codexmcp/codexmcp/codexserver/internal/policy"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// Fate is what becomes of a command.
type Fate string

// The fates.
const (
	Runs    Fate = "runs without a question"
	Asked   Fate = "is asked about"
	Refused Fate = "is refused"
)

// Options are what is tried.
type Options struct {
	// Rules take the place of those that decided.
	Rules approval.Rules
	// Policy and Sandbox take the place of those of each turn. "" keeps them.
	Policy  protocol.ApprovalPolicy
	Sandbox protocol.SandboxMode
	// Look completes a question about a command that nobody was asked about, and of which the record therefore
	// does not have which program it starts. By default no rule allows such a command.
	Look func(q *protocol.ExecApprovalRequest)
}

// Change is a command that would be decided differently.
type Change struct {
	Thread, Call string
	Time         time.Time
	Command      []string
	Cwd          string
	Was, Now     Fate
}

// Result is what a trial found.
type Result struct {
	// Commands is how many commands were played.
	Commands int
	// Fixed is how many of them the policy of the installed Codex let run or refused without a question. It
	// decides about them again, whatever the rules are.
	Fixed int
	// Changes are in the order of the record.
	Changes []Change
	// Unsure are commands that would begin in the sandbox without a question, by their thread and call: they would be
	// asked about if the sandbox stopped them, and the record does not have whether it would.
	Unsure map[string]bool
}

// call is one call of a model, which may be asked about and run more than once.
type call struct {
	first audit.Line
	lines []audit.Line
}

// Try plays a record.
func Try(ctx context.Context, paths []string, o *Options) (*Result, error) {
	calls, order, err := read(paths)
	if err != nil {
		return nil, err
	}
	t := &trial{ctx: ctx, Options: o, session: map[string]bool{}}
	t.board = board.New(&board.Options{Rules: o.Rules}, nil)
	r := &Result{Unsure: map[string]bool{}}
	for _, key := range order {
		c := calls[key]
		was := c.was()
		now, fixed := t.play(c)
		r.Commands++
		if now == Runs && t.unsure {
			r.Unsure[strings.Replace(key, "\x00", " ", 1)] = true
		}
		t.unsure = false
		if fixed {
			r.Fixed++
		}
		if now != was {
			argv, cwd := c.command()
			_, id, _ := strings.Cut(key, "\x00")
			r.Changes = append(r.Changes, Change{Thread: c.first.Thread, Call: id, Time: c.first.Time, Command: argv, Cwd: cwd, Was: was, Now: now})
		}
	}
	return r, nil
}

// Fates returns what became of each command of a record, by its thread and its call with a space between.
func Fates(paths []string) (map[string]Fate, error) {
	calls, order, err := read(paths)
	fates := map[string]Fate{}
	for _, key := range order {
		fates[strings.Replace(key, "\x00", " ", 1)] = calls[key].was()
	}
	return fates, err
}

// read returns the calls of commands in the order of their first lines.
func read(paths []string) (calls map[string]*call, order []string, err error) {
	calls = map[string]*call{}
	last := map[string]string{} // the newest call of that id, because ids need not be unique in a thread
	err = audit.Read(paths, func(l audit.Line) error {
		id := l.Call
		switch {
		case l.Effect == "":
			q, ok := question(&l)
			if !ok {
				return nil
			}
			id = q.CallID
		case l.Effect != audit.Begins && l.Effect != audit.Refused || l.Kind != "command":
			return nil
		}
		name := l.Thread + "\x00" + id
		key, known := last[name]
		if !known || id == "" || !continues(calls[key], &l) {
			key = name
			for n := 2; calls[key] != nil; n++ {
				key = fmt.Sprintf("%s#%d", name, n)
			}
			last[name], calls[key] = key, &call{first: l}
			order = append(order, key)
		}
		calls[key].lines = append(calls[key].lines, l)
		return nil
	})
	return calls, order, err
}

// continues reports whether a line belongs to the call: it is the effect of its last decision, or it is about a
// command that the sandbox has stopped, or a question that is asked again.
func continues(c *call, l *audit.Line) bool {
	before := c.lines[len(c.lines)-1]
	switch {
	case l.Effect == audit.Begins && l.DecidedBy != "":
		return true
	case l.Effect == "" && before.Effect == "":
		return true
	case l.Effect == "" && l.Covers != nil && l.Covers.Basis != nil:
		return l.Covers.Basis.Again
	}
	return l.Basis != nil && l.Basis.Again
}

func question(l *audit.Line) (q protocol.ExecApprovalRequest, ok bool) {
	m, err := protocol.ParseEvent([]byte(l.Question))
	if err != nil {
		return q, false
	}
	q, ok = m.(protocol.ExecApprovalRequest)
	if c := l.Covers; ok && c != nil {
		q.Content, q.Unasked.Sum, q.Unasked.Setup, q.Program, q.Judged = c.Content, c.Unasked, c.Setup, c.Program, c.Judged
		q.Confinable, q.Replaceable, q.Placed, q.Human = c.Confinable, c.Replaceable, c.Placed, c.Human
	}
	return q, ok
}

// was returns what became of the call.
func (c *call) was() Fate {
	fate := Runs
	for i := range c.lines {
		switch l := &c.lines[i]; {
		case l.Effect == "" && l.By != string(approval.ByRule):
			return Asked
		case l.Effect == "" && !l.Approves(), l.Effect == audit.Refused:
			fate = Refused
		}
	}
	return fate
}

func (c *call) command() (argv []string, cwd string) {
	for i := range c.lines {
		if q, ok := question(&c.lines[i]); ok {
			return q.Command, q.Cwd
		}
	}
	return c.first.Command, c.first.Cwd
}

// basis returns what the policy knew at first, nil if the record does not have it.
func (c *call) basis() *protocol.Basis {
	if c.first.Covers != nil {
		return c.first.Covers.Basis
	}
	return c.first.Basis
}

type trial struct {
	*Options
	ctx     context.Context
	board   *board.Board
	session map[string]bool // what a person would have approved for the session
	unsure  bool            // about the last command
}

// play returns what would become of a call. Fixed is true if only the installed Codex decides.
func (t *trial) play(c *call) (now Fate, fixed bool) {
	b := c.basis()
	if b == nil {
		now = Runs
		for i := range c.lines {
			l := &c.lines[i]
			if q, ok := question(l); ok {
				now = stricter(now, t.ask(&q, l))
			}
		}
		if c.lines[0].Effect != "" {
			return c.was(), true
		}
		return now, false
	}
	argv, cwd := c.command()
	key := fmt.Sprintf("%s %q %q", c.first.Thread, cwd, argv)
	now = t.decide(c, b, argv, cwd, t.session[key])
	if now == Asked {
		for i := range c.lines {
			if l := &c.lines[i]; l.Decision == string(elicit.ApprovedForSession) {
				t.session[key] = true
			}
		}
	}
	return now, false
}

func (t *trial) decide(c *call, b *protocol.Basis, argv []string, cwd string, session bool) Fate {
	in := policy.Input{
		Policy: cmp.Or(t.Policy, b.Policy), Sandbox: cmp.Or(t.Sandbox, b.Sandbox),
		SandboxAvailable: b.Available, Strict: b.Strict, Command: argv, Reads: b.Reads, Escalated: b.Escalated,
		SessionApproved: session, Person: !b.Reads && policy.Asks(t.Rules.Ask, argv),
	}
	q, line := t.first(c, argv, cwd)
	v := policy.Decide(in)
	if v.Then != policy.Refuse {
		q.Person, q.Confinable = true, false
		return t.ask(q, line)
	}
	switch v.Action {
	case policy.Refuse:
		return Refused
	case policy.Ask:
		q.Confinable = v.Confinable && b.Available && !b.Reads
		fate, confined := t.rule(q, line)
		if fate == Runs && confined {
			return t.confined(c, q)
		}
		return fate
	case policy.RunSandboxed:
		if policy.AfterDenial(in.Policy).Action == policy.Ask {
			return t.confined(c, q)
		}
	}
	return Runs
}

// first returns the first question of a call, with its line, or one as it would have been.
func (t *trial) first(c *call, argv []string, cwd string) (*protocol.ExecApprovalRequest, *audit.Line) {
	for i := range c.lines {
		if q, ok := question(&c.lines[i]); ok {
			return &q, &c.lines[i]
		}
	}
	q := &protocol.ExecApprovalRequest{Command: argv, Cwd: cwd, Replaceable: true}
	if t.Look != nil {
		t.Look(q)
	}
	return q, nil
}

// confined returns what becomes of a command that runs in the sandbox, and is asked about if that stops it.
func (t *trial) confined(c *call, q *protocol.ExecApprovalRequest) Fate {
	var again *audit.Line
	tried := false // in the sandbox, so that there would have been a question
	for i := range c.lines {
		switch l := &c.lines[i]; {
		case l.Effect == "" && l.Covers != nil && l.Covers.Basis != nil && l.Covers.Basis.Again:
			again = l
		case l.Effect == audit.Begins && l.Basis != nil && l.Basis.Ran == "sandbox":
			after := policy.AfterDenial(l.Basis.Policy).Action
			tried = tried || after == policy.Ask || c.lines[0].Covers != nil && c.lines[0].Covers.Confined
		}
	}
	if again == nil {
		t.unsure = !tried
		return Runs
	}
	outside := *q
	outside.Confinable = false
	return t.ask(&outside, again)
}

func (t *trial) ask(q *protocol.ExecApprovalRequest, line *audit.Line) Fate {
	fate, _ := t.rule(q, line)
	return fate
}

// rule returns what the rules say about a question. Line is that of the question, nil if it was never asked.
func (t *trial) rule(q *protocol.ExecApprovalRequest, line *audit.Line) (fate Fate, confined bool) {
	d := t.board.Decide(t.ctx, &approval.Request{Event: *q, Question: &elicit.Question{}})
	switch {
	case d.By == approval.ByRule && d.Decision.Approves():
		return Runs, d.Confined
	case d.By == approval.ByRule:
		return Refused, false
	case line != nil && line.Covers != nil && line.Covers.Kept && !t.board.Person(q) && (!line.Covers.Confined || q.Confinable):
		return Runs, line.Covers.Confined // by a rule that a person had accepted
	}
	return Asked, false
}

// stricter returns the fate of a call from those of its two questions.
func stricter(a, b Fate) Fate {
	rank := []Fate{Runs, Refused, Asked} // a call that was asked about is, whatever came then
	if slices.Index(rank, a) > slices.Index(rank, b) {
		return a
	}
	return b
}
