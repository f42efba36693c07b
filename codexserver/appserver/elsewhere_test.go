package appserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// listener is a recorder that also records what it overhears.
type listener struct {
	recorder
	heard recorder
}

func (*listener) Alive() {}

func (h *listener) Overhear(_ string, m protocol.EventMsg) { h.heard.Emit(m) }

// sharedFake has an app-server that other programs share, and a conversation in it.
func sharedFake(t *testing.T, h engine.Host, f *fake) (*run, engine.Conversation) {
	t.Helper()
	e := f.engine(appserver.Options{Shared: true})
	if turn := f.turn; turn != nil && f.on["turn/start"] == nil {
		f.on["turn/start"] = func(r *run, _ *jsonrpc.Request) (any, error) {
			r.mu.Lock()
			r.turns++
			r.over = false
			r.mu.Unlock()
			go func() {
				time.Sleep(time.Millisecond) // as with Codex, the answer comes first
				r.begin(r.current())
				turn(r)
			}()
			return json.RawMessage(fmt.Sprintf(`{"turn":{"id":%q,"status":"inProgress","items":[]}}`, r.current())), nil
		}
	}
	conv := start(t, e, h)
	return f.runs[0], conv
}

// begin begins a turn of another program.
func (r *run) begin(id string) {
	r.notify("turn/started", `{"threadId":%q,"turn":{"id":%q,"status":"inProgress","items":[]}}`, threadID, id)
}

// end ends it with an answer.
func (r *run) end(id, answer string) {
	r.notify("item/completed", `{"threadId":%q,"turnId":%q,"item":{"type":"agentMessage","id":"m-%s","text":%q}}`, threadID, id, id, answer)
	r.notify("turn/completed", `{"threadId":%q,"turn":{"id":%q,"status":"completed","items":[],"error":null}}`, threadID, id)
}

// said reports that the model reads a client's message.
func (r *run) said(turn, client, words string) {
	r.notify("item/completed", `{"threadId":%q,"turnId":%q,"item":{"type":"userMessage","id":"u","clientId":%q,"content":[{"type":"text","text":%q}]}}`, threadID, turn, client, words)
}

// clientID is the id of the message in params.
func clientID(raw json.RawMessage) string {
	var p struct {
		ID string `json:"clientUserMessageId"`
	}
	_ = json.Unmarshal(raw, &p)
	return p.ID
}

// TestElsewhereHeard checks that the events of a turn of another program are overheard, once,
// and that a turn begins after it.
func TestElsewhereHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		f.turn = func(r *run) { r.say("ours"); r.complete("completed") }
		h := &listener{}
		r, conv := sharedFake(t, h, f)
		r.begin("foreign")
		r.said("foreign", "tui", "from the terminal")
		synctest.Wait()
		done := make(chan error, 1)
		go func() { done <- conv.Turn(t.Context(), text("go")) }()
		synctest.Wait()
		if slices.Contains(f.methods(), "turn/start") {
			t.Error("the turn began while another one ran")
		}
		r.end("foreign", "theirs")
		if err := <-done; err != nil || h.answer() != "ours" {
			t.Errorf("%v, answered %q", err, h.answer())
		}
		if got := strings.Join(h.heard.types(), " "); got != "task_started user_message agent_message task_complete" || h.heard.answer() != "theirs" {
			t.Errorf("overheard %s", got)
		}
		if got := strings.Join(h.types(), " "); got != "session_configured task_started background_event agent_message task_complete" {
			t.Errorf("events %s", got)
		}
	})
}

