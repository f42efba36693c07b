//go:build realcodex

package main

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
)

// TestRealFailoverKilled kills the server of a task after the native engine went on for the real Codex:
// while a command runs, and with an open question. Nothing runs twice, the client is told, and so is
// the model in the next turn.
func TestRealFailoverKilled(t *testing.T) {
	for prompt, most := range map[string]int{"please run": 1, "please ask": 0} {
		t.Run(prompt, func(t *testing.T) {
			f := newFolders(t)
			spent := providertest.Turn{Repeat: true, Status: 429, Body: `{"error":{"type":"usage_limit_reached","message":"no more","plan_type":"pro","resets_in_seconds":3600}}`}
			codexs, others := providertest.New(spent), providertest.New(providertest.Turn{Repeat: true, Func: func(r providertest.Request) providertest.Turn {
				call := map[string]any{"command": []string{"sh", "-c", "echo ran >> ran; sleep 600"}}
				switch {
				case strings.Contains(string(r.Body), "what next"):
					return providertest.Say("done")
				case prompt == "please ask":
					call["with_escalated_permissions"], call["justification"] = true, "to write"
				}
				return providertest.Call(providertest.Tool("c1", "shell", call))
			}})
			t.Cleanup(codexs.Close)
			t.Cleanup(others.Close)
			policies := map[string]string{
				"please run": "approval_policy = \"never\"\nsandbox_mode = \"danger-full-access\"",
				"please ask": "approval_policy = \"on-request\"\nsandbox_mode = \"read-only\"",
			}
			writeConfig(t, f.home, servertest.CodexConfig(codexs.BaseURL(), policies[prompt])+fmt.Sprintf("\n[model_providers.b]\nname = \"b\"\nbase_url = %q\nwire_api = \"responses\"\n", others.BaseURL()))
			codex, err := appserver.Find("")
			if err != nil {
				t.Fatal(err)
			}
			k := &killer{t: t, f: f, mark: "KILL_TEST=" + rand.Text()}
			t.Cleanup(func() { k.sweep() })
			start := func() *mortal {
				cmd := exec.Command(built(t), "-engine", "codex", "-codex", codex, "-c", "tasks.grace=0s", "-c", `failover.to=[{provider="b",model="n"}]`)
				cmd.Dir = f.cwd
				cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + f.user, "CODEX_HOME=" + f.home, k.mark}
				return k.launch(cmd)
			}
			s := start()
			var answer taskView
			err = s.peer.Call(t.Context(), "tools/call", json.RawMessage(fmt.Sprintf(`{"name":"codex","arguments":{"prompt":%q},%s}`, prompt, pollingClient)), &answer)
			if err != nil || answer.TaskID == "" {
				t.Fatalf("%v, %+v", err, answer)
			}
			for {
				v, ok := s.call("tasks/get", fmt.Sprintf(`"taskId":%q,%s`, answer.TaskID, pollingClient))
				if !ok || v.Status == "completed" {
					t.Fatalf("%+v %s", v, v.Result)
				}
				if prompt == "please run" && runs(f) > 0 || len(v.InputRequests) > 0 {
					break
				}
				<-time.After(10 * time.Millisecond)
			}
			s.kill()
			s = start()
			if got := s.ended(answer.TaskID); !strings.Contains(got, "The server ended while this task ran.") {
				t.Error(got)
			}
			thread, _, _ := strings.Cut(answer.TaskID, ".")
			var shown taskView
			err = s.peer.Call(t.Context(), "tools/call", json.RawMessage(fmt.Sprintf(`{"name":"codex-show","arguments":{"threadId":%q,"what":"transcript"},%s}`, thread, pollingClient)), &shown)
			if err != nil || strings.Count(string(shown.Content), "n of b on the engine native answers from now on, in place of mock-model of mock") != 1 {
				t.Errorf("%v, %s", err, shown.Content)
			}
			err = s.peer.Call(t.Context(), "tools/call", json.RawMessage(fmt.Sprintf(`{"name":"codex-reply","arguments":{"threadId":%q,"prompt":"what next"},%s}`, thread, pollingClient)), &answer)
			if err != nil || answer.TaskID == "" {
				t.Fatalf("%v, %+v", err, answer)
			}
			if got := s.ended(answer.TaskID); !strings.Contains(got, "done") {
				t.Error(got)
			}
			all := others.Requests()
			if last := all[len(all)-1]; prompt == "please run" && !strings.Contains(last.LastToolOutput(), "aborted") {
				t.Errorf("the model was not told: %q", last.ToolOutputs())
			}
			s.end()
			if n := runs(f); n != most {
				t.Errorf("the command ran %d times", n)
			}
			if left := k.left(); len(left) > 0 {
				t.Errorf("left: %q", left)
			}
		})
	}
}
