package appserver_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// formOf returns the input of a turn for the form of an answer.
func formOf(words string) protocol.TurnInput {
	in := text(words)
	in.OutputSchema, in.Again = json.RawMessage(`{"type":"object"}`), true
	return in
}

// withEffort has the conversations of a fake begin with an effort, and its model have others.
func (f *fake) withEffort(effort string, efforts ...string) {
	f.on["thread/start"] = func(r *run, _ *jsonrpc.Request) (any, error) {
		return json.RawMessage(fmt.Sprintf(`{"thread":{"id":%q,"path":%q,"turns":[],"status":{"type":"idle"}},"model":"m","modelProvider":"mock",
			"cwd":"/work","approvalPolicy":"on-request","approvalsReviewer":"user","sandbox":{"type":"readOnly"},"reasoningEffort":%s}`, threadID, f.rollout, effort)), nil
	}
	var all []string
	for _, one := range efforts {
		all = append(all, fmt.Sprintf(`{"reasoningEffort":%q}`, one))
	}
	f.on["model/list"] = reply(`{"data":[{"model":"m","supportedReasoningEfforts":[` + strings.Join(all, ",") + `]}]}`)
}

// TestForm checks what a turn for the form of an answer is sent with, and that the next one has again what the conversation had:
// Codex would keep the rest.
func TestForm(t *testing.T) {
	const narrow = `"outputSchema":{"type":"object"},"sandboxPolicy":{"type":"readOnly","networkAccess":false},"approvalPolicy":"never"`
	const own = `"sandboxPolicy":{"type":"workspaceWrite","networkAccess":false},"approvalPolicy":"untrusted"`
	for _, tt := range []struct {
		name, effort string
		efforts      []string
		form, next   string
	}{
		{"low", `"high"`, []string{"low", "high"}, `"effort":"low",`, `"effort":"high",`},
		{"the model has no low effort", `"high"`, []string{"medium", "high"}, `"effort":"high",`, `"effort":"high",`},
		{"less than low", `"minimal"`, []string{"minimal", "low"}, `"effort":"minimal",`, `"effort":"minimal",`},
		{"not known", `null`, []string{"low", "high"}, "", ""},
	} {
		inBubble(t, tt.name, func(t *testing.T, f *fake) {
			f.withEffort(tt.effort, tt.efforts...)
			f.turn = answered
			sent := f.keep("turn/start")
			h := &recorder{}
			conv := must.Get(f.engine(appserver.Options{}).Start(t.Context(), protocol.Config{Cwd: "/work", Sandbox: protocol.SandboxWorkspaceWrite, ApprovalPolicy: protocol.ApprovalUntrusted}, h))(t)
			must.OK(t, conv.Turn(t.Context(), text("go")))
			in := formOf("again")
			in.Key = "key"
			must.OK(t, conv.(engine.Former).Form(t.Context(), in))
			kept := filepath.Join(f.home, "codex-mcp", "threads", threadID+".json")
			if got := string(must.Get(os.ReadFile(kept))(t)); !strings.Contains(got, `"formed":{"approval_policy":"untrusted"`) {
				t.Errorf("kept: %s", got)
			}
			must.OK(t, conv.Turn(t.Context(), text("next")))
			if got := string(must.Get(os.ReadFile(kept))(t)); strings.Contains(got, "formed") {
				t.Errorf("kept after the next turn: %s", got)
			}
			for i, want := range []string{
				`{"threadId":%q,"input":[{"type":"text","text":"go"}],` + own + `}`,
				`{"threadId":%q,"clientUserMessageId":"key-form","input":[{"type":"text","text":"again"}],` + tt.form + narrow + `}`,
				`{"threadId":%q,"input":[{"type":"text","text":"next"}],` + tt.next + own + `}`,
			} {
				must.Equal(t, fmt.Sprintf("turn %d", i+1), loose(t, fmt.Sprintf(want, threadID)), loose(t, (*sent)[i]))
			}
		})
	}
}

