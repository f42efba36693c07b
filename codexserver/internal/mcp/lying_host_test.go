package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/google/go-cmp/cmp"
)

// lie is how a host answers one question.
type lie struct {
	after  time.Duration
	result string // "" drops the question
	fails  bool   // with an error, which only clients with a handshake can send
}

// lyingHosts declare that they show questions, and answer by themselves. The last lie is that of
// all further questions.
var lyingHosts = []struct {
	name         string
	capabilities string
	lies         []lie
	asking       setting.Asking
	alone        string // the decisions without another place
	counts       bool   // its answers count although there is a page
	given        string // the decisions that count as given before it is recognised
}{
	{name: "declines", lies: []lie{{2 * time.Millisecond, servertest.Decline, false}}, alone: "denied denied"},
	{name: "cancels", lies: []lie{{2 * time.Millisecond, servertest.Cancel, false}}, alone: "abort"},
	{name: "drops", lies: []lie{{}}, alone: "denied denied"},
	{name: "hangs", lies: []lie{{180 * time.Second, servertest.Decline, false}}, alone: "denied denied"},
	{name: "fails", lies: []lie{{2 * time.Millisecond, "", true}}, alone: "denied denied"},
	{name: "fails late", lies: []lie{{time.Second, "", true}}, alone: "denied denied"},
	{name: "says what nobody understands, twice", lies: []lie{{2 * time.Millisecond, `{"action":"yes"}`, false}}, alone: "denied denied", given: "denied "},
	{name: "a hook that accepts", lies: []lie{{5 * time.Millisecond, servertest.Accept, false}}, asking: setting.Asking{Automatic: setting.AutomaticAsk}, alone: "denied denied"},
	{name: "a hook that accepts for the session", lies: []lie{{5 * time.Millisecond, servertest.ForSession, false}}, asking: setting.Asking{Automatic: setting.AutomaticAsk}, alone: "denied denied"},
	{name: "a hook that accepts, which is denied", lies: []lie{{5 * time.Millisecond, servertest.Accept, false}}, asking: setting.Asking{Automatic: setting.AutomaticDeny}, alone: "denied denied", counts: true},
	{name: "a policy that accepts", lies: []lie{{5 * time.Millisecond, servertest.Accept, false}}, alone: "approved approved", counts: true},
	{name: "shows only links", capabilities: `{"elicitation":{"url":{}}}`, lies: []lie{{2 * time.Millisecond, servertest.Accept, false}}, alone: "denied denied"},
	{name: "shows only forms", capabilities: `{"elicitation":{"form":{}}}`, lies: []lie{{2 * time.Millisecond, servertest.Decline, false}}, alone: "denied denied"},
	{name: "changes its mind", lies: []lie{{2 * time.Millisecond, servertest.Decline, false}, {2 * time.Millisecond, servertest.Accept, false}}, alone: "denied approved"},
	{name: "declines and then drops", lies: []lie{{2 * time.Millisecond, servertest.Decline, false}, {}}, alone: "denied denied"},
	{name: "is never asked", lies: []lie{{806 * time.Millisecond, servertest.Accept, false}}, asking: setting.Asking{Where: setting.WherePage}, alone: "denied denied"},
	{name: "is never asked, by its name", lies: []lie{{806 * time.Millisecond, servertest.Accept, false}}, asking: setting.Asking{Where: setting.WhereHost, Clients: map[string]setting.Where{"test": setting.WherePage}}, alone: "denied denied"},
	{name: "shows the question", lies: []lie{{806 * time.Millisecond, servertest.Accept, false}}, asking: setting.Asking{Automatic: setting.AutomaticAsk}, alone: "approved approved", counts: true},
}

// TestLyingHosts has hosts answer by themselves, in both eras and in tasks. With a page a command
// runs if and only if the person on the page approves, no call hangs, and the result says who
// decided. Without another place their answers count as they are given.
func TestLyingHosts(t *testing.T) {
	for n, tt := range lyingHosts {
		for _, era := range []string{"handshake", "rounds", "task"} {
			for i, page := range []string{"", servertest.Accept, servertest.Decline} {
				if testing.Short() && era == "task" && i != n%3 {
					continue
				}
				first := tt.lies[0]
				last := tt.lies[len(tt.lies)-1]
				drops := last.result == "" && !last.fails
				never := strings.HasPrefix(tt.name, "is never asked")
				if first.fails && era != "handshake" || drops && era == "rounds" && page == "" {
					continue // it could only say nothing, or never comes back
				}
				t.Run(fmt.Sprintf("%s/%s/%s", tt.name, era, page), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						o := &codexserver.Options{Asking: tt.asking}
						if page != "" {
							o.Desk = &servertest.Desk{Answer: servertest.After(5*time.Second, page), Invitation: "come here"}
						}
						if era == "task" {
							o.Home, o.Changes.Off = t.TempDir(), true
						}
						began := time.Now()
						decisions, result, asked := askTwice(t, o, era, tt.capabilities, tt.lies)
						took := time.Since(began)
						want := tt.alone
						if page != "" && !tt.counts {
							said := map[string]string{servertest.Accept: "approved", servertest.Decline: "denied"}[page]
							if want = tt.given + said; tt.given == "" {
								want = said + " " + said
							}
						}
						if diff := cmp.Diff(want, decisions); diff != "" {
							t.Errorf("decisions (-want +got):\n%s\n%s", diff, result)
						}
						limit := 30 * time.Second
						if era != "handshake" {
							limit += first.after // it comes back so late
						}
						if page != "" && took > limit {
							t.Errorf("it took %v", took)
						}
						void := (first.fails || first.result != "" && first.after < time.Second) && !strings.Contains(tt.capabilities, "url") && !never
						if never && asked > 0 {
							t.Errorf("asked %d times", asked)
						}
						if says := strings.Contains(result, "after the question. That did not count; the decision came from the approvals page."); says != (void && page != "" && !tt.counts) {
							t.Errorf("the result says who decided: %t\n%s", says, result)
						}
					})
				})
			}
		}
	}
}

