package appserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/appserver/internal/wire"
	"github.com/codexmcp/codexmcp/codexserver/internal/policy"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// question is a request of the app-server that a person decides.
type question struct {
	turn  *turn
	agent string // the path of the sub-agent that asks; "" for the conversation itself
	ctx   context.Context
	done  func()
}

var errNobody = errors.New("it belongs to no running turn")

// ask finds the turn of a request. Several questions of a turn may be open at a time. It
// returns an error, and the request is declined, if an earlier answer aborted the turn. The
// caller calls done at the end.
func (c *child) ask(ctx context.Context, threadID, turnID, itemID string) (*question, error) {
	t, agent := c.root(threadID)
	var r *turn
	if t != nil {
		r = t.asked(turnID, agent)
	}
	if r == nil && c.shared && (t != nil || c.others()) {
		c.leaves(ctx)
		return nil, errElsewhere
	}
	if r == nil {
		return nil, errNobody
	}
	if ctx.Err() != nil { // withdrawn already
		return nil, errNobody
	}
	if err := r.opens(itemID); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	unhook := context.AfterFunc(r.ctx, stop)
	return &question{turn: r, agent: agent, ctx: ctx, done: func() { unhook(); stop() }}, nil
}

// opens records that a question about an item is asked. It returns an error if none may be.
func (r *turn) opens(itemID string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return errNobody
	}
	r.tr.ask(itemID)
	return r.aborted
}

func (r *turn) abortCause() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.aborted
}

// decided ends the whole turn if the decision is to abort, even if a sub-agent asked. It
// ignores the decision about a question that the app-server has withdrawn.
func (a *question) decided(out elicit.Outcome) {
	if out.Decision != elicit.Abort || a.ctx.Err() != nil {
		return
	}
	r := a.turn
	r.mu.Lock()
	if r.aborted == nil {
		r.aborted = abortReason(out)
	}
	r.mu.Unlock()
	r.stop()
}

// steerLimit is how long sending a reason may take.
const steerLimit = 2 * time.Second

// explain sends the model the reason of a refusal: what a person wrote, or that no person
// could be asked. What names the question, because others may be open. The answer to the
// app-server has no room for a reason, so it is sent as input to the turn, before the answer
// and after the end of the model's response. If the app-server refuses the input, the model
// sees only the refusal.
func (a *question) explain(threadID, turnID, what string, out elicit.Outcome) {
	if out.Decision != elicit.Denied || out.Feedback == "" && out.ForCaller() == "" || out.ForModel() == "" || a.turn.ctx.Err() != nil {
		return
	}
	if a.agent == "" { // the tokens of sub-agents are not reported
		a.turn.whole(a.ctx)
	}
	if a.ctx.Err() != nil {
		return
	}
	text := "About the approval request for " + what + ": " + out.ForModel() + "."
	ctx, stop := context.WithTimeout(a.ctx, steerLimit)
	defer stop()
	c := a.turn.thread.child
	err := c.peer.Call(ctx, wire.CallTurnSteer, wire.SteerParams{
		ThreadID: threadID, ExpectedTurnID: turnID, Input: []wire.Input{{Type: wire.UserInputText, Text: &text}},
	}, nil)
	if err != nil {
		c.log.Debug("codex: the model did not get the reason", "error", err)
	}
}

// abortReason returns the reason for the abort of a turn.
func abortReason(out elicit.Outcome) error {
	if text := out.ForCaller(); text != "" {
		return errors.New(text)
	}
	if text := out.ForModel(); text != "" && out.Reason != "" {
		return errors.New(text)
	}
	return errors.New("the client chose to abort the turn")
}

// stop interrupts the turn without waiting.
func (r *turn) stop() {
	c := r.thread.child
	c.run.Go(func() {
		ctx, stop := context.WithTimeout(context.Background(), interruptLimit)
		defer stop()
		r.cut(ctx)
	})
}

// noRule is logged for a question that offers no rule of Codex.
const noRule = "codex: no rule is offered"

