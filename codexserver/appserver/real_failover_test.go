//go:build realcodex && unix

package appserver_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/turnlog"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/elicit"
)

// spent is what OpenAI answers at a usage limit.
func spent() providertest.Turn {
	return providertest.Turn{Repeat: true, Status: 429, Body: `{"error":{"type":"usage_limit_reached","message":"The usage limit has been reached","plan_type":"pro","resets_in_seconds":3600}}`}
}

// newRealPair is a Codex whose turns go on in the native engine, with the provider other.
func newRealPair(t *testing.T, configuration string, turns ...providertest.Turn) (r *real, other *providertest.Server) {
	t.Helper()
	r, other = newReal(t, configuration, turns...), providertest.New()
	t.Cleanup(other.Close)
	path := filepath.Join(r.home, "config.toml")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, path, string(b)+fmt.Sprintf("\n[model_providers.b]\nname = \"b\"\nbase_url = %q\nwire_api = \"responses\"\nenv_key = \"KEY_b\"\nrequest_max_retries = 0\nstream_max_retries = 0\n", other.BaseURL()))
	failover := setting.Failover{To: []setting.FailoverTo{{Provider: "b", Model: "m1"}}}.Resolved()
	r.options.Failover = failover
	r.options.Next = func(reach func() []string) (engine.Resumer, error) {
		return native.New(&native.Options{CodexHome: r.home, Reach: reach, Failover: failover, Environ: append(os.Environ(), "KEY_b=secret-of-b")})
	}
	r.restart(t)
	return r, other
}