// TestElsewhereAsked checks what becomes of the question of another program's turn: it is not
// answered unless a call waits and a person approves or refuses.
func TestElsewhereAsked(t *testing.T) {
	refused := (&elicit.Question{}).Read([]byte(`{"action":"decline"}`), nil)
	for _, test := range []struct {
		name  string
		waits bool
		out   elicit.Outcome
		want  string // what the app-server gets before it withdraws the question
	}{
		{"nobody waits", false, elicit.Outcome{Decision: elicit.Approved}, ""},
		{"approved", true, elicit.Outcome{Decision: elicit.Approved}, `{"decision":"accept"}`},
		{"refused", true, refused, `{"decision":"decline"}`},
		{"cannot ask", true, elicit.ReadError(elicit.ErrUnsupported, nil), ""},
		{"aborted", true, elicit.Outcome{Decision: elicit.Abort, Reason: elicit.ReasonCancelled}, ""},
		{"unclear", true, elicit.Outcome{Decision: elicit.Denied, Reason: elicit.ReasonNotUnderstood}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(t)
				f.turn = func(r *run) { r.say("ours"); r.complete("completed") }
				h := &listener{}
				asked := 0
				h.exec = func(context.Context, protocol.ExecApprovalRequest) elicit.Outcome { asked++; return test.out }
				r, conv := sharedFake(t, h, f)
				r.begin("foreign")
				r.item(threadID, "foreign", command)
				synctest.Wait()
				done := make(chan error, 1)
				if test.waits {
					go func() { done <- conv.Turn(t.Context(), text("go")) }()
					synctest.Wait()
				}
				answer := make(chan string, 1)
				go func() { answer <- r.askCommand(threadID, "foreign") }()
				synctest.Wait()
				got := ""
				select {
				case got = <-answer:
				default:
				}
				if got != test.want || (asked == 1) != test.waits {
					t.Errorf("answered %q, want %q; asked %d times", got, test.want, asked)
				}
				if slices.Contains(f.methods(), "turn/interrupt") {
					t.Error("another program's turn was interrupted")
				}
				// The app-server counts its requests from 1.
				r.notify("serverRequest/resolved", `{"threadId":%q,"requestId":1}`, threadID)
				r.end("foreign", "theirs")
				if test.waits {
					if err := <-done; err != nil || h.answer() != "ours" {
						t.Errorf("%v, answered %q", err, h.answer())
					}
				}
				synctest.Wait()
				if test.want == "" {
					if late := <-answer; late == `{"decision":"accept"}` {
						t.Error("accepted after it was withdrawn")
					}
				}
			})
		})
	}
}

// TestElsewhereWhenLoaded loads a thread while another program's turn runs. A turn begins after the end of
// that one, also if nothing is heard of the end because it came before the thread was known.
func TestElsewhereWhenLoaded(t *testing.T) {
	const status = `{"thread":{"id":%q,"turns":[],"status":{"type":%q}}}`
	idle := func(r *run) { r.notify("thread/status/changed", `{"threadId":%q,"status":{"type":"idle"}}`, threadID) }
	for name, tt := range map[string]struct {
		read string // the status that the app-server reports when it is asked again, "" for an error
		then func(*run)
	}{
		"has ended":             {read: "idle"},
		"ends":                  {read: "active", then: func(r *run) { r.end("foreign", "theirs") }},
		"is idle later":         {read: "active", then: idle},
		"cannot be asked about": {then: idle},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(t)
				f.turn = func(r *run) { r.say("ours"); r.complete("completed") }
				f.status = "active"
				f.on["thread/read"] = func(*run, *jsonrpc.Request) (any, error) {
					if tt.read == "" {
						return nil, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "unknown")
					}
					return json.RawMessage(fmt.Sprintf(status, threadID, tt.read)), nil
				}
				h := &listener{}
				r, conv := sharedFake(t, h, f)
				done := make(chan error, 1)
				go func() { done <- conv.Turn(t.Context(), text("go")) }()
				synctest.Wait()
				if began := slices.Contains(f.methods(), "turn/start"); began != (tt.then == nil) {
					t.Errorf("the turn began: %t", began)
				}
				if tt.then != nil {
					tt.then(r)
				}
				if err := <-done; err != nil || h.answer() != "ours" {
					t.Errorf("%v, answered %q", err, h.answer())
				}
			})
		})
	}
}

// TestElsewhereNamed has a turn of another program begin while the server asks whether the one before has
// ended, which it has.
func TestElsewhereNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		f.turn = func(r *run) { r.say("ours"); r.complete("completed") }
		f.status = "active"
		f.on["thread/read"] = func(r *run, _ *jsonrpc.Request) (any, error) {
			r.begin("next")
			time.Sleep(time.Second)
			return json.RawMessage(fmt.Sprintf(`{"thread":{"id":%q,"turns":[],"status":{"type":"idle"}}}`, threadID)), nil
		}
		h := &listener{}
		r, conv := sharedFake(t, h, f)
		done := make(chan error, 1)
		go func() { done <- conv.Turn(t.Context(), text("go")) }()
		synctest.Wait()
		if slices.Contains(f.methods(), "turn/start") {
			t.Error("the turn began while another one ran")
		}
		r.end("next", "theirs")
		if err := <-done; err != nil || h.answer() != "ours" {
			t.Errorf("%v, answered %q", err, h.answer())
		}
	})
}

