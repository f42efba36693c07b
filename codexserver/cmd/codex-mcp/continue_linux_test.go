package main

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
)

// cutWork starts a server whose task or turn in the background waits in a state, and kills it.
// What follows name are further members of the call's arguments.
func cutWork(t *testing.T, prompt, arguments string) (k *killer, f folders, id string) {
	t.Helper()
	f = newFolders(t)
	ran := filepath.Join(f.cwd, "ran")
	held := make(chan struct{})
	model := providertest.New(providertest.Turn{Repeat: true, Func: func(r providertest.Request) providertest.Turn {
		outputs := r.ToolOutputs()
		switch {
		case len(outputs) > 0:
			return providertest.Say("done: " + outputs[0].Output)
		case strings.Contains(string(r.Body), "please wait"):
			wait := providertest.Say("waited")
			select {
			case <-held: // the second request
			default:
				close(held)
				wait.Wait = make(chan struct{})
			}
			return wait
		case strings.Contains(string(r.Body), "please run"):
			return providertest.Call(providertest.Shell("c1", "sleep", "600"))
		}
		return providertest.Call(providertest.Shell("c1", "sh", "-c", fmt.Sprintf("echo ran >> %q", ran)))
	}})
	t.Cleanup(model.Close)
	writeConfig(t, f.home, "approval_policy = \"untrusted\"\n"+fmt.Sprintf(configOf, model.BaseURL()))
	configureCut(t, f, "allow")
	k = &killer{t: t, f: f, mark: "KILL_TEST=" + rand.Text()}
	t.Cleanup(func() { k.sweep() })
	s := k.start()
	var answer struct {
		TaskID     string `json:"taskId"`
		Structured struct {
			ThreadID string `json:"threadId"`
		} `json:"structuredContent"`
	}
	err := s.peer.Call(t.Context(), "tools/call", json.RawMessage(fmt.Sprintf(`{"name":"codex","arguments":{"prompt":%q%s},%s}`, prompt, arguments, pollingClient)), &answer)
	if err != nil {
		t.Fatal(err)
	}
	if id = answer.TaskID; id == "" {
		id = answer.Structured.ThreadID
	}
	if id == "" {
		t.Fatal("the call has neither a task nor a thread")
	}
	thread, _, _ := strings.Cut(id, ".")
	if prompt == "please wait" {
		<-held
	}
	mark := map[string]string{"please wait": `"turn_context"`, "please run": `"function_call"`, "please ask": `"turn_context"`}[prompt]
	for asks := prompt == "please ask"; asks; <-time.After(time.Millisecond) {
		v, ok := s.call("tasks/get", fmt.Sprintf(`"taskId":%q,%s`, id, pollingClient))
		asks = ok && len(v.InputRequests) == 0
	}
	for {
		paths, _ := filepath.Glob(filepath.Join(f.home, "sessions", "*", "*", "*", "rollout-*"+thread+".jsonl"))
		if len(paths) == 1 {
			text, err := os.ReadFile(paths[0])
			if err == nil && strings.Contains(string(text), mark) {
				break
			}
		}
		<-time.After(time.Millisecond)
	}
	s.kill()
	return k, f, id
}

