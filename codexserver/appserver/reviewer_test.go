package appserver_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/internal/admit"
	"github.com/codexmcp/codexmcp/codexserver/internal/approve"
	"github.com/codexmcp/codexmcp/codexserver/internal/changes"
	"github.com/codexmcp/codexmcp/codexserver/internal/record"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	turnpkg "github.com/codexmcp/codexmcp/codexserver/internal/turn"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// account is what the parts of the server say of a turn.
type account struct {
	t         *testing.T
	decides   elicit.Decision                       // of a person
	overrules func(context.Context) elicit.Decision // nil if nobody answers
	asked     atomic.Int32                          // how often they were
	log       bytes.Buffer
	result    protocol.TurnResult
	remarks   []string
	events    []string
}

func (*account) Ready(context.Context) {}

func (a *account) Event(e thread.Event) {
	switch m := e.Msg.(type) {
	case protocol.BackgroundEvent:
		if e.Sent() {
			a.events = append(a.events, m.Message)
		}
	case protocol.ExecCommandEnd:
		a.events = append(a.events, "exec end "+m.Status)
	case protocol.ExecCommandBegin, protocol.PatchApplyBegin, protocol.PatchApplyEnd, protocol.MCPToolCallBegin, protocol.MCPToolCallEnd:
		a.events = append(a.events, m.EventType())
	}
}

// lines returns what the log has, a line for each.
func (a *account) lines() (all []string) {
	approved := map[string]string{}
	for text := range strings.Lines(a.log.String()) {
		l := must.Get(record.Parse([]byte(text)))(a.t)
		by := l.By
		if l.Event == record.Decided {
			approved[l.DecisionID] = l.By
		} else if l.DecisionID != "" {
			by = "by " + approved[l.DecisionID]
		}
		if l.Event == record.Ends {
			by = l.Words
			if l.Exit != nil {
				by = fmt.Sprint(*l.Exit)
			}
			l.Facts = approval.Facts{}
		}
		all = append(all, strings.Join(strings.Fields(fmt.Sprint(l.Event, " ", l.Kind, " ", l.Decision, " ", by)), " "))
	}
	return all
}

// say returns all of it as lines, a line for each part that has something.
func (a *account) say() string {
	var refused, commands []string
	for _, r := range a.result.Refused {
		refused = append(refused, fmt.Sprintf("%s %s by %s: %s", r.Kind, r.What, r.By, r.Why))
	}
	for _, c := range a.result.Commands {
		commands = append(commands, fmt.Sprintf("%s by %q", c, c.ApprovedBy))
	}
	var all []string
	for _, part := range []struct {
		name string
		list []string
	}{{"log", a.lines()}, {"refused", refused}, {"commands", commands}, {"events", a.events}} {
		if len(part.list) > 0 {
			all = append(all, part.name+": "+strings.Join(part.list, ", "))
		}
	}
	return strings.Join(all, "\n")
}

// run plays a turn of the fake.
func (a *account) run(f *fake, play func(*run)) error {
	f.turn = func(r *run) { play(r); answered(r) }
	ask := &approve.Place{By: approval.ByPage, Ask: func(ctx context.Context, r *approval.Request) (elicit.Outcome, error) {
		if _, is := r.Subject.(approval.Overrule); !is {
			return elicit.Outcome{Decision: a.decides}, nil
		}
		a.asked.Add(1)
		if a.overrules == nil {
			<-ctx.Done()
			return elicit.Outcome{}, ctx.Err()
		}
		return elicit.Outcome{Decision: a.overrules(ctx)}, nil
	}}
	at := thread.Attend{Turn: turnpkg.New(changes.Options{}), Client: a, Ask: ask}
	share := thread.NewTable(f.engine(appserver.Options{}), &approve.Options{Record: record.To(&a.log)}).Share("")
	defer share.Close()
	th, err := share.Start(a.t.Context(), admit.Trusted(), protocol.Config{Cwd: "/work"}, at)
	must.OK(a.t, err)
	err = th.Begin(a.t.Context(), at, text("go")).Wait()
	a.result, a.remarks = at.Turn.So(), at.Turn.Result().Texts[1:]
	return err
}

// ends reports the end of an item with a status and further members.
func (r *run) ends(item, status, more string) {
	r.notify("item/completed", `{"threadId":%q,"turnId":%q,"item":%s}`, threadID, r.current(), strings.Replace(item, `"inProgress"`, fmt.Sprintf("%q%s", status, more), 1))
}

// reviews reports a review of some seconds. What it decides about follows its target, which is JSON.
func (r *run) reviews(target, action, status string) {
	r.review("started", target, action, "inProgress")
	time.Sleep(5 * time.Second)
	r.notify("guardianWarning", `{"threadId":%q,"message":"Automatic approval review %s"}`, threadID, status)
	r.review("completed", target, action, status)
}