// TestElsewhereUnknown checks that a request of a turn that nobody here knows of is left alone.
func TestElsewhereUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		r, _ := sharedFake(t, &listener{}, f)
		answer := make(chan string, 2)
		go func() { answer <- r.askCommand(threadID, "unheard of") }()
		go func() { answer <- r.ask("item/tool/call", `{"threadId":%q,"turnId":"t","tool":"x"}`, threadID) }()
		time.Sleep(time.Hour)
		select {
		case got := <-answer:
			t.Errorf("answered %s", got)
		default:
		}
	})
}

// TestElsewhereJoined has the app-server put the prompt into a turn that another program began
// at the same moment. The call gets that turn's answer if the model has read the prompt, and
// else a turn of its own.
func TestElsewhereJoined(t *testing.T) {
	for _, read := range []bool{true, false} {
		t.Run(fmt.Sprintf("read %t", read), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(t)
				starts := 0
				f.on["turn/start"] = func(r *run, req *jsonrpc.Request) (any, error) {
					client := clientID(req.Params)
					if starts++; starts == 1 {
						r.begin("foreign")
						r.said("foreign", "tui", "theirs")
						go func() {
							if read {
								r.said("foreign", client, "go")
							}
							r.end("foreign", "of both")
						}()
						return json.RawMessage(`{"turn":{"id":"foreign","status":"inProgress","items":[]}}`), nil
					}
					go func() {
						time.Sleep(time.Millisecond) // as with Codex, the answer comes first
						r.begin("own")
						r.said("own", client, "go")
						r.end("own", "of its own")
					}()
					return json.RawMessage(`{"turn":{"id":"own","status":"inProgress","items":[]}}`), nil
				}
				h := &listener{}
				_, conv := sharedFake(t, h, f)
				want, turns := "of both", 1
				if !read {
					want, turns = "of its own", 2
				}
				if err := conv.Turn(t.Context(), text("go")); err != nil || h.answer() != want || starts != turns {
					t.Errorf("%v, answered %q after %d starts, want %q; events %v", err, h.answer(), starts, want, h.types())
				}
				if h.count("task_complete") != 1 {
					t.Errorf("events %v", h.types())
				}
			})
		})
	}
}

// TestElsewhereLoosened checks that no turn runs, and none goes on, under wider rules than the
// conversation began with.
func TestElsewhereLoosened(t *testing.T) {
	const base = `"cwd":"/work","approvalPolicy":"on-request","approvalsReviewer":"user","sandboxPolicy":{"type":"readOnly","networkAccess":false}`
	for _, test := range []struct {
		name, from, to string
		wider          bool
	}{
		{"the same", "", "", false},
		{"stricter", `"on-request"`, `"untrusted"`, false},
		{"sandbox", `"readOnly"`, `"dangerFullAccess"`, true},
		{"unknown sandbox", `"readOnly"`, `"externalSandbox"`, true},
		{"workspace", `"readOnly"`, `"workspaceWrite"`, true},
		{"network", `"networkAccess":false`, `"networkAccess":true`, true},
		{"policy", `"on-request"`, `"never"`, true},
		{"finer policy", `"on-request"`, `{"granular":{"rules":false}}`, true},
		{"reviewer", `"user"`, `"auto_review"`, true},
		{"profile", `"cwd"`, `"activePermissionProfile":{"id":"x"},"cwd"`, true},
	} {
		settings := strings.Replace(base, test.from, test.to, 1)
		for _, during := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, during %t", test.name, during), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := newFake(t)
					change := func(r *run) {
						r.notify("thread/settings/updated", `{"threadId":%q,"threadSettings":{%s}}`, threadID, settings)
					}
					f.turn = func(r *run) {
						if during {
							change(r)
							select {
							case <-time.After(time.Minute):
							case <-r.ctx.Done():
							}
						}
						r.complete("completed")
					}
					r, conv := sharedFake(t, &listener{}, f)
					if !during {
						change(r)
						synctest.Wait()
					}
					err := conv.Turn(t.Context(), text("go"))
					if refused := err != nil && strings.Contains(err.Error(), "another program has changed this conversation"); refused != test.wider {
						t.Errorf("error %v", err)
					}
					if started := slices.Contains(f.methods(), "turn/start"); started != (during || !test.wider) {
						t.Errorf("methods %v", f.methods())
					}
					if test.wider && during && !slices.Contains(f.methods(), "turn/interrupt") {
						t.Errorf("the turn goes on: %v", f.methods())
					}
				})
			})
		}
	}
}