// TestRealFailover has Codex's provider refuse at each point of a turn of two commands. The native
// engine ends the turn: each command runs once, and is asked about once.
func TestRealFailover(t *testing.T) {
	cmd := func(id, file string) providertest.ToolCall {
		return providertest.Tool(id, "exec_command", map[string]any{
			"cmd": "echo " + id + " >> " + file, "sandbox_permissions": "require_escalated", "justification": "to count",
		})
	}
	one, two := providertest.Call(cmd("c1", "one")), providertest.Call(cmd("c2", "two"))
	one.Reasoning = []string{"a thought"}
	slow := providertest.Tool("c1", "exec_command", map[string]any{"cmd": "echo c1 >> one; sleep 600", "yield_time_ms": 300, "sandbox_permissions": "require_escalated", "justification": "to count"})
	quota := &providertest.Failure{Code: "insufficient_quota", Message: "pay"}
	for name, tt := range map[string]struct {
		codex []providertest.Turn
		done  int // calls whose results the next model reads; -1 any number
	}{
		"at first":        {[]providertest.Turn{spent()}, 0},
		"after a command": {[]providertest.Turn{one, spent()}, 1},
		"at the answer":   {[]providertest.Turn{one, two, spent()}, 2},
		"in a text":       {[]providertest.Turn{one, {Text: []string{"half a se"}, Failed: quota}}, 1},
		"in reasoning":    {[]providertest.Turn{one, {Reasoning: []string{"half a thought"}, Failed: quota}}, 1},
		"in arguments":    {[]providertest.Turn{one, {Repeat: true, Body: `data: {"type":"response.output_item.added","item":{"type":"function_call","id":"f","call_id":"half","name":"exec_command","arguments":""}}` + "\n\n" + `data: {"type":"response.function_call_arguments.delta","item_id":"f","delta":"{\"cmd\":\"touch half"}` + "\n\n" + `data: {"type":"response.failed","response":{"id":"r","error":{"code":"insufficient_quota","message":"pay"}}}` + "\n\n"}}, 1},
		"after a call":    {[]providertest.Turn{{ToolCalls: one.ToolCalls, Failed: quota}}, -1},
		"a command runs":  {[]providertest.Turn{providertest.Call(slow), spent()}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			r, other := newRealPair(t, "approval_policy = \"on-request\"\nsandbox_mode = \"read-only\"", tt.codex...)
			other.Add(providertest.Turn{Repeat: true, Func: func(req providertest.Request) providertest.Turn {
				told := map[string]bool{}
				for _, out := range req.ToolOutputs() {
					told[out.CallID] = true
				}
				for _, file := range []string{"c1 one", "c2 two"} {
					if id, file, _ := strings.Cut(file, " "); !told[id] {
						call := providertest.Call(providertest.Tool(id, "shell", map[string]any{"command": []string{"sh", "-c", "echo " + id + " >> " + file}, "with_escalated_permissions": true, "justification": "to count"}))
						call.Reasoning = []string{"another thought"}
						return call
					}
				}
				return providertest.Say("done")
			}})
			h := decide(elicit.Approved)
			conv := r.start(t, h, protocol.Config{})
			if err := conv.Turn(t.Context(), text("go")); err != nil {
				t.Fatalf("%v, events %v", err, h.types())
			}
			if h.answer() != "done" || h.count("task_started") != 1 || h.count("task_complete") != 1 || h.count("model_reroute") != 1 || h.count("session_configured") != 1 {
				t.Errorf("answered %q, events %v", h.answer(), h.types())
			}
			asked := map[string]int{}
			for _, m := range h.all() {
				switch m := m.(type) {
				case protocol.ModelReroute:
					if m.ToEngine != "native" || m.ToProvider != "b" || m.ToModel != "m1" || m.FromModel == "" {
						t.Errorf("rerouted %+v", m)
					}
				case protocol.ExecApprovalRequest:
					asked[m.CallID]++
				}
			}
			for i, file := range []string{"one", "two"} {
				id := fmt.Sprintf("c%d", i+1)
				b, err := os.ReadFile(filepath.Join(r.cwd, file))
				told := tt.done < 0 && err != nil // the model was told that it may have run
				if string(b) != id+"\n" && !told || asked[id] > 1 {
					t.Errorf("%s has %q, %v; asked %v", file, b, err, asked)
				}
			}
			if _, err := os.Stat(filepath.Join(r.cwd, "half")); err == nil {
				t.Error("half a call ran")
			}
			first := other.Requests()[0]
			if got := len(first.ToolOutputs()); tt.done >= 0 && got != tt.done {
				t.Errorf("the next model reads %d results, want %d: %s", got, tt.done, first.Body)
			}
			all := string(first.Body) + fmt.Sprint(first.Header)
			for _, foreign := range []string{"a thought", "half a thought"} {
				if strings.Contains(all, foreign) {
					t.Errorf("the next provider reads %q", foreign)
				}
			}
			if !strings.Contains(all, "refuses further requests") || first.Model() != "m1" || first.Header.Get("Authorization") != "Bearer secret-of-b" {
				t.Errorf("the next provider gets model %s, %s", first.Model(), first.Header.Get("Authorization"))
			}
			if left := processes(t, r.home); name == "a command runs" && strings.Contains(strings.Join(left, "\n"), "sleep") {
				t.Errorf("left: %q", left)
			}
		})
	}
}

