package browsertest

import (
	"context"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// A turn with everything that can be shown of one, piece by piece.
func TestTimeline(t *testing.T) {
	steps := make(chan struct{})
	var decision elicit.Decision
	diff := "diff --git a/server.go b/server.go\n--- a/server.go\n+++ b/server.go\n@@ -12,3 +12,4 @@\n \tmux := http.NewServeMux()\n+\tmux.HandleFunc(\"GET /healthz\", health)\n \treturn mux\n"
	e := engine.TurnFunc(func(ctx context.Context, host engine.Host, in []protocol.InputItem) error {
		host.Emit(protocol.AgentReasoningDelta{Delta: "**Looking for the routes**\n\nThe server keeps its routes in "})
		host.Emit(protocol.AgentReasoning{Text: "**Looking for the routes**\n\nThe server keeps its routes in one place, so the check belongs there."})
		host.Emit(protocol.AgentMessageDelta{Delta: "I will add a handler for "})
		<-steps
		host.Emit(protocol.AgentMessage{Message: "I will add a handler for /healthz beside the other routes, and a test that asks it.\n\nIt answers 204 while the database can be reached."})
		host.Emit(protocol.PlanUpdate{Plan: []protocol.PlanStep{
			{Step: "Find where the routes are", Status: "completed"},
			{Step: "Add the handler and its test", Status: "in_progress"},
			{Step: "Run the tests", Status: "pending"},
		}})
		host.Emit(protocol.ExecCommandBegin{CallID: "1", Command: []string{"rg", "-n", "HandleFunc", "--type", "go"}, Cwd: "/work/shop"})
		host.Emit(protocol.ExecCommandOutputDelta{CallID: "1", Chunk: []byte("server.go:13:\tmux.HandleFunc(\"GET /cart\", cart)\n")})
		<-steps
		host.Emit(protocol.ExecCommandEnd{CallID: "1", AggregatedOutput: "server.go:13:\tmux.HandleFunc(\"GET /cart\", cart)\nserver.go:14:\tmux.HandleFunc(\"POST /order\", order)\n", Duration: protocol.Duration(38 * time.Millisecond)})
		host.Emit(protocol.PatchApplyBegin{CallID: "2", Changes: map[string]protocol.FileChange{"/work/shop/server.go": {Update: &protocol.FileUpdate{UnifiedDiff: diff[len("diff --git a/server.go b/server.go\n--- a/server.go\n+++ b/server.go\n"):]}}}})
		host.Emit(protocol.PatchApplyEnd{CallID: "2", Success: true})
		host.Emit(protocol.ExecCommandBegin{CallID: "3", Command: []string{"go", "test", "./..."}, Cwd: "/work/shop"})
		host.Emit(protocol.ExecCommandEnd{CallID: "3", AggregatedOutput: "--- FAIL: TestHealth (0.00s)\n    health_test.go:14: status 500, want 204\nFAIL\n", ExitCode: 1, Duration: protocol.Duration(1840 * time.Millisecond)})
		host.Emit(protocol.MCPToolCallBegin{CallID: "4", Invocation: protocol.MCPInvocation{Server: "tracker", Tool: "find_issue", Arguments: []byte(`{"query":"health"}`)}})
		host.Emit(protocol.MCPToolCallEnd{CallID: "4", Invocation: protocol.MCPInvocation{Server: "tracker", Tool: "find_issue", Arguments: []byte(`{"query":"health"}`)}, Result: protocol.MCPToolCallResult{Ok: []byte(`{"found":0}`)}, Duration: protocol.Duration(212 * time.Millisecond)})
		host.Emit(protocol.StreamError{Message: "The model's stream broke off; asking again (1 of 5)"})
		host.Emit(protocol.TurnDiff{UnifiedDiff: diff})
		host.Emit(protocol.Error{Message: "The model's provider answered 429: rate limit reached"})
		out := host.ApproveExec(ctx, protocol.ExecApprovalRequest{CallID: "5", Command: []string{"docker", "compose", "up", "--detach", "db"}, Cwd: "/work/shop", Reason: "The test needs the database, which is not running.", LeavesSandbox: true})
		decision = out.Decision
		<-steps
		return nil
	})
	r := start(t, e, nil)
	b := r.open(t)
	answer := r.call("Add a health check to the shop's server.\n\nIt should say whether the database can be reached.")
	b.see(`document.querySelector(".is-agent .said").textContent === "I will add a handler for "`)
	b.see(`document.querySelector(".conversation .state").textContent === "working"`)
	b.do(chromedp.Evaluate[chromedp.Void](`(({ firstChild: text }) => getSelection().setBaseAndExtent(text, 0, text, text.length))(document.querySelector(".is-agent .said"))`))
	steps <- struct{}{}
	b.see(`document.querySelector(".is-command .result").textContent === "running…"`)
	if got := eval[string](b, `String(getSelection())`); got != "I will add a handler for " {
		t.Errorf("what was selected is now %q", got)
	}
	b.do(chromedp.Evaluate[chromedp.Void](`getSelection().removeAllRanges()`))
	steps <- struct{}{}
	b.see(`questions.size === 1`)
	for _, want := range []string{
		`document.querySelectorAll(".steps li").length === 3`,
		`document.querySelectorAll(".is-command .result")[0].textContent === "exit 0 · 38 ms"`,
		`document.querySelectorAll(".is-command .result")[1].textContent === "exit 1 · 1.8 s"`,
		`document.querySelector(".is-tool .result").textContent === "done · 212 ms"`,
		`document.querySelector(".is-patch .result").textContent === "applied"`,
		`document.querySelector(".whole .diff .plus").textContent.includes("/healthz")`,
		`document.querySelector(".is-error .said").textContent.includes("429")`,
		`document.querySelector(".thoughts").open === false`,
		`(({ scrollTop, clientHeight, scrollHeight }) => scrollTop + clientHeight > scrollHeight - 2)(document.querySelector(".timeline"))`,
	} {
		b.see(want)
	}
	b.look("timeline")
	b.click("Approve once")
	b.see(`document.querySelector(".conversation .state").textContent === "working"`)
	b.do(chromedp.Evaluate[chromedp.Void](`document.querySelectorAll("details.whole, details.thoughts, .is-patch details").forEach((d) => { d.open = true })`),
		chromedp.Evaluate[chromedp.Void](`document.querySelector(".timeline").style.maxHeight = "none"`))
	b.look("timeline-whole")
	steps <- struct{}{}
	get(t, answer)
	if decision != elicit.Approved {
		t.Errorf("the engine was told %q", decision)
	}
}

// What changes while its length stays is shown as it is now, and a line cannot
// pass for a heading of the diff that is decided on.
func TestSameLength(t *testing.T) {
	next := make(chan struct{})
	e := engine.TurnFunc(func(ctx context.Context, host engine.Host, _ []protocol.InputItem) error {
		for _, s := range []string{"allow", "block"} {
			host.Emit(protocol.TurnDiff{UnifiedDiff: "@@ -1 +1 @@\n-none\n+" + s + "\n"})
			<-next
		}
		host.ApprovePatch(ctx, protocol.PatchApprovalRequest{Cwd: "/work", Changes: map[string]protocol.FileChange{
			"/work/a.c": {Update: &protocol.FileUpdate{UnifiedDiff: "@@ -1 +1 @@\n--- i;\n+++ i;\n"}},
		}})
		return nil
	})
	r := start(t, e, nil)
	b := r.open(t)
	answer := r.call("go")
	b.see(`document.querySelector(".whole .plus").textContent === "+allow\n"`)
	next <- struct{}{}
	b.see(`document.querySelector(".whole .plus").textContent === "+block\n"`)
	next <- struct{}{}
	b.see(`document.querySelector(".ask .diff .plus").textContent === "+++ i;\n"`)
	b.see(`document.querySelector(".ask .diff .minus").textContent === "--- i;\n"`)
	b.click("Deny")
	get(t, answer)
}

// Conversations side by side: the newest first, each with its own questions.
func TestSideBySide(t *testing.T) {
	r := start(t, asking, nil)
	b := r.open(t)
	first := r.call("go generate ./...")
	b.see(`questions.size === 1`)
	second := r.call("npm install left-pad")
	b.see(`questions.size === 2`)
	b.see(`[...document.querySelectorAll(".conversation .task")].map((t) => t.textContent).join() === "npm install left-pad,go generate ./..."`)
	b.see(`[...document.querySelectorAll(".ask .command")].map((c) => c.textContent).join() === "go generate ./...,npm install left-pad"`)
	b.see(`document.title.startsWith("(2)") && document.querySelector("#questions-title").textContent === "2 questions to decide"`)
	// A screen reader tells what each button is about.
	b.see(`[...document.querySelectorAll(".ask legend")].map((l) => l.textContent).join() === "Your decision on go generate ./...,Your decision on npm install left-pad"`)
	b.see(`[...document.querySelectorAll(".bar button")].map((s) => s.ariaLabel).join() === "Stop the turn: npm install left-pad,Stop the turn: go generate ./..."`)
	b.look("two")
	b.settle()
	b.press("j")
	b.settle()
	b.press("y")
	if got := get(t, second); got != "approved" {
		t.Errorf("the second was told %q", got)
	}
	b.see(`isOpen(selected) && selected.view.command === "go generate ./..."`)
	b.settle()
	b.press("d")
	b.press("\r")
	if got := get(t, first); got != "denied" {
		t.Errorf("the first was told %q", got)
	}
}
