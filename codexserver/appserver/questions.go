package appserver

import (
	"cmp"
	"context"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/appserver/appclient"
	"github.com/codexmcp/codexmcp/codexserver/appserver/apptypes"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/plain"
	"github.com/codexmcp/codexmcp/internal/slots"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// question is a request of the app-server that a person decides.
type question struct {
	about about
	turn  *turn
	agent string // the path of the sub-agent that asks; "" for the conversation itself
	ctx   context.Context
	stop  context.CancelFunc // ends ctx, after which no answer approves
	alone time.Time          // when an approval may be sent, see twinTime
}

// about is what a request is about, by ids. An item may have several approvals, which then have ids of their own, as JSON.
type about struct{ threadID, turnID, itemID, approvalID string }

func (a *about) item() itemKey { return itemKey{a.threadID, a.itemID} }

// answered names the question for which Codex counts an answer.
func (a *about) answered() itemKey { return itemKey{a.threadID, cmp.Or(a.approvalID, a.itemID)} }

var (
	errNobody = errors.New("it belongs to no running turn")
	errOther  = errors.New("it belongs to a turn that nobody has asked for here")
	errTwice  = errors.New("two items have its id, so what it is about is not known")
	errTwins  = errors.New("another question has its id, so that an answer could count for either")
)

// twinTime is how long an approval waits at least for another question with its id. The model chooses the id of an item,
// and Codex counts an answer for the question with the id that came last: of two calls in one response, an approval
// of the one would run the other. So questions that are open at the same time with one id are declined. They come
// within milliseconds, but a rule may approve the first before the second has arrived. The time is not always
// the same, so that a provider cannot send the second call just when it is over.
const twinTime = 50 * time.Millisecond

// answer returns the function that answers the questions of a method. With an error, nothing is allowed. Several
// questions of a turn may be open at a time.
func answer[P, R any](
	c *child, method string, of func(*P) about, decide func(*question, *P) (R, error),
) func(context.Context, *P) (R, error) {
	return func(ctx context.Context, p *P) (answer R, err error) {
		defer func() {
			if err != nil {
				c.log.Warn("codex: approval declined without asking", "method", method, "why", err)
			}
		}()
		a, err := c.ask(ctx, of(p))
		if a == nil {
			return answer, err
		}
		defer a.close()
		defer context.AfterFunc(a.turn.ctx, a.stop)()
		if err == nil {
			answer, err = decide(a, p)
		}
		if err != nil && a.ctx.Err() == nil && !errors.Is(err, slots.ErrFull) { // an event for each would be as many
			a.turn.report(protocol.BackgroundEvent{
				Message: "refused " + method + " of Codex: " + err.Error(),
				Refused: &protocol.Refused{Tool: method, Cwd: a.turn.settings.now.Cwd, Reason: err.Error()},
			})
		}
		return answer, err
	}
}

// ask finds the turn of a request. It returns no question, and the request is declined, if the turn takes none any more,
// since it has ended or an earlier answer aborted it. With an error, the question is declined, too, and the client is told.
func (c *child) ask(ctx context.Context, what about) (a *question, err error) {
	t, r := c.find(what.threadID)
	if r == nil || ctx.Err() != nil { // withdrawn already
		return nil, errNobody
	}
	if turn, err := r.named(ctx); err != nil || t.agent == "" && what.turnID != "" && what.turnID != turn {
		return nil, cmp.Or(err, errOther)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended || r.over {
		return nil, errNobody
	}
	if r.form {
		return nil, errForm
	}
	r.asked[what.item()] = true
	if r.aborted != nil {
		return nil, r.aborted
	}
	a = &question{about: what, turn: r, agent: t.agent, alone: time.Now().Add(twinTime + rand.N(twinTime))}
	a.ctx, a.stop = context.WithCancel(ctx)
	for twin := range r.questions {
		if what.itemID != "" && twin.about.answered() == what.answered() { // else of an MCP server or the model
			twin.stop()
			err = errTwins
		}
	}
	r.questions[a] = true
	r.online()
	return a, err
}

// close ends a question whose answer is about to be sent.
func (a *question) close() {
	a.stop()
	a.turn.mu.Lock()
	defer a.turn.mu.Unlock()
	delete(a.turn.questions, a)
}

// decided does what follows from a decision about what, and returns the answer for the app-server. Every unknown
// decision declines. An approval counts once, also one for the session; the event that begins the approved item
// is emitted first. An abort ends the whole turn, even if a sub-agent asked; the model is told the reason of a
// refusal. The decision about a question that the app-server has withdrawn is ignored.
func (a *question) decided(what string, out elicit.Outcome) string {
	r := a.turn
	if out.Decision == elicit.Abort && a.ctx.Err() == nil {
		r.mu.Lock()
		r.abandon(abortReason(out))
		r.mu.Unlock()
	}
	a.explain(what, out)
	if out.Decision.Approves() && a.about.itemID != "" {
		select {
		case <-time.After(time.Until(a.alone)):
		case <-a.ctx.Done():
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch moved, key := !r.unmoved(), a.about.item(); {
	case r.ctx.Err() != nil, moved:
		return cancelTurn // after a refusal Codex could ask the model again before the interrupt arrives
	case a.ctx.Err() != nil:
		return decline
	case out.Decision == elicit.Approved, out.Decision == elicit.ApprovedForSession:
		if !r.reviewing(key) {
			r.begins(key)
		}
		return accept
	}
	return decline
}

// steerLimit is how long telling Codex what a person decided may take, which is not worth to kill a busy app-server.
const steerLimit = 2 * time.Second

// explain sends the model the reason of a refusal: what a person wrote, or that no person
// could be asked. What names the question, because others may be open. The answer to the
// app-server has no room for a reason, so it is sent as input to the turn, before the answer
// and after the end of the model's response. If the app-server refuses the input, the model
// sees only the refusal.
func (a *question) explain(what string, out elicit.Outcome) {
	if out.Decision != elicit.Denied || out.Feedback == "" && out.ForCaller() == "" || out.ForModel() == "" ||
		a.turn.ctx.Err() != nil {
		return
	}
	if a.agent == "" { // the tokens of sub-agents are not reported
		a.turn.whole(a.ctx)
	}
	if a.ctx.Err() != nil {
		return
	}
	text := "About the approval request for " + what + ": " + out.ForModel() + "."
	c := a.turn.thread.child
	p := &apptypes.SteerParams{ThreadID: a.about.threadID, ExpectedTurnID: a.about.turnID, Input: appclient.Text(text)}
	if err := c.call(a.ctx, steerLimit, apptypes.CallTurnSteer, p, nil); err != nil {
		c.log.Debug("codex: the model did not get the reason", "error", err)
	}
}

// abortReason returns the reason for the abort of a turn.
func abortReason(out elicit.Outcome) error {
	text := out.ForCaller()
	if text == "" && out.Reason != "" {
		text = out.ForModel()
	}
	return errors.New(cmp.Or(text, "the client chose to abort the turn"))
}

// abandon interrupts the turn, unless that is done. The lock is held.
func (r *turn) abandon(why error) {
	if r.aborted == nil {
		r.aborted = why
		r.interrupt()
	}
}

// secondRun is Codex's reason for a question about a command that has run in its sandbox and failed.
const secondRun = "command failed; retry without sandbox?"

// command decides about a command. An approval counts once: Codex would let the same words run again
// outside its sandbox, whatever they name by then, and does not say where it runs a command.
func (a *question) command(p *apptypes.CommandApproval) (none apptypes.Decision, err error) {
	input, human := p.Kind == apptypes.CommandExecutionApprovalKindWriteStdin,
		p.Kind == apptypes.CommandExecutionApprovalKindHumanCommand
	if !input && !human && p.Kind != "" && p.Kind != apptypes.CommandExecutionApprovalKindCommand {
		return none, fmt.Errorf("its kind %q is not known", p.Kind)
	}
	if len(p.AdditionalPermissions) > 0 && string(p.AdditionalPermissions) != "null" {
		return none, errors.New("it asks for further permissions, which a question about a command does not show")
	}
	o, err := a.item(p.Reason == secondRun && !input)
	if err != nil {
		return none, err
	}
	q := approval.Command{CallID: p.ItemID, Cwd: cmp.Or(p.Cwd, o.Cwd), Once: true}
	line := cmp.Or(p.Command, o.Command)
	if line != "" {
		q.Command = splitCommand(line)
	}
	elsewhere, more, about := place(p.EnvironmentID), unknown(p.Unknown), []string{a.asker()}
	if input {
		about = append(about, "input for a command that is running")
	}
	about = append(about, elsewhere)
	if n := p.NetworkApprovalContext; n != nil {
		more = unknown(p.Unknown, n.Unknown)
		about = append(about, fmt.Sprintf("network access to %s by %s", n.Host, n.Protocol))
		if line == "" {
			q.Command, q.Network = []string{networkAccess, n.Protocol, n.Host}, true
		}
	}
	remarks := joined(append(about, more)...)
	q.Human = human || elsewhere != "" || more != ""
	q.Reason, q.FromEngine = joined(remarks, p.Reason), remarks != "" && p.Reason == ""
	if len(q.Command) == 0 {
		return none, errors.New("it names no command")
	}
	if strings.Contains(strings.Join(q.Command, "")+q.Cwd, "\x00") {
		return none, errors.New("its command or folder has a NUL byte")
	}
	if !q.Network { // which names no program
		// Codex does not say which of its questions are about leaving the sandbox. Under the policy untrusted, it
		// first tries in the sandbox, and if the command fails, runs it again outside without a further question.
		q.NoSandbox = a.turn.settings.now.Sandbox.Mode == protocol.SandboxDangerFullAccess
		q.LeavesSandbox = !q.NoSandbox
	}
	out := a.turn.host.Ask(a.ctx, q)
	if out.Confined { // Codex decides where it runs, and does not say
		out = elicit.Outcome{Decision: elicit.Denied,
			Feedback: "it may run only in the sandbox, which cannot be ensured"}
	}
	return apptypes.Decision{Decision: a.decided("`"+plain.OneLine(elicit.ShowCommand(q.Command), 200)+"`", out)}, nil
}

// fileChange decides about a patch. It returns an error for one whose changes it cannot show.
func (a *question) fileChange(p *apptypes.FileApproval) (none apptypes.Decision, err error) {
	o, err := a.item(false)
	if err != nil {
		return none, err
	}
	if len(o.Changes) == 0 {
		return none, errors.New("its changes were not announced")
	}
	all := []jsontext.Value{p.Unknown}
	for _, u := range o.Changes {
		switch u.Kind.Type {
		case apptypes.PatchChangeKindAdd, apptypes.PatchChangeKindDelete, apptypes.PatchChangeKindUpdate:
		default:
			return none, fmt.Errorf("it changes a file in the unknown way %q", u.Kind.Type)
		}
		if more := unknown(u.Unknown); more != "" && u.Diff == "" {
			return none, fmt.Errorf("the change of a file has an unknown form: %s", more)
		}
		all = append(all, u.Unknown, u.Kind.Unknown)
	}
	if len(fileChanges(o.Changes)) != len(o.Changes) {
		return none, errors.New("it changes a file twice, of which a question shows one change")
	}
	shown := a.turn.announce(o, false)
	a.turn.shows(a.about.item(), shown)
	q := approval.Patch{
		CallID: p.ItemID, Changes: shown.Changes, Links: shown.Links, Why: shown.Why,
		Reason: joined(a.asker(), p.Reason),
		Cwd:    a.turn.settings.now.Cwd, GrantRoot: p.GrantRoot, Once: true,
	}
	if more := unknown(all...); more != "" {
		q.Notes = append(q.Notes, more)
	}
	if p.GrantRoot != "" {
		q.Notes = append(q.Notes, "Codex names "+p.GrantRoot+" for later changes, which this approval is not for")
	}
	out := a.turn.still(shown, a.turn.host.Ask(a.ctx, q))
	return apptypes.Decision{Decision: a.decided("changes to files", out)}, nil
}

// permissions decides about permissions beyond the sandbox.
func (a *question) permissions(p *apptypes.Permissions) (apptypes.PermissionsReply, error) {
	out := a.turn.host.Ask(a.ctx, approval.Other{Ask: permissionsQuestion(p, a.agent)})
	if a.decided("further permissions", out) != accept {
		return appclient.NoPermissions(), nil
	}
	return apptypes.PermissionsReply{Permissions: p.Permissions, Scope: apptypes.PermissionGrantScopeTurn}, nil
}

// item returns the open item that the question is about, an empty one if none is open. It begins one of which Codex says that it has
// run in its sandbox and failed, and is to run again.
func (a *question) item(again bool) (*apptypes.Item, error) {
	r, key := a.turn, a.about.item()
	r.mu.Lock()
	defer r.mu.Unlock()
	o := r.open[key]
	if o == nil {
		return &apptypes.Item{}, nil
	}
	if o.twice {
		return nil, errTwice
	}
	if again && !r.ended && r.asksTwice() {
		o.first = true
		r.begins(key)
	}
	return &o.item, nil
}

// The decisions. Those about commands and patches and those about elicitations are the same words.
const (
	accept     = apptypes.CommandExecutionApprovalDecisionAccept
	decline    = apptypes.CommandExecutionApprovalDecisionDecline
	cancelTurn = apptypes.CommandExecutionApprovalDecisionCancel
)

// These take the place of a program in a question about a host, and one about permissions.
const (
	networkAccess      = "network-access"
	furtherPermissions = "further-permissions"
)

// asker returns the remark about who asks, "" for the conversation itself.
func (a *question) asker() string {
	if a.agent == "" {
		return ""
	}
	return "asked by the sub-agent " + a.agent
}

// place returns words about where a command would run, "" for the app-server's own machine.
func place(raw stdjson.RawMessage) string {
	if e := environment(raw); e != "" {
		return "in the environment " + e + ", not on this machine"
	}
	return ""
}

// environment returns where a command would run, "" for the app-server's own machine.
func environment(raw stdjson.RawMessage) string {
	var id string
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return ""
	case json.Unmarshal(raw, &id) != nil:
		return string(raw)
	case id == "local":
		return ""
	}
	return fmt.Sprintf("%q", id)
}

// maxUnknown bounds what is shown of unknown members, in bytes.
const maxUnknown = 300

// unknown returns words about members that newer versions of Codex send with a question and this
// program does not know, or "". Null says nothing.
func unknown(objects ...jsontext.Value) string {
	var names []string
	for _, object := range objects {
		var members map[string]jsontext.Value
		if len(object) > 0 && json.Unmarshal(object, &members) != nil {
			members = map[string]jsontext.Value{"members": object}
		}
		for _, name := range slices.Sorted(maps.Keys(members)) {
			if text := string(members[name]); text != "null" {
				names = append(names, name+" = "+text)
			}
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "Codex also says what this version does not know: " + plain.OneLine(strings.Join(names, ", "), maxUnknown)
}

// joined joins remarks of the bridge and the model's own reason, each of which may be "".
func joined(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), "; ")
}

// permissionsQuestion returns the question about permissions beyond the sandbox.
func permissionsQuestion(p *apptypes.Permissions, agent string) *elicit.Question {
	asks := "Codex"
	if agent != "" {
		asks = "Codex's sub-agent " + agent
	}
	q := (approval.Command{
		Asker:   asks,
		Command: []string{furtherPermissions, string(p.Permissions)},
		Cwd:     p.Cwd,
		Reason:  p.Reason,
		Notes:   []string{"This is not a command: it grants these permissions to the commands that follow."},
		Once:    true,
	}).Question("", "")
	also, reason := "Asked by "+asks+", in "+elicit.ShowCommand([]string{p.Cwd}), q.Brief.Reason
	for _, more := range []string{place(p.EnvironmentID), unknown(p.Unknown)} {
		if more != "" {
			also += "; " + more
			q.Message += "\n" + elicit.ShowText(more)
		}
	}
	q.Brief = approval.Brief("Beyond the sandbox, all further commands of this turn:", string(p.Permissions), also+".")
	q.Brief.Reason = reason
	if len(p.Permissions) > 0 {
		q.Meta = map[string]any{"permissions": jsontext.Value(p.Permissions)} // whole
	}
	return q
}