// askCommand handles the approval of a command.
func (c *child) askCommand(ctx context.Context, p wire.CommandApproval) (wire.CommandDecision, error) {
	decision, err := c.decideCommand(ctx, &p)
	return wire.CommandDecision{Decision: decision}, err
}

// decideCommand returns the decision about a command as JSON: a word, or a rule that a person accepted.
func (c *child) decideCommand(ctx context.Context, p *wire.CommandApproval) (json.RawMessage, error) {
	a, err := c.ask(ctx, p.ThreadID, p.TurnID, p.ItemID)
	if err != nil {
		return word(c.refuse(wire.AskItemCommandExecutionRequestApproval, err)), nil
	}
	defer a.done()
	refuse := func(why error) (json.RawMessage, error) {
		return word(a.refuse(wire.AskItemCommandExecutionRequestApproval, why)), nil
	}
	if p.Kind != "" && p.Kind != wire.CommandExecutionApprovalKindCommand && p.Kind != wire.CommandExecutionApprovalKindWriteStdin {
		return refuse(fmt.Errorf("its kind %q is not known", p.Kind))
	}
	if len(p.AdditionalPermissions) > 0 && string(p.AdditionalPermissions) != "null" {
		return refuse(errors.New("it asks for further permissions, which a question about a command does not show"))
	}
	q := execApproval(p, a.turn.item(p.ItemID), a.agent)
	if len(q.Command) == 0 {
		return refuse(errors.New("it names no command"))
	}
	if strings.Contains(strings.Join(q.Command, "")+q.Cwd, "\x00") {
		return refuse(errors.New("its command or folder has a NUL byte"))
	}
	t := a.turn.thread
	q.Judged = bareShell(q.Command)
	hosts := p.NetworkApprovalContext != nil && q.Command[0] == networkAccess // names no program
	q.LeavesSandbox = !hosts && t.leavesSandbox()
	q.NoSandbox = !hosts && !q.LeavesSandbox
	unclear := unknown(commandUnknown(p)...) != "" || environment(p.EnvironmentID) != "" // then only a person decides, and only this once
	q.Once = unclear
	var then string
	if !hosts {
		place := t.place(q.Cwd)
		q.Program, q.Replaceable = place.Replaceable(q.Judged)
		sum, lasts := place.Everything(q.Command)
		if q.Once = !lasts || unclear || p.NetworkApprovalContext != nil || p.Kind == wire.CommandExecutionApprovalKindWriteStdin; !q.Once {
			if then = t.approvalOf(a.agent, &q, sum); a.turn.elsewhere == nil && t.isApproved(then) {
				return word(a.answer(p.ItemID, elicit.Outcome{Decision: elicit.Approved})), nil
			}
			q.Content = then // which has who asks
		}
	}
	q.Replaceable = q.Replaceable || unclear
	q.Safe = p.NetworkApprovalContext == nil && p.Kind != wire.CommandExecutionApprovalKindWriteStdin && !q.Replaceable && policy.KnownSafeStrict(q.Judged)
	words, rule, err := lasting(p, &q)
	if err != nil {
		c.log.Debug(noRule, "call", p.ItemID, "reason", err)
	}
	q.Lasting = words
	out := a.turn.host.ApproveExec(a.ctx, q)
	if out.Decision == elicit.ApprovedForSession && !hosts {
		// Codex would not ask again even if a file has changed.
		out.Decision = elicit.Approved
		if !q.Once && a.ctx.Err() == nil {
			t.approve(then)
		}
	}
	if out.Confined { // Codex decides where it runs, and does not say
		out = elicit.Outcome{Decision: elicit.Denied, Feedback: "it may run only in the sandbox, which cannot be ensured"}
	}
	a.decided(out)
	a.explain(p.ThreadID, p.TurnID, "`"+elicit.OneLine(elicit.ShowCommand(q.Command), 200)+"`", out)
	if words != "" && out.Decision == elicit.ApprovedAlways {
		out.Decision = elicit.Approved
		d := a.answer(p.ItemID, out)
		if d == accept { // and not withdrawn
			return rule, nil
		}
		return word(d), nil
	}
	return word(a.answer(p.ItemID, out)), nil
}