// askTwice runs a turn that asks twice, with a host in an era. It returns the decisions and the
// result as JSON, and how often the host was asked.
func askTwice(t *testing.T, o *codexserver.Options, era, capabilities string, lies []lie) (decisions, result string, asked int) {
	var all []string
	e := engine.TurnFunc(func(ctx context.Context, host engine.Host, _ []protocol.InputItem) error {
		for _, id := range []string{"one", "two"} {
			out := host.ApproveExec(ctx, protocol.ExecApprovalRequest{CallID: id, Command: []string{"touch", id}, Cwd: "/work"})
			all = append(all, string(out.Decision))
			if out.Decision == "abort" {
				return &engine.AbortError{}
			}
		}
		return nil
	})
	ours, theirs := jsonrpc.Pipe()
	h := &lyingHost{t: t, lies: lies, era: era, capabilities: capabilities}
	h.peer = jsonrpc.NewPeer(ours, h, &jsonrpc.Options{Cancellation: jsonrpc.MCPCancel})
	running, served := make(chan error, 1), make(chan error, 1)
	go func() { running <- h.peer.Run(context.Background()) }()
	go func() { served <- codexserver.New(e, o).Serve(context.Background(), theirs) }()
	result = h.call()
	h.peer.Close()
	if err := errors.Join(<-running, <-served); err != nil {
		t.Error(err)
	}
	return strings.Join(all, " "), result, h.asked
}

// lyingHost is a client that answers by itself.
type lyingHost struct {
	t                 *testing.T
	peer              *jsonrpc.Peer
	lies              []lie
	asked             int
	era, capabilities string
	seen              func(question json.RawMessage) // in a result
}

// lie returns the answer to the next question, when it is given.
func (h *lyingHost) lie(ctx context.Context) lie {
	one := h.lies[min(h.asked, len(h.lies)-1)]
	h.asked++
	if one.result != "" || one.fails {
		_ = servertest.Wait(ctx, one.after)
	}
	return one
}

// ServeRPC implements [jsonrpc.Handler].
func (h *lyingHost) ServeRPC(ctx context.Context, r *jsonrpc.Request) (any, error) {
	if r.IsNotification() {
		return nil, nil
	}
	one := h.lie(ctx)
	switch {
	case one.fails:
		return nil, servertest.ErrBroken
	case one.result == "":
		<-ctx.Done()
	}
	return json.RawMessage(one.result), ctx.Err()
}

// send sends a request, with the _meta of the host since 2026-07-28.
func (h *lyingHost) send(method, members string) (r lyingReply) {
	capabilities := h.capabilities
	if capabilities == "" {
		capabilities = `{"elicitation":{}}`
	}
	if h.era == "task" {
		capabilities = strings.TrimSuffix(capabilities, "}") + `,"extensions":{"io.modelcontextprotocol/tasks":{}}}`
	}
	switch h.era {
	case "handshake":
		if method == "initialize" {
			members = `"protocolVersion":"2025-11-25","clientInfo":{"name":"test","version":"1"},"capabilities":` + capabilities
		}
	default:
		members += `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":` + capabilities +
			`,"io.modelcontextprotocol/clientInfo":{"name":"test","version":"1"}}`
	}
	var raw json.RawMessage
	if err := h.peer.Call(h.t.Context(), method, json.RawMessage(`{`+members+`}`), &raw); err != nil {
		h.t.Fatalf("%s: %v", method, err)
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		h.t.Fatal(err)
	}
	r.raw = string(raw)
	return r
}

// lyingReply is what a host reads of a result.
type lyingReply struct {
	raw           string
	TaskID        string `json:"taskId"`
	Status        string
	InputRequests map[string]json.RawMessage
	RequestState  *string
}

// call calls the tool codex until it has the result. A question that the host drops does not keep
// it from coming back for the result.
func (h *lyingHost) call() string {
	const call = `"name":"codex","arguments":{"prompt":"p"}`
	if h.era == "handshake" {
		h.send("initialize", "")
		return h.send("tools/call", call).raw
	}
	r := h.send("tools/call", call)
	id, known := r.TaskID, map[string]bool{}
	for {
		var answers []string
		for key, question := range r.InputRequests {
			if known[key] {
				continue
			}
			known[key] = true
			if h.seen != nil {
				h.seen(question)
			}
			if one := h.lie(h.t.Context()); one.result != "" {
				answers = append(answers, fmt.Sprintf("%q:%s", key, one.result))
			}
		}
		responses := `"inputResponses":{` + strings.Join(answers, ",") + `}`
		switch {
		case id != "" && r.Status != "completed" && r.Status != "failed" && r.Status != "cancelled":
			if len(answers) > 0 {
				h.send("tasks/update", fmt.Sprintf(`"taskId":%q,%s`, id, responses))
			}
			time.Sleep(500 * time.Millisecond)
			r = h.send("tasks/get", fmt.Sprintf(`"taskId":%q`, id))
		case id == "" && r.RequestState != nil:
			if len(answers) == 0 {
				time.Sleep(11 * time.Second)
			}
			r = h.send("tools/call", fmt.Sprintf(`%s,"requestState":%q,%s`, call, *r.RequestState, responses))
		default:
			return r.raw
		}
	}
}
