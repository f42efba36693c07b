package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
)

// TestEndToEndUsersApprover checks that ann can decide the questions of bob's turns at bob's
// address.
func TestEndToEndUsersApprover(t *testing.T) {
	model := providertest.New(providertest.Turn{Repeat: true, Func: func(r providertest.Request) providertest.Turn {
		if len(r.ToolOutputs()) > 0 {
			return providertest.Say("done")
		}
		return providertest.Call(providertest.Shell("c1", "touch", r.LastUserText()))
	}})
	t.Cleanup(model.Close)
	u := startUsers(t, model, "", "-c", "approval_policy=untrusted", "-c", "sandbox_mode=workspace-write",
		"-c", "http.principals.bob.scopes=['codex:run', 'codex:read']", "-c", "http.principals.bob.approver=ann")
	ann, bob := u.as("ann"), u.as("bob")
	const form = `"elicitation":{"form":{}}`
	wait := func(more string) (int, string) {
		return ann.askAt(mcpPath+"/bob", form, "tools/call", "codex-wait", `"name":"codex-wait","arguments":{}`+more)
	}
	for file, answer := range map[string]string{"accepted": `{"action":"accept","content":{"decision":"approved"}}`, "declined": `{"action":"decline"}`} {
		ended := make(chan string, 1)
		go func() {
			_, body := bob.askAt(mcpPath, form, "tools/call", "codex", `"name":"codex","arguments":{"prompt":"`+file+`"}`)
			ended <- body
		}()
		status, question := wait("")
		if status != 200 || !strings.Contains(question, "touch "+file) {
			t.Fatalf("the question: %d %s", status, question)
		}
		state := member(t, question, "requestState")
		if status, got := wait(`,"requestState":"` + state + `","inputResponses":{"q1":` + answer + `}`); status != 200 || !strings.Contains(got, "touch "+file) {
			t.Errorf("the decision: %d %s", status, got)
		}
		if body := <-ended; !strings.Contains(body, "done") {
			t.Errorf("bob's result: %s", body)
		}
		if _, err := os.Stat(filepath.Join(u.work["bob"], file)); (err == nil) != (file == "accepted") {
			t.Errorf("%s: the command ran: %v", file, err == nil)
		}
	}
	record, err := os.ReadFile(filepath.Join(filepath.Dir(u.f.home), "approvals"))
	if err != nil || strings.Count(string(record), `"principal":"bob","kind":"command","command":`) != 2 || strings.Count(string(record), `"by":"approver","approver":"ann"`) != 2 {
		t.Errorf("the record: %s, %v", record, err)
	}
	for _, tt := range []struct {
		name, path, tool string
		as               *httpServer
		status           int
	}{
		{"the approver runs nothing", mcpPath + "/bob", "codex", ann, 403},
		{"the approver interrupts nothing", mcpPath + "/bob", "codex-interrupt", ann, 403},
		{"bob does not decide for ann", mcpPath + "/ann", "codex-wait", bob, 403},
		{"no user of that name", mcpPath + "/eve", "codex-wait", ann, 403},
		{"a user of its own", mcpPath + "/ann", "codex-list", ann, 200},
		{"a path above", mcpPath + "/bob/x", "codex-list", ann, 404},
	} {
		status, body := tt.as.askAt(tt.path, form, "tools/call", tt.tool, `"name":"`+tt.tool+`","arguments":{"prompt":"never","threadId":"x"}`)
		if status != tt.status {
			t.Errorf("%s: %d %s", tt.name, status, body)
		}
	}
	_, list := bob.askAt(mcpPath, form, "tools/call", "codex-list", `"name":"codex-list","arguments":{}`)
	thread := member(t, list, "threadId")
	session := u.initialize("ann", mcpPath+"/bob")
	for name, ask := range map[string]func(method, name, params string) string{
		"2026-07-28": func(method, name, params string) string {
			_, body := ann.askAt(mcpPath+"/bob", form, method, name, params)
			return body
		},
		"2025-06-18": func(method, _, params string) string {
			_, body := u.before("ann", mcpPath+"/bob", session, `{"jsonrpc":"2.0","id":2,"method":"`+method+`","params":{`+params+`}}`)
			return body
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ask("tools/list", "", `"_":0`); strings.Count(got, `"inputSchema"`) != 1 || !strings.Contains(got, `"name":"codex-wait"`) {
				t.Errorf("the approver has other tools than codex-wait: %s", got)
			}
			for _, tool := range []string{"codex-list", "codex-show", "codex-models"} {
				got := ask("tools/call", tool, `"name":"`+tool+`","arguments":{"threadId":"`+thread+`"}`)
				if !strings.Contains(strings.ReplaceAll(got, `\`, ""), `tool "`+tool+`" is not for approvers`) {
					t.Errorf("%s: %s", tool, got)
				}
			}
			for _, method := range []string{"resources/list", "resources/templates/list"} {
				if got := ask(method, "", `"_":0`); strings.Contains(got, "codex://") {
					t.Errorf("%s: %s", method, got)
				}
			}
			uri := "codex://threads/" + thread + "/transcript"
			if got := ask("resources/read", uri, `"uri":"`+uri+`"`); !strings.Contains(got, `"error"`) {
				t.Errorf("the approver reads a conversation: %s", got)
			}
			if got := ask("tools/call", "codex-wait", `"name":"codex-wait","arguments":{"seconds":0,"threadIds":["`+thread+`"]}`); strings.Contains(got, thread) {
				t.Errorf("the approver waits for a conversation: %s", got)
			}
		})
	}
	if _, err := os.Stat(filepath.Join(u.work["bob"], "never")); err == nil {
		t.Error("the approver has run a command")
	}
}