// askFileChange handles the approval of a patch. It declines a patch whose changes it
// cannot show.
func (c *child) askFileChange(ctx context.Context, p wire.FileApproval) (wire.FileDecision, error) {
	a, err := c.ask(ctx, p.ThreadID, p.TurnID, p.ItemID)
	if err != nil {
		return wire.FileDecision{Decision: c.refuse(wire.AskItemFileChangeRequestApproval, err)}, nil
	}
	defer a.done()
	refuse := func(why error) (wire.FileDecision, error) {
		return wire.FileDecision{Decision: a.refuse(wire.AskItemFileChangeRequestApproval, why)}, nil
	}
	o := a.turn.item(p.ItemID)
	if o == nil || len(o.Changes) == 0 {
		return refuse(errors.New("its changes were not announced"))
	}
	if err := shows(o.Changes); err != nil {
		return refuse(err)
	}
	q := patchApproval(&p, o, a.agent)
	if len(q.Changes) != len(o.Changes) {
		return refuse(errors.New("it changes a file twice, of which a question shows one change"))
	}
	q.Cwd = a.turn.thread.folder()
	out := a.turn.host.ApprovePatch(a.ctx, q)
	a.decided(out)
	a.explain(p.ThreadID, p.TurnID, "changes to files", out)
	return wire.FileDecision{Decision: a.answer(p.ItemID, out)}, nil
}

// answer returns the decision for the app-server. If the item is approved, it first emits the
// event that begins the item.
func (a *question) answer(itemID string, out elicit.Outcome) string {
	d := decisionOf(out)
	switch {
	case a.turn.ctx.Err() != nil, a.turn.abortCause() != nil:
		d = cancelTurn // after a refusal Codex could ask the model again before the interrupt arrives
	case a.ctx.Err() != nil && d != cancelTurn:
		d = decline
	case d == accept || d == acceptForSession:
		a.turn.release(itemID, true)
	}
	return d
}

// refuse declines a request that cannot be shown, and reports that to the caller. It leaves that
// of another program's turn to that program.
func (a *question) refuse(method string, why error) string {
	a.pass()
	if a.turn.elsewhere == nil && a.ctx.Err() == nil { // and not withdrawn
		a.turn.report(protocol.BackgroundEvent{
			Message: "refused " + method + " of Codex: " + why.Error(),
			Refused: &protocol.Refused{Tool: method, Cwd: a.turn.thread.folder(), Reason: why.Error()},
		})
	}
	return a.turn.thread.child.refuse(method, why)
}

// pass waits until the request has been answered elsewhere, if it is of another program's turn.
func (a *question) pass() {
	if a.turn.elsewhere != nil {
		<-a.ctx.Done()
	}
}

// refuse declines a request without a question.
func (c *child) refuse(method string, why error) string {
	if errors.Is(why, errElsewhere) {
		return decline // too late to decide
	}
	c.log.Warn("codex: approval declined without asking", "method", method, "why", why)
	return decline
}

// askPermissions handles a request for permissions beyond the sandbox.
func (c *child) askPermissions(ctx context.Context, p wire.Permissions) (wire.PermissionsReply, error) {
	a, err := c.ask(ctx, p.ThreadID, p.TurnID, p.ItemID)
	if err != nil {
		c.refuse(wire.AskItemPermissionsRequestApproval, err)
		return noPermissions, nil
	}
	defer a.done()
	out := a.turn.host.Approve(a.ctx, permissionsQuestion(&p, a.agent))
	a.decided(out)
	a.explain(p.ThreadID, p.TurnID, "further permissions", out)
	if a.ctx.Err() != nil {
		return noPermissions, nil
	}
	return permissionsAnswer(&p, out), nil
}

// askElicitation handles questions of Codex's MCP servers, and the approval of calls of
// their tools.
func (c *child) askElicitation(ctx context.Context, p elicitation) (wire.ElicitationReply, error) {
	reply := c.elicited(ctx, &p)
	if reply.Content == nil {
		reply.Content = json.RawMessage("null") // the form that all versions were tried with
	}
	return reply, nil
}