// TestFormRuns plays turns for a form in which the model works on: each ends there, nobody is asked, and no message is taken.
func TestFormRuns(t *testing.T) {
	for kind, item := range map[string]string{
		"a command": command,
		"a patch":   `{"type":"fileChange","id":"c1","changes":[{"path":"/work/a","kind":{"type":"add"},"diff":"x"}],"status":"inProgress"}`,
		"a tool":    `{"type":"mcpToolCall","id":"c1","server":"s","tool":"t","status":"inProgress","arguments":{}}`,
		"unknown":   `{"type":"timeTravel","id":"c1"}`,
		"a search":  `{"type":"webSearch","id":"c1","query":"q"}`,
	} {
		inBubble(t, kind, func(t *testing.T, f *fake) {
			f.turn = answered
			h := decide("approved")
			conv := start(t, f.engine(appserver.Options{}), h)
			must.OK(t, conv.Turn(t.Context(), text("go")))
			asked := ""
			f.mu.Lock()
			f.turn = func(r *run) {
				if kind == "a command" {
					asked = r.askCommand(threadID, r.current())
				}
				r.item(threadID, r.current(), item)
			}
			f.mu.Unlock()
			done := make(chan error, 1)
			go func() { done <- conv.(engine.Former).Form(t.Context(), formOf("again")) }()
			synctest.Wait()
			if err := steer(t.Context(), conv, "late"); !errors.Is(err, engine.ErrNoTurn) {
				t.Errorf("a message: %v", err)
			}
			if err := <-done; !errors.As(err, new(*engine.AbortError)) || !strings.Contains(err.Error(), "although it was asked for the form of its answer alone") {
				t.Errorf("the form: %v", err)
			}
			if strings.Contains(asked, "accept") || h.count("exec_approval_request") > 0 {
				t.Errorf("a question was answered %s; events %v", asked, h.types())
			}
			f.mu.Lock()
			f.turn = answered
			f.mu.Unlock()
			must.OK(t, conv.Turn(t.Context(), text("next")))
		})
	}
	inBubble(t, "words alone", func(t *testing.T, f *fake) {
		f.turn = func(r *run) {
			r.item(threadID, r.current(), `{"type":"reasoning","id":"r1","summary":[],"content":[]}`)
			r.say(`{"n":1}`)
			r.complete("completed")
		}
		h := &recorder{}
		conv := start(t, f.engine(appserver.Options{}), h)
		must.OK(t, conv.(engine.Former).Form(t.Context(), formOf("again")))
		must.Equal(t, "the answer", `{"n":1}`, h.answer())
	})
}

// TestFormResumed resumes conversations whose last turn in Codex's file is perhaps one for a form.
func TestFormResumed(t *testing.T) {
	const wide, narrow = `"sandboxPolicy":{"type":"workspaceWrite","networkAccess":false},"approvalPolicy":"on-request"`, `"sandboxPolicy":{"type":"readOnly","networkAccess":false},"approvalPolicy":"never"`
	had, form := turnContext("workspace-write", "", "on-request"), turnContext("read-only", "", "never")
	for _, tt := range []struct {
		name    string
		formed  bool // the server knows of a form
		rollout []string
		want    string
	}{
		{"a form", true, []string{had, form}, `"effort":"high",` + wide},
		{"no form", false, []string{had, form}, narrow},
		{"another turn after it", true, []string{form, turnContext("read-only", "", "untrusted")}, `"sandboxPolicy":{"type":"readOnly","networkAccess":false},"approvalPolicy":"untrusted"`},
	} {
		for _, continues := range []bool{false, true} {
			t.Run(fmt.Sprint(tt.name, " continues ", continues), func(t *testing.T) {
				path := writeRollout(t, tt.rollout...)
				bubble(t, func(t *testing.T, f *fake) {
					f.rollout, f.turn, f.cwd = path, answered, "/work"
					f.config = map[string]any{"model": "m", "sandbox_mode": "workspace-write"}
					f.withEffort(`"high"`, "low", "high")
					first := f.engine(appserver.Options{})
					conv := must.Get(first.Start(t.Context(), protocol.Config{Cwd: "/work"}, &recorder{}))(t)
					must.OK(t, conv.Turn(t.Context(), text("go")))
					if tt.formed {
						must.OK(t, conv.(engine.Former).Form(t.Context(), formOf("again")))
					}
					must.OK(t, first.Close())
					sent := f.keep("turn/start")
					again := must.Get(f.engine(appserver.Options{}).Resume(t.Context(), savedAt(path), protocol.Config{Cwd: "/work", Continues: continues}, &recorder{}))(t)
					must.OK(t, again.Turn(t.Context(), text("on")))
					want := fmt.Sprintf(`{"threadId":%q,"input":[{"type":"text","text":"on"}],`+tt.want+`}`, threadID)
					must.Equal(t, "the next turn", loose(t, want), loose(t, (*sent)[0]))
				})
			})
		}
	}
}
