//go:build realcodex

package appserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/engine/enginetest"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/internal/transcript"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/nightly"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/google/go-cmp/cmp"
)

// The tests of this file drive the real Codex that CODEX_BIN names, with a
// scripted provider on loopback:
//
//	npm i --prefix DIR @openai/codex
//	CODEX_BIN=DIR/node_modules/.bin/codex go test -tags realcodex -run '^TestReal' ./codexserver/appserver

// real is a Codex with its own home, workspace and provider.
type real struct {
	*providertest.Server
	engine    *appserver.Engine
	home, cwd string
	options   *appserver.Options
}

func newReal(t *testing.T, configuration string, turns ...providertest.Turn) *real {
	t.Helper()
	must.Get(appserver.Find(""))(t)
	r := &real{Server: providertest.New(turns...), home: t.TempDir(), cwd: t.TempDir()}
	t.Cleanup(r.Close)
	writeFile(t, filepath.Join(r.home, "config.toml"), servertest.CodexConfig(r.BaseURL(), configuration))
	r.options = &appserver.Options{CodexHome: r.home}
	r.restart(t)
	return r
}

// configure adds to the configuration of Codex, and starts it anew.
func (r *real) configure(t *testing.T, more string) {
	t.Helper()
	file := filepath.Join(r.home, "config.toml")
	text := must.Get(os.ReadFile(file))(t)
	writeFile(t, file, string(text)+more)
	r.restart(t)
}

func (r *real) initGit(t *testing.T) {
	t.Helper()
	if out, err := exec.Command("git", "init", "-q", r.cwd).CombinedOutput(); err != nil {
		t.Fatalf("git init: %v %s", err, out)
	}
}

func (r *real) restart(t *testing.T) {
	t.Helper()
	if r.engine != nil {
		r.engine.Close()
	}
	e := must.Get(appserver.New(r.options))(t)
	r.engine = e
	t.Cleanup(func() { e.Close() })
}

func (r *real) start(t *testing.T, h engine.Host, cfg protocol.Config) engine.Conversation {
	t.Helper()
	if cfg.Cwd == "" {
		cfg.Cwd = r.cwd
	}
	conv := must.Get(r.engine.Start(t.Context(), cfg, h))(t)
	return conv
}

func (r *real) resume(t *testing.T, conv engine.Conversation, h engine.Host, cfg protocol.Config) engine.Conversation {
	t.Helper()
	path := must.Get(fileOf(t, r.engine, conv.ID()))(t)
	again := must.Get(r.engine.Resume(t.Context(), savedAt(path), cfg, h))(t)
	return again
}

func (r *real) last() string {
	all := r.Requests()
	return string(all[len(all)-1].Body)
}

// escalated returns a turn in which the model wants to write outside of the sandbox.
func escalated(id string) providertest.Turn {
	return providertest.Call(providertest.Tool(id, "exec_command", map[string]any{
		"cmd": "touch made.txt && echo made", "sandbox_permissions": "require_escalated", "justification": "to write",
	}))
}

var report = providertest.Turn{Func: func(r providertest.Request) providertest.Turn {
	return providertest.Say("seen: " + r.LastToolOutput())
}}

func made(r *real) bool {
	_, err := os.Stat(filepath.Join(r.cwd, "made.txt"))
	return err == nil
}

// TestRealIncomplete has the real Codex report a response that the provider cuts off.
func TestRealIncomplete(t *testing.T) {
	t.Parallel()
	r := newReal(t, `approval_policy = "never"`, providertest.Turn{Text: []string{"half ", "an"}, Cut: "length"})
	h := &recorder{}
	must.OK(t, start(t, r.engine, h).Turn(t.Context(), protocol.TurnInput{Items: protocol.TextInput("go")}))
	end, _ := h.events[len(h.events)-1].(protocol.TaskComplete)
	if end.LastAgentMessage == nil || *end.LastAgentMessage != "half an" || end.Incomplete == "" {
		t.Errorf("the turn ended with %+v", end)
	}
}