// configureCut writes the settings of a server, with a value of calls.full_access.
func configureCut(t *testing.T, f folders, access string) {
	t.Helper()
	settings := "[approvals]\nallow = [{command = [\"sleep\"], outside = true}]\n[calls]\nfull_access = \"" + access + "\"\n"
	if err := os.WriteFile(filepath.Join(f.home, "codex-mcp.toml"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
}

// ended polls a task to its end.
func (s *mortal) ended(id string) string {
	for {
		v, ok := s.poll(id)
		if !ok {
			s.t.Fatal("the server has ended")
		}
		if v.Status == "completed" {
			return string(v.Result)
		}
		<-time.After(2 * time.Millisecond)
	}
}

// runs returns how often the command has run.
func runs(f folders) int {
	text, _ := os.ReadFile(filepath.Join(f.cwd, "ran"))
	return strings.Count(string(text), "\n")
}

// TestEndToEndContinued kills a server in each state of a task. The next one continues it when
// the client asks for it, and codex-show says so.
func TestEndToEndContinued(t *testing.T) {
	for prompt, tt := range map[string]struct {
		answer string
		runs   int
	}{
		"please wait": {"waited", 0},
		"please run":  {"It may have run or not, and was not run again.", 0},
		"please ask":  {"done: ", 1},
	} {
		t.Run(prompt, func(t *testing.T) {
			t.Parallel()
			k, f, id := cutWork(t, prompt, "")
			s := k.start()
			defer s.kill()
			if got := s.ended(id); !strings.Contains(got, tt.answer) || strings.Contains(got, `"isError":true`) {
				t.Error(got)
			}
			if n := runs(f); n != tt.runs {
				t.Errorf("the command ran %d times", n)
			}
			thread, _, _ := strings.Cut(id, ".")
			show := func(s *mortal) string {
				v, _ := s.call("tools/call", fmt.Sprintf(`"name":"codex-show","arguments":{"threadId":%q,"what":"transcript"},%s`, thread, waitingClient))
				return string(v.Content)
			}
			if text := show(s); !strings.Contains(text, "the server ended during this turn") {
				t.Error(text)
			}
			s.end()
			s = k.start()
			defer s.kill()
			if text := show(s); !strings.Contains(text, "The server that ran your last turn has ended") {
				t.Error(text)
			}
		})
	}
}

// TestEndToEndContinuedByOne starts several servers after a kill, whose clients ask for the task at
// once. One server continues it, and the command runs once.
func TestEndToEndContinuedByOne(t *testing.T) {
	k, f, id := cutWork(t, "please ask", "")
	servers := make([]*mortal, 4)
	for i := range servers {
		servers[i] = k.start()
		defer servers[i].kill()
	}
	own := 0
	for ended := false; !ended; <-time.After(2 * time.Millisecond) {
		for _, s := range servers {
			v, ok := s.call("tasks/get", fmt.Sprintf(`"taskId":%q,%s`, id, pollingClient))
			if !ok {
				t.Fatal("a server has ended")
			}
			if ended = v.Status == "completed"; ended {
				if !strings.Contains(string(v.Result), "done: ") {
					t.Errorf("%s", v.Result)
				}
				break
			}
			if len(v.InputRequests) > 0 {
				own++
				s.poll(id)
			}
		}
	}
	if n := runs(f); n != 1 || own == 0 {
		t.Errorf("the command ran %d times; %d polls had the question", n, own)
	}
}

// TestEndToEndContinuedInBackground kills a server while a turn runs in the background. The next
// one continues it after any call, and codex-wait has the result.
func TestEndToEndContinuedInBackground(t *testing.T) {
	for _, prompt := range []string{"please wait", "please run"} {
		t.Run(prompt, func(t *testing.T) {
			t.Parallel()
			k, f, id := cutWork(t, prompt, `,"background":true`)
			s := k.start()
			defer s.kill()
			for {
				v, ok := s.call("tools/call", fmt.Sprintf(`"name":"codex-wait","arguments":{"threadIds":[%q],"seconds":1},%s`, id, waitingClient))
				if !ok {
					t.Fatal("the server has ended")
				}
				if text := string(v.Content); strings.Contains(text, "(completed)") {
					if prompt == "please wait" && !strings.Contains(text, "waited") || prompt == "please run" && !strings.Contains(text, "may have run or not") {
						t.Error(text)
					}
					break
				}
				<-time.After(10 * time.Millisecond)
			}
			s.end()
			if left, _ := filepath.Glob(filepath.Join(f.home, "codex-mcp", "tasks", "task-*")); len(left) > 0 {
				t.Errorf("files are left: %v", left)
			}
		})
	}
}

// TestEndToEndNotContinued starts servers after a kill that do not continue the task: one that is
// configured so, and one without the provider's key. They say what happened, and the next server
// continues the task.
func TestEndToEndNotContinued(t *testing.T) {
	for name, args := range map[string][]string{
		"calls.resume = false": {"-c", "calls.resume=false"},
		"no key":               {"-c", `model_providers.mock.env_key="ABSENT_KEY"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k, f, id := cutWork(t, "please ask", "")
			s := k.start(args...)
			if got := s.ended(id); !strings.Contains(got, "The server ended while this task ran") {
				t.Error(got)
			}
			s.end()
			s = k.start()
			defer s.kill()
			if got := s.ended(id); !strings.Contains(got, "done: ") || runs(f) != 1 {
				t.Error(got)
			}
		})
	}
}

// TestEndToEndContinuedNarrower kills a server that allowed its call looser policies than the
// configuration, and edits the conversation's file so that it allows everything. The turn
// continues under the configuration's policies: its command is asked about.
func TestEndToEndContinuedNarrower(t *testing.T) {
	k, f, id := cutWork(t, "please wait", `,"approval-policy":"never"`)
	thread, _, _ := strings.Cut(id, ".")
	paths, _ := filepath.Glob(filepath.Join(f.home, "sessions", "*", "*", "*", "rollout-*"+thread+".jsonl"))
	text, err := os.ReadFile(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	loose := strings.ReplaceAll(string(text), "please wait", "please ask")
	if !strings.Contains(loose, `"approval_policy":"never"`) {
		t.Fatal(loose)
	}
	if err := os.WriteFile(paths[0], []byte(loose), 0o600); err != nil {
		t.Fatal(err)
	}
	configureCut(t, f, "ask")
	s := k.start()
	defer s.kill()
	for {
		v, ok := s.call("tasks/get", fmt.Sprintf(`"taskId":%q,%s`, id, pollingClient))
		if !ok || v.Status == "completed" || runs(f) > 0 {
			t.Fatalf("%+v", v)
		}
		if len(v.InputRequests) > 0 {
			if _, first := v.InputRequests["q1"]; first {
				t.Error("the question has a key of the process before")
			}
			break
		}
		<-time.After(2 * time.Millisecond)
	}
	if got := s.ended(id); !strings.Contains(got, "done: ") || runs(f) != 1 {
		t.Error(got)
	}
}