func (c *child) elicited(ctx context.Context, p *elicitation) wire.ElicitationReply {
	a, err := c.ask(ctx, p.ThreadID, p.TurnID, "")
	if err != nil {
		c.refuse(wire.AskMCPServerElicitationRequest, err)
		return declinedElicitation
	}
	defer a.done()
	reply, err := a.elicit(p)
	switch {
	case errors.Is(err, errQueue): // an event for each would be as many
		a.pass()
		c.refuse(wire.AskMCPServerElicitationRequest, err)
		return declinedElicitation
	case err != nil:
		a.refuse(wire.AskMCPServerElicitationRequest, err)
		return declinedElicitation
	}
	if a.ctx.Err() != nil {
		return wire.ElicitationReply{Action: wire.MCPServerElicitationActionCancel}
	}
	return reply
}

func (a *question) elicit(p *elicitation) (wire.ElicitationReply, error) {
	var q *elicit.Question
	var f *elicit.Foreign
	var err error
	tool, _ := p.toolCall()
	if tool {
		q, err = p.toolQuestion()
	} else {
		f, err = p.foreign()
	}
	if err != nil {
		return declinedElicitation, err
	}
	leave, err := a.queue("server " + p.ServerName)
	if err != nil {
		return declinedElicitation, err
	}
	defer leave()
	if tool {
		out := a.turn.host.Approve(a.ctx, q)
		a.decided(out)
		a.explain(p.ThreadID, p.TurnID, "the call of a tool", out)
		return toolAnswer(out), nil
	}
	result, err := a.turn.host.Elicit(a.ctx, f)
	if err != nil {
		return declinedElicitation, err
	}
	return answered(result), nil
}

// maxQueue is how many questions of a party may wait for the one that is asked.
const maxQueue = 32

var errQueue = fmt.Errorf("%d questions of the same party wait already", maxQueue)

// queue waits until no other question of a party, an MCP server or the model, is asked in the
// thread. The caller must call leave.
func (a *question) queue(party string) (leave func(), err error) {
	t := a.turn.thread
	t.mu.Lock()
	slots := t.asking[party]
	if slots == nil {
		slots = elicit.NewSlots(1)
		if t.asking == nil {
			t.asking = map[string]*elicit.Slots{}
		}
		t.asking[party] = slots
	}
	t.mu.Unlock()
	if slots.Waiting() >= maxQueue {
		return nil, errQueue
	}
	if err := slots.Acquire(a.ctx); err != nil {
		return nil, err
	}
	return slots.Release, nil
}

// askUserInput handles the model's questions to the user.
func (c *child) askUserInput(ctx context.Context, p userInput) (wire.UserInputReply, error) {
	none := wire.UserInputReply{Answers: map[string]wire.Answers{}}
	a, err := c.ask(ctx, p.ThreadID, p.TurnID, "")
	if err != nil {
		c.refuse(wire.AskItemToolRequestUserInput, err)
		return none, nil
	}
	defer a.done()
	result, err := a.input(&p)
	switch {
	case errors.Is(err, errQueue):
		a.pass()
		c.refuse(wire.AskItemToolRequestUserInput, err)
		return none, nil
	case err != nil:
		a.refuse(wire.AskItemToolRequestUserInput, err)
		return none, nil
	}
	return p.answers(result), nil
}

// input asks the model's questions.
func (a *question) input(p *userInput) (json.RawMessage, error) {
	f, err := p.foreign()
	if err != nil {
		return nil, err
	}
	leave, err := a.queue("model")
	if err != nil {
		return nil, err
	}
	defer leave()
	return a.turn.host.Elicit(a.ctx, f)
}

// item returns a copy of an open item, or nil.
func (r *turn) item(id string) *wire.Item {
	r.mu.Lock()
	defer r.mu.Unlock()
	if o := r.tr.open[id]; o != nil {
		return new(o.item)
	}
	return nil
}