// TestRealApprovals decides about a command, by the policy of the file too, a patch, two calls of an MCP
// server's tool, and the command of a sub-agent.
func TestRealApprovals(t *testing.T) {
	t.Parallel()
	const asks, agents = "approval_policy = \"on-request\"\nsandbox_mode = \"read-only\"\n", "features.multi_agent = true"
	run := func(cmd string) providertest.Turn {
		return providertest.Call(providertest.Tool("c1", "exec_command", map[string]any{"cmd": cmd}))
	}
	patch := run("apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: made.txt\n+hello\n*** End Patch\nEOF\n")
	for _, tt := range []struct {
		name, configuration, model string
		turns                      []providertest.Turn
		decisions, byDay, asked    int    // how many of the list; the questions, of which an abort leaves one
		shown, answer, ended       string // a part of the question, the beginning of the answer, and the event of an end
	}{
		{"command", asks, "", []providertest.Turn{escalated("c1"), report}, 5, 3, 1, "touch made.txt", "seen: ", "exec_command_end"},
		{"untrusted", "approval_policy = \"untrusted\"\nsandbox_mode = \"workspace-write\"", "", []providertest.Turn{run("touch made.txt"), report}, 1, 1, 1, "touch made.txt", "seen: ", "exec_command_end"},
		{"patch", asks, "", []providertest.Turn{patch, report}, 4, 2, 1, "made.txt: hello\n", "", "patch_apply_end"},
		{"tool", "approval_policy = \"on-request\"\n" + demo(t), "", []providertest.Turn{mcpCall, mcpCall, report}, 4, 2, 2, "write_thing", "", ""},
		{"sub-agent", asks + agents, "gpt-6.1-sol", []providertest.Turn{spawned()}, 3, 2, 1, "sub-agent /root/worker", "all done", ""},
		{"sub-agent by a tool", asks + agents, "", []providertest.Turn{spawnedByTool()}, 3, 1, 1, "sub-agent 01", "all done", ""}, // the id of its thread
	} {
		for n, decision := range []elicit.Decision{elicit.Denied, elicit.Approved, elicit.Abort, elicit.ApprovedForSession, ""}[:tt.decisions] {
			if !nightly.Tests() && n >= tt.byDay {
				continue
			}
			t.Run(tt.name+" "+string(decision), func(t *testing.T) {
				t.Parallel()
				r := newReal(t, tt.configuration, tt.turns...)
				var asked atomic.Int32
				ask := func(shown string) elicit.Outcome {
					if asked.Add(1); !strings.Contains(shown, tt.shown) {
						t.Errorf("asked %q", shown)
					}
					if decision == elicit.Denied && tt.name == "command" {
						return (&elicit.Question{}).Read([]byte(`{"action":"accept","content":{"decision":"denied","feedback":"use the makefile"}}`), nil)
					}
					return elicit.Outcome{Decision: decision}
				}
				h := &recorder{
					exec: func(_ context.Context, q approval.Command) elicit.Outcome {
						return ask(fmt.Sprint(q.Command, q.Reason))
					},
					patch: func(_ context.Context, p approval.Patch) elicit.Outcome {
						shown := ""
						for path, c := range p.Changes {
							if c.Add == nil {
								t.Fatalf("changes %v", p.Changes)
							}
							shown += filepath.Base(path) + ": " + c.Add.Content
						}
						return ask(shown)
					},
					approve: func(_ context.Context, q *elicit.Question) elicit.Outcome { return ask(q.Message) },
				}
				err := r.start(t, h, protocol.Config{Model: tt.model}).Turn(t.Context(), text("ROOT PROMPT"))
				aborts, approves, want := decision == elicit.Abort, decision.Approves(), tt.asked
				switch {
				case tt.model != "" && !can(t, newAgents):
					aborts, approves, want = false, false, 0
				case aborts:
					want = 1
				}
				var abort *engine.AbortError
				if errors.As(err, &abort) != aborts || err != nil && !aborts {
					t.Errorf("error %v", err)
				}
				if did := made(r) || strings.Contains(h.answer(), "wrote it"); did != approves || int(asked.Load()) != want || !aborts && !strings.HasPrefix(h.answer(), tt.answer) {
					t.Errorf("did it: %t, asked %d times, answer %q, events %v", did, asked.Load(), h.answer(), h.types())
				}
				if n := len(r.Requests()); decision == elicit.Denied && tt.name == "command" && (n != 2 || !strings.Contains(r.last(), "use the makefile")) {
					t.Errorf("%d requests, the model does not get the reason: %s", n, r.last())
				}
				if tt.ended != "" && (h.count("exec_command_begin") != h.count("exec_command_end") || (h.count(tt.ended) == 1) != approves) {
					t.Errorf("events %v", h.types())
				}
			})
		}
	}
}

