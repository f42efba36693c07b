//go:build realcodex

package main

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
)

// TestRealContinued kills the server of tasks of the real Codex: one that runs a command, and one
// with an open question. The next server continues them, and no command runs twice.
func TestRealContinued(t *testing.T) {
	for prompt, want := range map[string]struct {
		words string
		runs  int
	}{
		"please run": {"It may have run or not, and was not run again.", 1},
		"please ask": {"done", 1},
	} {
		t.Run(prompt, func(t *testing.T) {
			f := newFolders(t)
			model := providertest.New(providertest.Turn{Repeat: true, Func: func(r providertest.Request) providertest.Turn {
				outputs := r.ToolOutputs()
				call := map[string]any{"cmd": "echo ran >> ran"}
				switch {
				case len(outputs) == 0 && prompt == "please run":
					call["cmd"] = "echo ran >> ran; sleep 600"
				case len(outputs) == 0, len(outputs) == 1 && prompt == "please ask" && strings.Contains(outputs[0].Output, "aborted"):
					call["sandbox_permissions"], call["justification"] = "require_escalated", "to write"
				default:
					return providertest.Say("done")
				}
				return providertest.Call(providertest.Tool(fmt.Sprintf("c%d", len(outputs)), "exec_command", call))
			}})
			t.Cleanup(model.Close)
			policies := map[string]string{
				"please run": "approval_policy = \"never\"\nsandbox_mode = \"danger-full-access\"",
				"please ask": "approval_policy = \"on-request\"\nsandbox_mode = \"read-only\"",
			}
			writeConfig(t, f.home, servertest.CodexConfig(model.BaseURL(), policies[prompt]))
			codex, err := appserver.Find("")
			if err != nil {
				t.Fatal(err)
			}
			k := &killer{t: t, f: f, mark: "KILL_TEST=" + rand.Text()}
			t.Cleanup(func() { k.sweep() })
			start := func() *mortal {
				cmd := exec.Command(built(t), "-engine", "codex", "-codex", codex, "-c", "calls.grace=0s")
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
			get := fmt.Sprintf(`"taskId":%q,%s`, answer.TaskID, pollingClient)
			for {
				v, ok := s.call("tasks/get", get)
				if !ok || v.Status == "completed" {
					t.Fatalf("%+v", v)
				}
				if prompt == "please run" && runs(f) > 0 || len(v.InputRequests) > 0 {
					break
				}
				<-time.After(10 * time.Millisecond)
			}
			s.kill()
			s = start()
			if got := s.ended(answer.TaskID); !strings.Contains(got, want.words) || !strings.Contains(got, "done") {
				t.Error(got)
			}
			s.end()
			if n := runs(f); n != want.runs {
				t.Errorf("the command ran %d times", n)
			}
			if left := k.left(); len(left) > 0 {
				t.Errorf("left: %q", left)
			}
			if files, _ := filepath.Glob(filepath.Join(f.home, "codex-mcp-locks", "*")); len(files) > 0 {
				t.Errorf("locks are left: %q", files)
			}
		})
	}
}

// TestKilledTasksOfRealCodex kills the servers of tasks of the real Codex, as TestEndToEndKilledTasks does
// those of the native engine. The step soak runs it.
func TestKilledTasksOfRealCodex(t *testing.T) {
	f := newFolders(t)
	ran := filepath.Join(f.cwd, "ran")
	model := providertest.New(providertest.Turn{Repeat: true, Func: func(r providertest.Request) providertest.Turn {
		name := string(worked.FindSubmatch(r.Body)[1])
		outputs := r.ToolOutputs()
		if len(outputs) == 3 {
			cut := ""
			for n, output := range outputs {
				if strings.Contains(output.Output, "aborted") {
					cut += fmt.Sprintf(" interrupted-%d", n+1)
				}
			}
			return providertest.Say("done " + name + cut)
		}
		id := fmt.Sprintf("%s-%d", name, len(outputs)+1)
		return providertest.Call(providertest.Tool(id, "exec_command", map[string]any{"cmd": fmt.Sprintf("echo %s >> %q; sleep 0.02", id, ran)}))
	}})
	t.Cleanup(model.Close)
	writeConfig(t, f.home, servertest.CodexConfig(model.BaseURL(), "approval_policy = \"never\"\nsandbox_mode = \"danger-full-access\""))
	record := filepath.Join(f.home, "record")
	if err := os.WriteFile(filepath.Join(f.home, "codex-mcp.toml"), fmt.Appendf(nil, "[approvals]\nlog = %q\n", record), 0o600); err != nil {
		t.Fatal(err)
	}
	codex, err := appserver.Find("")
	if err != nil {
		t.Fatal(err)
	}
	k := &killer{t: t, f: f, mark: "KILL_TEST=" + rand.Text(), codex: true}
	t.Cleanup(func() { k.sweep() })
	k.launches = func() *mortal {
		cmd := exec.Command(built(t), "-engine", "codex", "-codex", codex, "-c", "calls.grace=0s")
		cmd.Dir = f.cwd
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + f.user, "CODEX_HOME=" + f.home, k.mark}
		return k.launch(cmd)
	}
	k.killTasks(f.home, func() string { return record })
}