func (r *run) review(method, target, action, status string) {
	r.notify("item/autoApprovalReview/"+method, `{"threadId":%q,"turnId":%q,"reviewId":%q,"startedAtMs":1,"completedAtMs":2,"decisionSource":"agent","targetItemId":%s,"action":%s,
		"review":{"status":%q,"riskLevel":"high","userAuthorization":null,"rationale":"no \u001b[1m way"}}`, threadID, r.current(), "of "+target, target, action, status)
}

// TestWhatRan has each source decide about a command, a patch, or the call of a tool, and compares what the log, the result
// and the events say: what was declined never began, and its refusal names who refused it.
func TestWhatRan(t *testing.T) {
	const (
		running = `{"type":"commandExecution","id":"c1","command":"rm x","cwd":"/work","processId":"7","status":"inProgress","commandActions":[]}`
		waiting = `{"type":"commandExecution","id":"c1","command":"rm x","cwd":"/work","status":"inProgress","commandActions":[]}`
		tool    = `{"type":"mcpToolCall","id":"c1","server":"s","tool":"write","arguments":{},"status":"inProgress"}`
		rm      = `{"type":"command","command":"rm x","cwd":"/work"}`
		patches = `{"type":"applyPatch","cwd":"/work","files":["/repo/a"]}`
		writes  = `{"type":"mcpToolCall","server":"s","toolName":"write"}`
		asked   = `{` + ofTurn + `,"serverName":"s","mode":"form","_meta":{"codex_approval_kind":"mcp_tool_call"%s},"message":"Allow the s MCP server to run tool \"write\"?","requestedSchema":{"type":"object","properties":{}}}`
		second  = "command failed; retry without sandbox?"
		finer   = `{"granular":{"sandbox_approval":true}}`
		done    = `,"exitCode":0`
	)
	nothing := func(*run) {}
	waits := func(*run) { time.Sleep(5 * time.Second) } // a busy machine
	asks := func(reason string) func(*run) {
		return func(r *run) {
			r.ask(askCommand, `{`+ofTurn+`,"itemId":"c1","command":"rm x","cwd":"/work","reason":%q}`, reason)
		}
	}
	asksTool := func(more string) func(*run) { return func(r *run) { r.ask(askElicit, asked, more) } }
	reviews := func(target, action, status string) func(*run) {
		return func(r *run) { r.reviews(target, action, status) }
	}
	for _, tt := range []struct {
		name, policy string
		decides      elicit.Decision
		item         string // which begins
		act          func(r *run)
		status, more string // at its end; "" is none
		want         string // ‹…› is code, SAYS what the reviewer says
	}{
		{"it runs at once", "", "", running, nothing, "completed", done, `
log: begins command, ends 0
commands: rm x (exit 0) by ""
events: exec_command_begin, exec end `},
		{"a person approves", "", elicit.Approved, waiting, asks(""), "completed", done, `
log: decided command approved page, begins command by page, ends 0
commands: rm x (exit 0) by "page"
events: exec_command_begin, exec end `},
		{"a person declines", "", elicit.Denied, waiting, func(r *run) { waits(r); asks("")(r) }, "declined", "", `
log: decided command denied page
refused: command rm x by page: declined
events: Codex runs ‹rm x›, or still decides about it`},
		{"Codex declines after a while", "", "", waiting, waits, "declined", "", `
log: decided command denied policy
refused: command rm x by policy: declined by the policy of Codex
events: Codex runs ‹rm x›, or still decides about it, ‹rm x›: declined by the policy of Codex`},
		{"no question can show it", "", "", waiting, func(r *run) {
			r.ask(askCommand, `{`+ofTurn+`,"itemId":"c9","command":"rm x","cwd":"/work","additionalPermissions":{"network":{"enabled":true}}}`)
		}, "completed", done, `
log: decided tool denied policy, begins command, ends 0
refused: other item/commandExecution/requestApproval by policy: it asks for further permissions, which a question about a command does not show
commands: rm x (exit 0) by ""
events: refused item/commandExecution/requestApproval of Codex: it asks for further permissions, which a question about a command does not show, exec_command_begin, exec end `},
		{"the reviewer denies", "", "", waiting, reviews(`"c1"`, rm, "denied"), "declined", "", `
log: decided command denied reviewer
refused: command rm x by reviewer: denied SAYS
events: ‹rm x›: denied SAYS`},
		{"the reviewer allows", "", "", waiting, reviews(`"c1"`, rm, "approved"), "completed", done, `
log: decided command approved reviewer, begins command by reviewer, ends 0
commands: rm x (exit 0) by "reviewer"
events: ‹rm x›: allowed SAYS, exec_command_begin, exec end `},
		{"the reviewer takes too long", "", "", waiting, reviews(`"c1"`, rm, "timedOut"), "failed", "", `
log: decided command denied reviewer
refused: command rm x by reviewer: not decided in time SAYS
events: ‹rm x›: not decided in time SAYS`},
		{"an end during the review", "", "", waiting, func(r *run) { r.review("started", `"c1"`, rm, "inProgress") }, "failed", "", `
log: decided command denied policy
refused: command rm x by policy: declined by the policy of Codex
events: ‹rm x›: declined by the policy of Codex`},
		{"an unknown verdict", "", "", waiting, reviews(`"c1"`, rm, "Approved"), "declined", "", `
log: decided command denied policy
refused: command rm x by policy: declined by the policy of Codex
events: ‹rm x›: Codex's reviewer, a model, ended with the unknown word "Approved", which counts as no approval, which says: "no \\x1b[1m way", ‹rm x›: declined by the policy of Codex`},
		{"an unknown form", "", "", waiting, func(r *run) {
			for _, method := range []string{"started", "completed"} {
				r.notify("item/autoApprovalReview/"+method, `{"threadId":%q,"turnId":%q,"reviewId":7,"targetItemId":{"id":"c1"},"action":"rm","review":["approved"]}`, threadID, turnID)
			}
		}, "declined", "", `
log: decided command denied policy
refused: command rm x by policy: declined by the policy of Codex
events: an action that this version cannot show, :: Codex's reviewer, a model, ended with the unknown word "", which counts as no approval, ‹rm x›: declined by the policy of Codex`},
		{"an unknown action", "", "", waiting, reviews(`"c1"`, `{"type":"removal","command":"rm y"}`, "approved"), "completed", done, `
log: begins command, ends 0
commands: rm x (exit 0) by ""
events: ‹rm x›: allowed by Codex's reviewer, a model, which counts as no approval, which says: "no \\x1b[1m way", exec_command_begin, exec end `},
		{"the reviewer denies, under finer rules", finer, "", waiting, reviews(`"c1"`, rm, "denied"), "declined", "", `
log: decided command denied reviewer
refused: command rm x by reviewer: denied SAYS; it may have run in Codex's sandbox before
events: ‹rm x›: denied SAYS; it may have run in Codex's sandbox before`},
		{"the reviewer denies the second run", "", "", running, func(r *run) {
			r.notify("item/commandExecution/outputDelta", `{"threadId":%q,"turnId":%q,"itemId":"c1","delta":"out\n"}`, threadID, turnID)
			r.reviews(`"c1"`, rm, "denied")
		}, "declined", `,"aggregatedOutput":"out\n"`, `
log: begins command, decided command denied reviewer, ends declined
refused: command rm x by reviewer: denied SAYS; it has run in Codex's sandbox before, and this was about the run outside
commands: rm x by ""
events: exec_command_begin, ‹rm x›: denied SAYS; it has run in Codex's sandbox before, and this was about the run outside, exec end declined`},
		{"a person declines the second run", finer, elicit.Denied, waiting, asks(second), "declined", "", `
log: begins command, decided command denied page, ends declined
refused: command rm x by page: declined
commands: rm x by ""
events: exec_command_begin, exec end declined, ‹rm x›: declined; it has run in Codex's sandbox before, and this was about the run outside`},
		{"a model says that it is the second run", "", elicit.Denied, waiting, asks(second), "declined", "", `
log: decided command denied page
refused: command rm x by page: declined`},
		{"declined after an approval", "", elicit.Approved, waiting, asks(""), "declined", "", `
log: decided command approved page, begins command by page, ends declined
commands: rm x by "page"
events: exec_command_begin, exec end declined, ‹rm x›: declined; it may have run in Codex's sandbox before`},
		{"the reviewer denies input", "", "", running, reviews(`"c1"`, `{"type":"writeStdin","approvalId":"c2","processId":"7","stdin":"y\n","cwd":"/work"}`, "denied"), "completed", done, `
log: begins command, decided command denied reviewer, ends 0
refused: command write_stdin --session-id 7 $'y\n' by reviewer: denied SAYS
commands: rm x (exit 0) by ""
events: exec_command_begin, ‹write_stdin --session-id 7 $'y\n'›: denied SAYS, exec end `},
		{"the reviewer denies a host", "", "", running, reviews(`null`, `{"type":"networkAccess","target":"https://h:443","host":"h","protocol":"https","port":443}`, "denied"), "completed", done, `
log: begins command, decided command denied reviewer, ends 0
refused: command network-access https h by reviewer: denied SAYS
commands: rm x (exit 0) by ""
events: exec_command_begin, ‹network-access https h›: denied SAYS, exec end `},
		{"the reviewer denies a patch", "", "", patchItem, reviews(`"p1"`, patches, "denied"), "declined", "", `
log: decided patch denied reviewer
refused: patch /repo/a by reviewer: denied SAYS
events: changes to /repo/a: denied SAYS`},
		{"the reviewer allows a patch", "", "", patchItem, reviews(`"p1"`, patches, "approved"), "completed", "", `
log: decided patch approved reviewer, begins patch by reviewer, ends 0
events: changes to /repo/a: allowed SAYS, patch_apply_begin, patch_apply_end`},
		{"a slow patch", "", "", patchItem, waits, "completed", "", `
log: begins patch, ends 0
events: Codex runs changes to /repo/a, or still decides about it, patch_apply_begin, patch_apply_end`},
		{"a patch without an end", "", "", patchItem, nothing, "", "", `
log: begins patch, ends the turn ended before the end was reported
events: patch_apply_begin`},
		{"the reviewer denies a tool", "", "", tool, reviews(`"c1"`, writes, "denied"), "failed", `,"error":{"message":"This action was rejected"}`, `
log: decided tool denied reviewer
refused: other s/write by reviewer: denied SAYS
events: s/write: denied SAYS`},
		{"the reviewer allows a tool that fails", "", "", tool, reviews(`"c1"`, writes, "approved"), "failed", `,"error":{"message":"it broke"}`, `
log: decided tool approved reviewer, begins tool by reviewer, ends 1
events: s/write: allowed SAYS, mcp_tool_call_begin, mcp_tool_call_end`},
		{"a hook declines a tool", "", "", tool, func(r *run) {
			r.notify("hook/completed", `{"threadId":%q,"turnId":%q,"run":{"id":"permission-request:0:/h.json:c1","eventName":"permissionRequest","status":"blocked"}}`, threadID, turnID)
		}, "failed", `,"error":{"message":"hook says no"}`, `
log: decided tool denied policy
refused: other s/write by policy: declined by the policy of Codex
events: s/write: declined by the policy of Codex`},
		{"a person declines a tool", "", elicit.Denied, tool, asksTool(`,"tool_name":"write"`), "failed", `,"error":{"message":"user rejected MCP tool call"}`, `
log: decided other denied page
refused: other Allow Codex to call the tool "write" of the MCP server "s", outside the sandbox? by page: declined`},
		{"a person approves a tool, as older versions ask", "", elicit.Approved, tool, asksTool(""), "completed", `,"result":{"content":[]}`, `
log: decided other approved page, begins tool, ends 0
events: mcp_tool_call_begin, mcp_tool_call_end`},
		{"two items with one id, and the reviewer allows one", "", "", strings.Replace(waiting, "rm x", "rm y", 1), func(r *run) {
			r.item(threadID, turnID, waiting)
			r.reviews(`"c1"`, `{"type":"command","command":"rm y","cwd":"/work"}`, "approved")
			r.ends(waiting, "declined", "")
		}, "", "", `
log: decided command approved reviewer, decided command denied policy
refused: command rm x by policy: declined by the policy of Codex
events: ‹rm y›: allowed SAYS, ‹rm x›: declined by the policy of Codex`},
	} {
		inBubble(t, tt.name, func(t *testing.T, f *fake) {
			f.policy = tt.policy
			a := &account{t: t, decides: tt.decides}
			must.Check(t, a.run(f, func(r *run) {
				r.item(threadID, turnID, tt.item)
				if tt.act(r); tt.status != "" {
					r.ends(tt.item, tt.status, tt.more)
				}
			}))
			want := strings.NewReplacer("‹", "`", "›", "`", "SAYS", `by Codex's reviewer, a model, which says: "no \\x1b[1m way"`).Replace(tt.want)
			must.Equal(t, "account", strings.TrimPrefix(want, "\n"), a.say())
		})
	}
}

// TestReviewOfSubAgent has the reviewer deny a command of a sub-agent, and warn of it.
func TestReviewOfSubAgent(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		a := &account{t: t}
		err := a.run(f, func(r *run) {
			withAgent(r)
			for _, method := range []string{"started", "completed"} {
				r.notify("item/autoApprovalReview/"+method, `{"threadId":%q,"turnId":"agent-turn","reviewId":"r","targetItemId":"c1","action":{"type":"command","command":"rm x"},"review":{"status":"denied"}}`, agentID)
			}
			r.notify("item/completed", `{"threadId":%q,"turnId":"agent-turn","item":%s}`, agentID, strings.Replace(command, "inProgress", "declined", 1))
			r.notify("guardianWarning", `{"threadId":%q,"message":"too many"}`, threadID)
			agentEnds(r)
		})
		must.OK(t, err)
		must.Equal(t, "account", "log: decided command denied reviewer\nrefused: command rm x by reviewer: denied by Codex's reviewer, a model\n"+
			"events: `rm x`: denied by Codex's reviewer, a model, Codex's reviewer: too many", a.say())
	})
}