// TestRealItemsWithOneID has the model give two calls of a response the same id. The real Codex asks about both at once, and
// counts an answer for the one that came last. What nobody approved is not done.
func TestRealItemsWithOneID(t *testing.T) {
	t.Parallel()
	tool := func(arguments map[string]any) providertest.ToolCall {
		return providertest.Tool("c1", "exec_command", arguments)
	}
	for name, call := range map[string]func(file string) providertest.ToolCall{
		"command": func(file string) providertest.ToolCall {
			return tool(map[string]any{"cmd": "touch " + file, "sandbox_permissions": "require_escalated", "justification": "to write"})
		},
		"patch": func(file string) providertest.ToolCall {
			return tool(map[string]any{"cmd": "apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: " + file + "\n+x\n*** End Patch\nEOF\n"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newReal(t, "approval_policy = \"on-request\"\nsandbox_mode = \"read-only\"", providertest.Call(call("made.txt"), call("other.txt")), report)
			approves := func(shown string) elicit.Outcome { // as a rule does: at once
				if strings.Contains(shown, "made.txt") {
					return elicit.Outcome{Decision: elicit.Approved}
				}
				return elicit.Outcome{Decision: elicit.Denied}
			}
			h := &recorder{
				exec: func(_ context.Context, q approval.Command) elicit.Outcome {
					return approves(fmt.Sprint(q.Command))
				},
				patch: func(_ context.Context, q approval.Patch) elicit.Outcome {
					return approves(fmt.Sprint(slices.Collect(maps.Keys(q.Changes))))
				},
			}
			must.OK(t, r.start(t, h, protocol.Config{}).Turn(t.Context(), text("go")))
			if _, err := os.Stat(filepath.Join(r.cwd, "other.txt")); err == nil {
				t.Errorf("other.txt was made: %v", h.types())
			}
		})
	}
}

func fileOf(t testing.TB, e engine.Resumer, id string) (string, error) {
	t.Helper()
	s, err := e.Find(t.Context(), id)
	if err == nil && s.ID != id {
		t.Errorf("found %s, want %s", s.ID, id)
	}
	return s.File, err
}

// fact is something that Codex can do since a version: the first that was measured with it.
// Tests check both sides, so that a version that differs from its fact fails.
type fact [3]int

// newAgents: the model gpt-6.1-sol is known, whose sub-agents announce themselves.
var newAgents = fact{0, 169, 0}

// newQuestions: Codex asks about hosts, permissions and input, and its rollouts name the message of a turn.
var newQuestions = fact{0, 169, 0}

// needs skips a test with a Codex that is older than the fact's version.
func needs(t *testing.T, f fact) {
	t.Helper()
	if !can(t, f) {
		t.Skipf("needs Codex %d.%d.%d", f[0], f[1], f[2])
	}
}

// can reports whether the installed Codex is of the fact's version or newer.
func can(t *testing.T, f fact) bool {
	t.Helper()
	v := must.Get(installed())(t)
	return slices.Compare(v[:], f[:]) >= 0
}

var installed = sync.OnceValues(func() (v fact, err error) {
	bin, err := appserver.Find("")
	if err != nil {
		return v, err
	}
	out, err := exec.Command(bin, "--version").Output()
	if err != nil {
		return v, err
	}
	words := strings.Fields(string(out)) // codex-cli 0.169.0
	_, err = fmt.Sscanf(words[len(words)-1], "%d.%d.%d", &v[0], &v[1], &v[2])
	return v, err
})

// TestRealRollout checks what the real Codex writes to a rollout: the messages, of which a
// transcript after a restart is made. Another process lists and continues the conversation.
func TestRealRollout(t *testing.T) {
	t.Parallel()
	r := newReal(t, "approval_policy = \"never\"\nsandbox_mode = \"workspace-write\"",
		providertest.Say("hello"), escalated("e1"),
		providertest.Call(providertest.Tool("e2", "exec_command", map[string]any{"cmd": "rm -rf /nonexistent"})),
		providertest.Call(providertest.Tool("e3", "exec_command", map[string]any{"cmd": "touch made"})),
		providertest.Say("again"), providertest.Say("three"))
	h := &recorder{}
	conv := r.start(t, h, protocol.Config{})
	for _, words := range []string{"one", "two"} {
		must.OK(t, conv.Turn(t.Context(), text(words)))
	}
	path := ""
	for _, m := range h.events {
		if m, ok := m.(protocol.SessionConfigured); ok {
			path = m.RolloutPath
		}
	}
	r.restart(t)
	tr := must.Get(transcript.ReadRollout(t.Context(), path, conv.ID()))(t)
	page, err := tr.Transcript(0, 1<<20)
	want := "user:\n  one\ncodex:\n  hello\nuser:\n  two\ncommand: bash -lc 'touch made.txt && echo made'\ncommand: bash -lc 'rm -rf /nonexistent'\ncommand: bash -lc 'touch made'\ncodex:\n  again\n"
	if d := cmp.Diff(want, page.Text); d != "" || err != nil {
		t.Errorf("%v: transcript (-want +got)\n%s", err, d)
	}
	h = &recorder{}
	again := r.resume(t, conv, h, protocol.Config{Cwd: r.cwd})
	resumed := h.all()[0].(protocol.SessionConfigured)
	var said []string
	for _, raw := range resumed.InitialMessages {
		switch m, _ := protocol.ParseEvent(raw); m := m.(type) {
		case protocol.UserMessage:
			said = append(said, m.Message)
		case protocol.AgentMessage:
			said = append(said, m.Message)
		}
	}
	if d := cmp.Diff([]string{"one", "hello", "two", "again"}, said); d != "" || resumed.RolloutPath != path {
		t.Errorf("messages of the resumed conversation in %s, %s (-want +got)\n%s", path, resumed.RolloutPath, d)
	}
	if err := again.Turn(t.Context(), text("third")); err != nil || h.answer() != "three" || again.ID() != conv.ID() || !strings.Contains(r.last(), "hello") {
		t.Errorf("%v, %q, %s, the model was told %s", err, h.answer(), again.ID(), r.last())
	}
	list, err := r.engine.List(t.Context(), protocol.ListConversationsParams{})
	if err != nil || len(list.Items) != 1 || list.Items[0].Preview != "one" || list.Items[0].Cwd == "" {
		t.Errorf("list: %v, %+v", err, list)
	}
}

// items is a model's response of the Responses wire, item by item, unchanged.
func items(list ...string) providertest.Turn {
	var b strings.Builder
	event := func(name, data string) { fmt.Fprintf(&b, "event: %s\ndata: %s\n\n", name, data) }
	event("response.created", `{"type":"response.created","response":{"id":"resp_1","object":"response","status":"in_progress","output":[]}}`)
	for i, item := range list {
		event("response.output_item.done", fmt.Sprintf(`{"type":"response.output_item.done","output_index":%d,"item":%s}`, i, item))
	}
	event("response.completed", `{"type":"response.completed","response":{"id":"resp_1","object":"response","status":"completed","output":[],"usage":{"input_tokens":1,"input_tokens_details":{"cached_tokens":0},"output_tokens":1,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":2}}}`)
	return providertest.Turn{Body: b.String()}
}

// mcpCall calls the tool of the MCP server demo by its namespace in that version.
var mcpCall = providertest.Turn{Func: func(r providertest.Request) providertest.Turn {
	var body struct {
		Tools []struct{ Type, Name string } `json:"tools"`
	}
	_ = json.Unmarshal(r.Body, &body)
	for _, t := range body.Tools {
		switch {
		case t.Type == "namespace" && strings.Contains(t.Name, "demo"):
			return items(fmt.Sprintf(`{"type":"function_call","id":"fc_1","call_id":"m1","name":"write_thing","arguments":"{}","namespace":%q}`, t.Name))
		case strings.Contains(t.Name, "write_thing"):
			return providertest.Call(providertest.Tool("m1", t.Name, map[string]any{}))
		}
	}
	return providertest.Say("no such tool")
}}

func demo(t *testing.T) string {
	t.Helper()
	self := must.Get(os.Executable())(t)
	return fmt.Sprintf("[mcp_servers.demo]\ncommand = %q\nenv = { %s = \"1\" }\n", self, asMCPServer)
}

// spawned is the script of a model whose sub-agent runs a command. Both use the same
// provider; only the model sees the prompt.
func spawned() providertest.Turn {
	const js = `const r = await tools.exec_command({cmd:\"touch made.txt && echo made\",sandbox_permissions:\"require_escalated\",justification:\"to write\"}); text(r);`
	return providertest.Turn{Repeat: true, Func: func(r providertest.Request) providertest.Turn {
		outputs := len(r.ToolOutputs())
		switch root := strings.Contains(string(r.Body), "ROOT PROMPT"); {
		case root && outputs == 0:
			return items(`{"type":"function_call","id":"fc_1","call_id":"s1","namespace":"collaboration","name":"spawn_agent","arguments":"{\"task_name\":\"worker\",\"message\":\"do it\",\"fork_turns\":\"none\"}"}`)
		case root && outputs == 1:
			return items(`{"type":"function_call","id":"fc_2","call_id":"s2","namespace":"collaboration","name":"wait_agent","arguments":"{\"timeout_ms\":10000}"}`)
		case root:
			return providertest.Say("all done")
		case outputs == 0:
			return items(`{"type":"custom_tool_call","id":"ct_1","call_id":"w1","name":"exec","namespace":"functions","input":"` + js + `"}`)
		}
		return providertest.Say("worker done")
	}}
}

// spawnedByTool is the same script for the tools of other models, which earlier versions also have.
func spawnedByTool() providertest.Turn {
	call := func(r providertest.Request, id, name string, args map[string]any) providertest.Turn {
		text, _ := json.Marshal(args)
		namespace := ""
		if strings.Contains(string(r.Body), `"multi_agent_v1"`) {
			namespace = `,"namespace":"multi_agent_v1"`
		}
		return items(fmt.Sprintf(`{"type":"function_call","id":"fc_%s","call_id":%q%s,"name":%q,"arguments":%q}`, id, id, namespace, name, text))
	}
	return providertest.Turn{Repeat: true, Func: func(r providertest.Request) providertest.Turn {
		outputs := len(r.ToolOutputs())
		switch root := strings.Contains(string(r.Body), "ROOT PROMPT"); {
		case root && outputs == 0:
			return call(r, "s1", "spawn_agent", map[string]any{"message": "do it"})
		case root && outputs == 1:
			var agent struct {
				ID string `json:"agent_id"`
			}
			_ = json.Unmarshal([]byte(r.LastToolOutput()), &agent)
			name := "wait"
			if strings.Contains(string(r.Body), `"wait_agent"`) {
				name = "wait_agent"
			}
			return call(r, "s2", name, map[string]any{"ids": []string{agent.ID}, "targets": []string{agent.ID}, "timeout_ms": 10000})
		case root:
			return providertest.Say("all done")
		case outputs == 0:
			return escalated("w1")
		}
		return providertest.Say("worker done")
	}}
}

func TestRealEngine(t *testing.T) {
	t.Parallel()
	enginetest.Run(t, func(t *testing.T) *enginetest.Subject {
		var mu sync.Mutex
		var steps []enginetest.Step
		next := func(r providertest.Request) providertest.Turn {
			mu.Lock()
			if len(steps) == 0 {
				mu.Unlock()
				return failure
			}
			s := steps[0]
			steps = steps[1:]
			mu.Unlock()
			if s.Asked != nil {
				s.Asked(string(r.Body))
			}
			switch {
			case s.Fail:
				return failure
			case s.Command == nil:
				return providertest.Say(s.Text)
			}
			return providertest.Call(providertest.Tool("c1", "exec_command", map[string]any{
				// Codex sends no output of a command's first moments.
				"cmd": "sleep 0.5; " + quoted(s.Command), "yield_time_ms": 25000, "sandbox_permissions": "require_escalated", "justification": "the suite wants it",
			}))
		}
		r := newReal(t, `sandbox_mode = "read-only"`, providertest.Turn{Repeat: true, Func: next})
		return &enginetest.Subject{
			Engine: r.engine,
			Config: protocol.Config{ApprovalPolicy: protocol.ApprovalOnRequest},
			Script: func(s ...enginetest.Step) {
				mu.Lock()
				defer mu.Unlock()
				steps = s
			},
		}
	})
}

// TestRealBudget gives a turn of the real Codex a budget of tokens, which a model that only calls commands spends.
func TestRealBudget(t *testing.T) {
	t.Parallel()
	r := newReal(t, "approval_policy = \"never\"\nsandbox_mode = \"danger-full-access\"\n", providertest.Turn{
		Repeat: true, Usage: &providertest.Usage{Input: 40, Output: 20, Total: 60},
		ToolCalls: []providertest.ToolCall{providertest.Tool("", "exec_command", map[string]any{"cmd": "sleep 600", "yield_time_ms": 250})},
	})
	c := servertest.Connect(t, codexserver.New(r.engine, &codexserver.Options{Changes: codexserver.ChangeOptions{Read: new(false)}}), nil)
	said := c.CallTool(t, "codex", fmt.Sprintf(`{"prompt":"go","cwd":%q,"budget":{"tokens":100}}`, r.cwd))
	if n := len(r.Requests()); n != 2 && n != 3 || !strings.Contains(said, "budget of 100 tokens reached") { // the third one may begin before the count
		t.Errorf("after %d requests: %s", n, said)
	}
}

var failure = providertest.Turn{Status: 400, Body: `{"error":{"message":"the model has nothing to say"}}`}

func quoted(argv []string) string {
	words := make([]string, len(argv))
	for i, w := range argv {
		words[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
	}
	return strings.Join(words, " ")
}
