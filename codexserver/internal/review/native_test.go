package review_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

func newNative(t *testing.T, model *providertest.Server, more map[string]any) *native.Engine {
	t.Helper()
	t.Cleanup(model.Close)
	overrides := map[string]any{
		"model": "scripted", "model_provider": "local", "model_providers.local.name": "local", "model_providers.local.base_url": model.BaseURL(),
		"model_providers.local.wire_api": "responses",
	}
	maps.Copy(overrides, more)
	e := must.Get(native.New(&native.Options{CodexHome: t.TempDir(), Overrides: overrides}))(t)
	t.Cleanup(func() { e.Close() })
	return e
}

const addPatch = "*** Begin Patch\n*** Add File: patched\n+x\n*** End Patch"

// TestNative reviews with a model that also tries to write in every way. Nothing is written
// and no question is asked, whatever the configuration is.
func TestNative(t *testing.T) {
	for era, configured := range map[servertest.Era]string{servertest.Handshake: "danger-full-access", servertest.Rounds: "workspace-write"} {
		t.Run(string(era)+" "+configured, func(t *testing.T) {
			s := newShop(t)
			started := filepath.Join(t.TempDir(), "started")
			attempts := providertest.Call(
				providertest.Shell("1", "touch", filepath.Join(s.repo, "touched")),
				providertest.Tool("2", "apply_patch", map[string]any{"input": addPatch}),
				providertest.Shell("3", "apply_patch", addPatch),
				providertest.Tool("4", "shell", map[string]any{"command": []string{"touch", "escalated"}, "with_escalated_permissions": true, "justification": "please"}),
				providertest.Tool("5", "evil__write", map[string]any{}),
			)
			say := providertest.Turn{Func: func(r providertest.Request) providertest.Turn {
				for _, o := range r.ToolOutputs() {
					t.Logf("%.200v", o)
				}
				return providertest.Say(s.answer())
			}}
			var script []providertest.Turn
			for range 5 {
				script = append(script, attempts, say)
			}
			model := providertest.New(script...)
			e := newNative(t, model, map[string]any{
				"sandbox_mode": configured, "approval_policy": "on-request", "tools.web_search": true, "include_apply_patch_tool": true, "include_plan_tool": true,
				"mcp_servers.evil.command": "touch", "mcp_servers.evil.args": []any{started},
			})
			c := connect(t, e, era)
			checkTargets(t, s, c)
			for _, r := range model.Requests() {
				if !strings.Contains(string(r.Body), "follows this schema") || strings.Contains(string(r.Body), `"type":"json_schema"`) {
					t.Error("the model does not know the form of the answer, or is held to it before its work is done")
				}
				for _, name := range []string{`"name":"apply_patch"`, `"web_search"`, `"name":"update_plan"`, `"name":"evil`} {
					if strings.Contains(string(r.Body), `"tools":`) && strings.Contains(toolsOf(t, r), name) {
						t.Errorf("the model is offered %s", name)
					}
				}
			}
			if _, err := os.Stat(started); err == nil {
				t.Error("an MCP server was started")
			}
			must.Equal(t, "the requests", 10, len(model.Requests()))
		})
	}
}

func toolsOf(t *testing.T, r providertest.Request) string {
	t.Helper()
	_, tools, ok := strings.Cut(string(r.Body), `"tools":`)
	if !ok {
		t.Fatalf("no tools: %s", r.Body)
	}
	if before, _, ok := strings.Cut(tools, `],"`); ok {
		return before
	}
	return tools
}

// TestForm has a reviewer that answers in words. Its work done, it is held to the form.
func TestForm(t *testing.T) {
	s := newShop(t)
	model := providertest.New(providertest.Call(providertest.Shell("1", "ls")), providertest.Say("all is fine"), providertest.Say(s.answer()))
	c := connect(t, newNative(t, model, nil), servertest.Handshake)
	r, failed := c.call("codex-review", map[string]any{"target": "uncommitted", "cwd": s.repo})
	if failed || r.Status != protocol.StatusCompleted || r.Verdict == nil || len(r.Findings) == 0 {
		t.Errorf("%+v", r)
	}
	var held []bool
	for _, r := range model.Requests() {
		held = append(held, servertest.Holds(r.Body))
	}
	must.Equal(t, "which requests hold it to the form", []bool{false, false, true}, held)
}

