package appserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/appserver/appclient"
	"github.com/codexmcp/codexmcp/codexserver/appserver/apptypes"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// question is a request of the app-server that a person decides.
type question struct {
	about about
	turn  *turn
	agent string // the path of the sub-agent that asks; "" for the conversation itself
	ctx   context.Context
	done  func()
}

// about is what a request is about, by ids.
type about struct{ threadID, turnID, itemID string }

var errNobody = errors.New("it belongs to no running turn")

// answer returns the function that answers the questions of a method. With an error, nothing is allowed.
func answer[P, R any](c *child, method string, of func(*P) about, decide func(*question, *P) (R, error)) func(context.Context, *P) (R, error) {
	return func(ctx context.Context, p *P) (R, error) {
		var none R
		a, err := c.ask(ctx, of(p))
		if err != nil {
			c.refuse(method, err)
			return none, err
		}
		defer a.done()
		answer, err := decide(a, p)
		switch {
		case errors.Is(err, errQueue): // an event for each would be as many
			c.refuse(method, err)
		case err != nil:
			a.refuse(method, err)
		}
		return answer, err
	}
}

// ask finds the turn of a request. Several questions of a turn may be open at a time. It
// returns an error, and the request is declined, if an earlier answer aborted the turn. The
// caller calls done at the end.
func (c *child) ask(ctx context.Context, what about) (*question, error) {
	t, agent := c.root(what.threadID)
	var r *turn
	if t != nil {
		r = t.now()
	}
	if r == nil || ctx.Err() != nil { // or withdrawn already
		return nil, errNobody
	}
	if err := r.opens(what.itemID); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	unhook := context.AfterFunc(r.ctx, stop)
	return &question{about: what, turn: r, agent: agent, ctx: ctx, done: func() { unhook(); stop() }}, nil
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
func (a *question) explain(what string, out elicit.Outcome) {
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
	err := c.app.Steer(ctx, &apptypes.SteerParams{
		ThreadID: a.about.threadID, ExpectedTurnID: a.about.turnID, Input: appclient.Text(text),
	})
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

// command decides about a command. An approval counts once: Codex would let the same words run again
// outside its sandbox, whatever they name by then, and does not say where it runs a command.
func (a *question) command(p *apptypes.CommandApproval) (apptypes.CommandDecision, error) {
	var none apptypes.CommandDecision
	switch p.Kind {
	case "", apptypes.CommandExecutionApprovalKindCommand, apptypes.CommandExecutionApprovalKindWriteStdin, apptypes.CommandExecutionApprovalKindHumanCommand:
	default:
		return none, fmt.Errorf("its kind %q is not known", p.Kind)
	}
	if len(p.AdditionalPermissions) > 0 && string(p.AdditionalPermissions) != "null" {
		return none, errors.New("it asks for further permissions, which a question about a command does not show")
	}
	q := execApproval(p, a.turn.item(p.ItemID), a.agent)
	if len(q.Command) == 0 {
		return none, errors.New("it names no command")
	}
	if strings.Contains(strings.Join(q.Command, "")+q.Cwd, "\x00") {
		return none, errors.New("its command or folder has a NUL byte")
	}
	q.Once = true
	q.Human = p.Kind == apptypes.CommandExecutionApprovalKindHumanCommand || unknown(commandUnknown(p)...) != "" || environment(p.EnvironmentID) != ""
	if hosts := p.NetworkApprovalContext != nil && q.Command[0] == networkAccess; !hosts { // which names no program
		q.LeavesSandbox = a.turn.thread.leavesSandbox()
		q.NoSandbox = !q.LeavesSandbox
	}
	out := a.turn.host.ApproveExec(a.ctx, q)
	if out.Confined { // Codex decides where it runs, and does not say
		out = elicit.Outcome{Decision: elicit.Denied, Feedback: "it may run only in the sandbox, which cannot be ensured"}
	}
	a.decided(out)
	a.explain("`"+elicit.OneLine(elicit.ShowCommand(q.Command), 200)+"`", out)
	return appclient.Decide(a.answer(out)), nil
}

// fileChange decides about a patch. It returns an error for one whose changes it cannot show.
func (a *question) fileChange(p *apptypes.FileApproval) (apptypes.FileDecision, error) {
	var none apptypes.FileDecision
	o := a.turn.item(p.ItemID)
	if o == nil || len(o.Changes) == 0 {
		return none, errors.New("its changes were not announced")
	}
	if err := shows(o.Changes); err != nil {
		return none, err
	}
	q := patchApproval(p, o, a.agent)
	if len(q.Changes) != len(o.Changes) {
		return none, errors.New("it changes a file twice, of which a question shows one change")
	}
	q.Cwd = a.turn.thread.folder()
	out := a.turn.host.ApprovePatch(a.ctx, q)
	a.decided(out)
	a.explain("changes to files", out)
	return apptypes.FileDecision{Decision: a.answer(out)}, nil
}

// answer returns the decision for the app-server. If the item is approved, it first emits the
// event that begins the item.
func (a *question) answer(out elicit.Outcome) string {
	d := decisionOf(out)
	switch {
	case a.turn.ctx.Err() != nil, a.turn.abortCause() != nil:
		d = cancelTurn // after a refusal Codex could ask the model again before the interrupt arrives
	case a.ctx.Err() != nil && d != cancelTurn:
		d = decline
	case d == accept:
		a.turn.release(a.about.itemID, true)
	}
	return d
}

// refuse declines a request that cannot be shown, and reports that to the caller.
func (a *question) refuse(method string, why error) {
	if a.ctx.Err() == nil { // and not withdrawn
		a.turn.report(protocol.BackgroundEvent{
			Message: "refused " + method + " of Codex: " + why.Error(),
			Refused: &protocol.Refused{Tool: method, Cwd: a.turn.thread.folder(), Reason: why.Error()},
		})
	}
	a.turn.thread.child.refuse(method, why)
}

// refuse logs that a request is declined without a question.
func (c *child) refuse(method string, why error) {
	c.log.Warn("codex: approval declined without asking", "method", method, "why", why)
}

// permissions decides about permissions beyond the sandbox.
func (a *question) permissions(p *apptypes.Permissions) (apptypes.PermissionsReply, error) {
	out := a.turn.host.Approve(a.ctx, permissionsQuestion(p, a.agent))
	a.decided(out)
	a.explain("further permissions", out)
	if a.ctx.Err() != nil {
		return appclient.NoPermissions(), nil
	}
	return permissionsAnswer(p, out), nil
}

// elicitation asks a question of one of Codex's MCP servers, or whether a tool of one may be called.
func (a *question) elicitation(p *apptypes.Elicitation) (apptypes.ElicitationReply, error) {
	reply, err := a.elicit((*elicitation)(p))
	if err == nil && a.ctx.Err() != nil {
		reply = apptypes.ElicitationReply{Action: apptypes.MCPServerElicitationActionCancel}
	}
	return withContent(reply), err
}

// withContent returns a reply in the form that all versions were tried with.
func withContent(r apptypes.ElicitationReply) apptypes.ElicitationReply {
	if r.Content == nil {
		r.Content = json.RawMessage("null")
	}
	return r
}

func (a *question) elicit(p *elicitation) (apptypes.ElicitationReply, error) {
	var q *elicit.Question
	var f *elicit.Foreign
	var err error
	tool := p.toolCall()
	if tool {
		q, err = p.toolQuestion()
	} else {
		f, err = p.foreign()
	}
	if err != nil {
		return apptypes.ElicitationReply{}, err
	}
	leave, err := a.queue("server " + p.ServerName)
	if err != nil {
		return apptypes.ElicitationReply{}, err
	}
	defer leave()
	if tool {
		out := a.turn.host.Approve(a.ctx, q)
		a.decided(out)
		a.explain("the call of a tool", out)
		return toolAnswer(out), nil
	}
	result, err := a.turn.host.Elicit(a.ctx, f)
	if err != nil {
		return apptypes.ElicitationReply{}, err
	}
	return answered(result), nil
}

// maxQueue is how many questions of a party may wait for the one that is asked.
const maxQueue = 32

var errQueue = errors.New("questions of the same party wait already")

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
		return nil, fmt.Errorf("%d %w", maxQueue, errQueue)
	}
	if err := slots.Acquire(a.ctx); err != nil {
		return nil, err
	}
	return slots.Release, nil
}

// userInput asks the model's questions to the user.
func (a *question) userInput(p *apptypes.UserInput) (apptypes.UserInputReply, error) {
	u := (*userInput)(p)
	result, err := a.input(u)
	if err != nil {
		return apptypes.UserInputReply{}, err
	}
	return u.answers(result), nil
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
func (r *turn) item(id string) *apptypes.Item {
	r.mu.Lock()
	defer r.mu.Unlock()
	if o := r.tr.open[id]; o != nil {
		return new(o.item)
	}
	return nil
}