// TestElsewhereOpen checks that a thread that another program has open with wider rules than
// those asked for is refused.
func TestElsewhereOpen(t *testing.T) {
	for _, test := range []struct {
		cfg  protocol.Config
		fine bool
	}{
		{protocol.Config{}, false},
		{protocol.Config{Sandbox: protocol.SandboxDangerFullAccess}, true},
		{protocol.Config{ApprovalPolicy: protocol.ApprovalOnRequest}, false},
	} {
		f := newFake(t)
		f.policy, f.sandbox = `"never"`, `{"type":"workspaceWrite"}`
		e := f.engine(appserver.Options{Shared: true})
		_, err := e.Resume(t.Context(), "/rollout-"+threadID+".jsonl", test.cfg, &listener{})
		if (err == nil) != test.fine {
			t.Errorf("%+v: %v", test.cfg, err)
		}
	}
}

// TestElsewhereSteered sends a message to a turn of another program.
func TestElsewhereSteered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		var steered []string
		f.on["turn/steer"] = func(_ *run, req *jsonrpc.Request) (any, error) {
			steered = append(steered, string(req.Params))
			return map[string]string{"turnId": "foreign"}, nil
		}
		r, conv := sharedFake(t, &listener{}, f)
		if err := steer(t.Context(), conv, "early"); !errors.Is(err, engine.ErrNoTurn) {
			t.Errorf("without a turn: %v", err)
		}
		r.begin("foreign")
		synctest.Wait()
		if err := steer(t.Context(), conv, "use tabs"); err != nil {
			t.Error(err)
		}
		if len(steered) != 1 || !strings.Contains(steered[0], `"expectedTurnId":"foreign"`) {
			t.Errorf("steered %q", steered)
		}
		r.end("foreign", "theirs")
		synctest.Wait()
		if conv.(engine.Joint).Elsewhere() != nil {
			t.Error("the turn has not ended")
		}
	})
}

// TestEndIsLost has a shared app-server end before it has sent the end of a turn, which Codex has
// written to its own file. The turn has completed if that says so.
func TestEndIsLost(t *testing.T) {
	const end = `{"type":"event_msg","payload":{"type":%q,"turn_id":%q,"last_agent_message":"done"}}` + "\n"
	for _, test := range []struct {
		name, written string
		said, want    string
		fails         bool
	}{
		{"completed", fmt.Sprintf(end, "task_complete", turnID), "done", "done", false},
		{"the answer is lost too", fmt.Sprintf(end, "task_complete", turnID), "", "done", false},
		{"aborted", fmt.Sprintf(end, "turn_aborted", turnID), "done", "", true},
		{"another turn", fmt.Sprintf(end, "task_complete", "turn-0"), "done", "", true},
		{"torn", strings.TrimSuffix(fmt.Sprintf(end, "task_complete", turnID), "}\n"), "done", "", true},
		{"nothing", "", "done", "", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(t)
				f.rollout = filepath.Join(t.TempDir(), "rollout.jsonl")
				f.turn = func(r *run) {
					if test.said != "" {
						r.say(test.said)
					}
					if err := os.WriteFile(f.rollout, []byte(test.written), 0o600); err != nil {
						t.Error(err)
					}
					r.cancel()
				}
				h := &recorder{}
				_, conv := sharedFake(t, h, f)
				err := conv.Turn(t.Context(), text("go"))
				said := h.count("agent_message") // what was said just before the end may be lost with it
				if (err != nil) != test.fails || h.answer() != test.want || h.count("task_complete") != 1 || said > 1 || said == 0 && !test.fails {
					t.Errorf("%v, answer %q, events %v", err, h.answer(), h.types())
				}
			})
		})
	}
}