// TestInvalidAnswers checks that an invalid answer causes an error that quotes it. The engine asks for each once more.
func TestInvalidAnswers(t *testing.T) {
	s := newShop(t)
	e := newNative(t, providertest.New(providertest.Say("fine"), providertest.Say("looks good to me"), providertest.Say(""), providertest.Say("")), nil)
	c := connect(t, e, servertest.Handshake)
	for _, want := range []string{"codex-review: the answer is not the JSON object that was asked for", "codex-review: the reviewer did not answer"} {
		r, failed := c.call("codex-review", map[string]any{"target": "uncommitted", "cwd": s.repo})
		if !failed || r.Status != "failed" || r.ThreadID == "" || !strings.HasPrefix(r.Content, want) || r.Findings != nil || r.Outcome != protocol.ReviewUnknown || !strings.HasSuffix(want, r.Why) {
			t.Errorf("%+v, want %q", r, want)
		}
		if strings.Contains(want, "not the JSON object") && !strings.Contains(r.Content, "looks good to me") {
			t.Errorf("the answer is lost: %s", r.Content)
		}
	}
}

// TestArguments checks that the error for an invalid argument names it.
func TestArguments(t *testing.T) {
	s := newShop(t)
	model := providertest.New()
	c := connect(t, newNative(t, model, nil), servertest.Handshake)
	clean := newShop(t)
	clean.commit("all")
	for _, tt := range []struct{ arguments, want string }{
		{`{}`, "argument /target is missing"},
		{`{"target":"all"}`, "argument /target: "},
		{`{"target":7}`, "argument /target: got number, want string"},
		{`{"target":"base"}`, "argument /branch is missing"},
		{`{"target":"commit"}`, "argument /commit is missing"},
		{`{"target":"uncommitted","branch":"main"}`, "argument /branch is for the target base"},
		{`{"target":"base","branch":"main","commit":"HEAD"}`, "argument /commit is for the target commit"},
		{`{"target":"base","branch":""}`, `argument /branch: "" is not a revision`},
		{`{"target":"base","branch":"--output=x"}`, `argument /branch: "--output=x" is not a revision`},
		{`{"target":"commit","commit":"-p"}`, `argument /commit: "-p" is not a revision`},
		{`{"target":"commit","commit":"HEAD\nx"}`, `argument /commit: "HEAD\nx" is not a revision`},
		{`{"target":"commit","commit":"nope"}`, `argument /commit: "nope" is not a revision of the repository`},
		{`{"target":"commit","commit":"HEAD:page.go"}`, `argument /commit: "HEAD:page.go" is not a revision`},
		{`{"target":"commit","commit":"HEAD..main"}`, `argument /commit: "HEAD..main" is not a revision`},
		{`{"target":"uncommitted","sandbox":"danger-full-access"}`, "unknown argument /sandbox: the arguments are background, branch"},
		{`{"target":"uncommitted","cwd":"/no/such/folder"}`, "argument /cwd: "},
		{fmt.Sprintf(`{"target":"uncommitted","cwd":%q}`, filepath.Dir(s.repo)), "is not in a git repository"},
		{`{"target":"uncommitted","commit":"HEAD"}`, "argument /commit is for the target commit"},
		{fmt.Sprintf(`{"target":"uncommitted","instructions":%q}`, strings.Repeat("x", 100<<10+1)), "argument /instructions: 102401 bytes are more than 102400"},
		{`{"target":"uncommitted","threadId":"x"}`, "unknown argument /threadId"},
	} {
		var arguments map[string]any
		unmarshal(t, tt.arguments, &arguments)
		if _, ok := arguments["cwd"]; !ok {
			arguments["cwd"] = s.repo
		}
		r, failed := c.call("codex-review", arguments)
		if !failed || !strings.HasPrefix(r.Content, "codex-review: ") || !strings.Contains(r.Content, tt.want) {
			t.Errorf("%s: %+v", tt.arguments, r)
		}
	}
	r, failed := c.call("codex-review", map[string]any{"target": "uncommitted", "cwd": clean.repo})
	if failed || r.Status != protocol.StatusCompleted || r.Outcome != protocol.ReviewPass || !strings.HasPrefix(r.Why, "there is nothing to review") || r.Content != r.Why {
		t.Errorf("a review of nothing: %+v", r)
	}
	must.Equal(t, "the requests", 0, len(model.Requests()))
}