// TestRealFailoverBack comes back to Codex, which reads what was done elsewhere. It reviews
// in the other engine too.
func TestRealFailoverBack(t *testing.T) {
	r, other := newRealPair(t, "approval_policy = \"never\"\nsandbox_mode = \"read-only\"", providertest.Say("one"), spent())
	other.Add(providertest.Say("two"), providertest.Say(`{"findings":[],"overall_explanation":"fine"}`), providertest.Say("three"))
	h := &recorder{}
	conv := r.start(t, h, protocol.Config{})
	for _, in := range []protocol.TurnInput{text("first"), text("second")} {
		if err := conv.Turn(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	if err := conv.(engine.Reviewer).Review(t.Context(), protocol.Review{Prompt: "look"}); err != nil {
		t.Fatal(err)
	}
	if err := conv.Turn(t.Context(), text("third")); err != nil || h.answer() != "three" {
		t.Fatalf("%v, %q", err, h.answer())
	}
	before := len(r.Requests())
	r.engine.EndLimit(conv)
	r.Reset(providertest.Say("four"))
	if err := conv.Turn(t.Context(), text("fourth")); err != nil || h.answer() != "four" || len(r.Requests()) != before+1 {
		t.Fatalf("%v, %q, %d requests", err, h.answer(), len(r.Requests())-before)
	}
	for _, words := range []string{"first", "the summary", "two", "third", "three", "fourth"} {
		if !strings.Contains(r.last(), words) {
			t.Errorf("Codex does not read %q: %s", words, r.last())
		}
	}
	last := ""
	for _, m := range h.all() {
		if m, ok := m.(protocol.ModelReroute); ok {
			last = m.ToEngine
		}
	}
	if last != "codex" {
		t.Errorf("the last reroute is to %q", last)
	}
	path, err := r.engine.FindRollout(t.Context(), conv.ID())
	if err != nil {
		t.Fatal(err)
	}
	log, err := turnlog.ReadRollout(t.Context(), path, conv.ID())
	if err != nil {
		t.Fatal(err)
	}
	shown, err := log.Transcript(0, 100_000)
	if err != nil {
		t.Fatal(err)
	}
	text := shown.Text
	for _, words := range []string{"one", "m1 of b on the engine native answers from now on, in place of mock-model of mock", "two", "third", "mock-model of mock on the engine codex answers from now on", "four"} {
		_, rest, ok := strings.Cut(text, words)
		if text = rest; !ok {
			t.Errorf("no %q in its place in\n%s", words, shown.Text)
			break
		}
	}
}

// TestRealFailoverAsked has the provider refuse while a question about the command is open.
func TestRealFailoverAsked(t *testing.T) {
	call := escalated("c1")
	call.Failed = &providertest.Failure{Code: "insufficient_quota", Message: "pay"}
	r, other := newRealPair(t, "approval_policy = \"on-request\"\nsandbox_mode = \"read-only\"", call)
	other.Add(report, report)
	var mu sync.Mutex
	asked := 0
	h := &recorder{exec: func(ctx context.Context, _ protocol.ExecApprovalRequest) elicit.Outcome {
		mu.Lock()
		asked++
		mu.Unlock()
		select {
		case <-time.After(time.Second): // the refusal comes before the answer
		case <-ctx.Done():
			return elicit.Outcome{Decision: elicit.Abort}
		}
		return elicit.Outcome{Decision: elicit.Approved}
	}}
	conv := r.start(t, h, protocol.Config{})
	if err := conv.Turn(t.Context(), text("go")); err != nil {
		t.Fatal(err)
	}
	body := string(other.Requests()[0].Body)
	if asked > 1 || !strings.Contains(body, `"c1"`) || made(r) != strings.Contains(body, "made\\n") {
		t.Errorf("asked %d times, made %t: %s", asked, made(r), body)
	}
}

// TestRealFailoverReview has the provider refuse a review, at first and after a command. The native engine
// reviews from the beginning, read-only, and the conversation goes on with what it found.
func TestRealFailoverReview(t *testing.T) {
	look := providertest.Call(providertest.Tool("c1", "exec_command", map[string]any{"cmd": "ls; touch made.txt"}))
	for name, codex := range map[string][]providertest.Turn{"at first": {spent()}, "after a command": {look, spent()}} {
		t.Run(name, func(t *testing.T) {
			r, other := newRealPair(t, "approval_policy = \"on-request\"\nsandbox_mode = \"workspace-write\"", codex...)
			other.Add(providertest.Call(providertest.Shell("r1", "touch", "made.txt")), providertest.Say(`{"findings":[],"overall_explanation":"fine"}`), report)
			h := decide(elicit.Approved)
			conv := r.start(t, h, protocol.Config{})
			if err := conv.(engine.Reviewer).Review(t.Context(), protocol.Review{Prompt: "look", Target: "uncommitted"}); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(h.answer(), "fine") || made(r) || h.count("task_started") != 1 || h.count("task_complete") != 1 || h.count("model_reroute") != 1 || h.count("exec_approval_request") != 0 {
				t.Errorf("answered %q, events %v", h.answer(), h.types())
			}
			if err := conv.Turn(t.Context(), text("and now")); err != nil {
				t.Fatal(err)
			}
			all := other.Requests()
			if last := string(all[len(all)-1].Body); !strings.Contains(last, "fine") || !strings.Contains(last, "and now") {
				t.Errorf("the next turn reads %s", last)
			}
		})
	}
}