// TestOtherEngine reviews with an engine that has no reviewer of its own and asks for approval
// of everything. Nothing is approved, and no client is asked.
func TestOtherEngine(t *testing.T) {
	for _, era := range eras {
		t.Run(string(era), func(t *testing.T) {
			s := newShop(t)
			c := connect(t, engine.TurnFunc(func(ctx context.Context, h engine.Host, in []protocol.InputItem) error {
				if !strings.Contains(protocol.TextOf(in), "+func last(n int) int { return n }") {
					t.Errorf("the model does not see the change: %s", protocol.TextOf(in))
				}
				h.Emit(protocol.AgentMessage{Message: s.answer()})
				for _, out := range []string{
					h.Ask(ctx, approval.Command{CallID: "1", Command: []string{"rm", "x"}, Cwd: s.repo}).ForModel(),
					h.Ask(ctx, approval.Patch{CallID: "2", Changes: map[string]protocol.FileChange{"x": {Add: &protocol.FileContent{}}}, Cwd: s.repo}).ForModel(),
				} {
					if !strings.Contains(out, "this is a review") {
						t.Errorf("approved, or denied by another decider: %s", out)
					}
				}
				if _, err := h.Elicit(ctx, new(approval.Foreign)); err == nil {
					t.Error("a form was sent")
				}
				return nil
			}), era)
			r, failed := c.call("codex-review", map[string]any{"target": "base", "branch": "main", "cwd": s.repo})
			if failed || len(r.Findings) != 5 || len(r.Refused) != 2 || r.Verdict == nil {
				t.Errorf("%+v", r)
			}
		})
	}
}

// TestBackground begins a review in the background, waits for it, and stops another.
func TestBackground(t *testing.T) {
	s := newShop(t)
	stall := make(chan struct{})
	defer close(stall)
	model := providertest.New(providertest.Say(s.answer()), providertest.Turn{Text: []string{"thinking"}, Stall: stall})
	c := connect(t, newNative(t, model, nil), servertest.Rounds)
	c.wait(c.begin(s), "completed", 5)
	c.interrupts(s, model, 2)
}

func (c *client) begin(s *shop) (id string) {
	c.t.Helper()
	r, failed := c.call("codex-review", map[string]any{"target": "uncommitted", "cwd": s.repo, "background": true})
	if failed || r.Status != "running" || r.ThreadID == "" {
		c.t.Fatalf("%+v", r)
	}
	return r.ThreadID
}

func (c *client) wait(id string, status protocol.TurnStatus, findings int) {
	c.t.Helper()
	r, _ := c.call("codex-wait", map[string]any{"threadIds": []string{id}})
	if len(r.Threads) != 1 || r.Threads[0].Status != status || len(r.Threads[0].Findings) != findings {
		c.t.Errorf("%+v", r)
	}
}

// interrupts stops a review whose model, with this number of requests, does not end.
func (c *client) interrupts(s *shop, model *providertest.Server, requests int) {
	c.t.Helper()
	id := c.begin(s)
	must.OK(c.t, model.Await(c.t.Context(), requests))
	if r, failed := c.call("codex-interrupt", map[string]any{"threadId": id}); failed {
		c.t.Errorf("%+v", r)
	}
	c.wait(id, "aborted", 0)
}
