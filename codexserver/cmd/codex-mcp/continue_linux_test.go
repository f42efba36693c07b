package main

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestEndToEndContinued ends a server in each state of a task, or of a turn in the background. The next one continues it when
// the client asks for it, unless it may not, and no command runs twice.
func TestEndToEndContinued(t *testing.T) {
	t.Parallel()
	term := func(s *mortal) { _ = s.p.cmd.Process.Signal(syscall.SIGTERM) }
	for name, tt := range map[string]struct {
		prompt, arguments string                                   // of the call
		end               func(s *mortal)                          // default: kills it
		before            func(t *testing.T, k *killer, id string) // the next server
		args              []string                                 // of the next server
		want              string                                   // in the result
		runs              int
	}{
		"waits for the model":                     {prompt: "please wait", want: "waited"},
		"runs a command":                          {prompt: "please run", want: "It may have run or not, and was not run again."},
		"asks":                                    {prompt: "please ask", want: "It may have run or not, and was not run again.", runs: 1},
		"waits, in the background":                {prompt: "please wait", arguments: `,"background":true`, want: "waited"},
		"asks, ended orderly":                     {prompt: "please ask", end: term, want: `"isError":true`},
		"asks, by calls.resume":                   {prompt: "please ask", args: []string{"-c", "calls.resume=false"}, want: "The server ended while this task ran"},
		"asks, without the key":                   {prompt: "please ask", args: []string{"-c", `model_providers.mock.env_key="ABSENT_KEY"`}, want: "The server ended while this task ran"},
		"checks":                                  {prompt: "please check", arguments: checked(`1) sleep 600;;`), want: `"exitCode":0,"passed":true,"tries":1`},
		"checks, in the background":               {prompt: "please check", arguments: checked(`1) sleep 600;;`) + `,"background":true`, want: "The check "},
		"checks its second try":                   {prompt: "please check", arguments: checked(`1) exit 1;; 2) sleep 600;;`), want: `"exitCode":0,"passed":true,"tries":2`},
		"writes its answer's form":                {prompt: "please form", arguments: formed, want: `"output":{"zebra":true}`, runs: 1},
		"writes its form after a check":           {prompt: "please form", arguments: formed + `,"check":"test -e ran"`, want: `"output":{"zebra":true}`, runs: 1},
		"writes its answer's form, in background": {prompt: "please form", arguments: formed + `,"background":true`, want: `(completed): {\"zebra\":true}`, runs: 1},
		"sets up":                                 {prompt: "please set up", arguments: setUp, want: `"content":"set up`},
		"sets up, in the background":              {prompt: "please set up", arguments: setUp + `,"background":true`, want: "(completed): set up"},
		"waits, set up":                           {prompt: "please wait", arguments: setUp, want: "waited"},
		"waits in a worktree":                     {prompt: "please wait", arguments: inWorktree, before: leave, want: `"commit":"`},
		"waits in a worktree, in the background":  {prompt: "please wait", arguments: inWorktree + `,"background":true`, before: leave, want: "The work is committed on codex/"},
		"three attempts, of which one waits":      {prompt: "please wait", arguments: inWorktree + attempts, want: `"attempts":[{"branch":"codex/`},
		"three attempts, in the background":       {prompt: "please wait", arguments: inWorktree + attempts + `,"background":true`, want: "of 3. Attempt "},
		"asks, the file is edited":                {prompt: "please wait", arguments: `,"approval-policy":"never"`, before: loosen, want: "done: ", runs: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k, id := cutWork(t, tt.prompt, tt.arguments, tt.end)
			if tt.before != nil {
				tt.before(t, k, id)
			}
			s := k.start(tt.args...)
			defer s.kill()
			if got := s.told(id); !strings.Contains(got, tt.want) {
				t.Error(got)
			}
			s.end()
			ran, _ := os.ReadFile(filepath.Join(k.f.cwd, "ran"))
			must.Equal(t, "runs of the command", tt.runs, strings.Count(string(ran), "\n"))
			setUps := 0
			switch {
			case tt.prompt == "please set up":
				setUps = 2
			case strings.HasPrefix(tt.arguments, setUp):
				setUps = 1
			}
			set, _ := os.ReadFile(filepath.Join(k.f.cwd, "set"))
			must.Equal(t, "runs of the set-up", setUps, strings.Count(string(set), "\n"))
			if left := k.left(); len(left) > 0 {
				t.Errorf("left: %q", left)
			}
			if strings.HasPrefix(tt.arguments, inWorktree) && tt.before != nil {
				must.Equal(t, "the commits", "please wait\n\nA\tleft", servertest.Git(t, k.f.cwd, "log", "--format=%s", "--name-status", "HEAD..", "--branches=codex/*"))
			}
		})
	}
}

// inWorktree are arguments of a call in a worktree.
const inWorktree = `,"worktree":true`

// attempts are arguments of a call that makes three.
const attempts = `,"attempts":3`

// setUp are arguments with a worktree that is set up.
const setUp = inWorktree + `,"approval-policy":"never","sandbox":"danger-full-access"`

// configureSetUp configures a set-up of worktrees that counts its runs in a file. The first one waits if another file is there.
func configureSetUp(t *testing.T, f folders) {
	t.Helper()
	configureCut(t, f, "allow")
	file := filepath.Join(f.home, "codex-mcp.toml")
	text := string(must.Get(os.ReadFile(file))(t))
	write(t, file, text+"setup = \"cd '"+f.cwd+"'; echo >>set; if [ -e blocks ] && [ $(wc -l <set) = 1 ]; then sleep 600; fi\"\n")
}

// leave puts a file where the turn of a killed server has worked.
func leave(t *testing.T, k *killer, _ string) {
	trees := must.Get(filepath.Glob(filepath.Join(k.f.home, "codex-mcp-worktrees", "*", ".git")))(t)
	write(t, filepath.Join(filepath.Dir(trees[0]), "left"), "work\n")
}

// formed are arguments with a schema.
const formed = `,"approval-policy":"never","sandbox":"danger-full-access","output-schema":` + servertest.FormSchema

// checked returns arguments with a check that counts its runs in a file, and acts by the number.
func checked(acts string) string {
	return fmt.Sprintf(`,"approval-policy":"never","sandbox":"danger-full-access","check":%q`, "echo >>checked; case $(wc -l <checked) in "+acts+" esac")
}

// loosen edits the file of a conversation, whose call was allowed looser policies than the configuration now allows, so that
// its turn runs a command. The command is asked about, under a key that no question of the process before had.
func loosen(t *testing.T, k *killer, id string) {
	path := k.rollouts(threadOf(id))[0]
	text, err := os.ReadFile(path)
	loose := strings.ReplaceAll(string(text), "please wait", "please ask")
	if err != nil || !strings.Contains(loose, `"approval_policy":"never"`) {
		t.Fatal(loose, err)
	}
	write(t, path, loose)
	configureCut(t, k.f, "ask")
	s := k.start()
	defer s.kill()
	for {
		v, ok := s.call("tasks/get", fmt.Sprintf(`"taskId":%q,%s`, id, pollingClient))
		if _, err := os.Stat(filepath.Join(k.f.cwd, "ran")); !ok || v.Status == "completed" || err == nil {
			t.Fatalf("it was not asked about: %+v", v)
		}
		if len(v.InputRequests) > 0 {
			if _, first := v.InputRequests["q1"]; first {
				t.Error("the question has a key of the process before")
			}
			return
		}
		<-time.After(2 * time.Millisecond)
	}
}

// cutWork starts a server whose task or turn in the background waits in a state, and ends it. The arguments are further
// members of the call's.
func cutWork(t *testing.T, prompt, arguments string, end func(s *mortal)) (k *killer, id string) {
	t.Helper()
	f := newFolders(t)
	held := make(chan struct{})
	model := providertest.New(providertest.Turn{Repeat: true, Func: func(r providertest.Request) providertest.Turn {
		outputs, asks := r.ToolOutputs(), strings.Contains(string(r.Body), "please ask")
		switch n := len(outputs); {
		case servertest.Holds(r.Body):
			form := providertest.Say(servertest.Formed)
			select {
			case <-held: // the second request
			default:
				close(held)
				form.Wait = make(chan struct{})
			}
			return form
		case n > 0 && asks && strings.HasPrefix(outputs[n-1].Output, "aborted"): // the call that was asked about, which it makes again
		case n > 0:
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
		case strings.Contains(string(r.Body), "please check"):
			return providertest.Say("checked")
		case strings.Contains(string(r.Body), "please set up"):
			return providertest.Say("set up")
		case strings.Contains(string(r.Body), "please run"):
			return providertest.Call(providertest.Shell("c1", "sleep", "600"))
		}
		return providertest.Call(providertest.Shell(fmt.Sprint("c", len(outputs)), "sh", "-c", fmt.Sprintf("echo ran >> %q", filepath.Join(f.cwd, "ran"))))
	}})
	t.Cleanup(model.Close)
	writeConfig(t, f.home, fmt.Sprintf("approval_policy = \"untrusted\"\n"+configOf, model.BaseURL()))
	if configureCut(t, f, "allow"); strings.HasPrefix(arguments, setUp) {
		configureSetUp(t, f)
	}
	if prompt == "please set up" {
		write(t, filepath.Join(f.cwd, "blocks"), "")
	}
	if strings.HasPrefix(arguments, inWorktree) {
		servertest.Git(t, f.cwd, "init", "-q")
		servertest.Git(t, f.cwd, "commit", "-q", "--allow-empty", "-m", "first")
	}
	k = &killer{t: t, f: f, mark: "KILL_TEST=" + rand.Text()}
	t.Cleanup(func() { k.sweep() })
	s := k.start()
	answer, _ := s.call("tools/call", fmt.Sprintf(`"name":"codex","arguments":{"prompt":%q%s},%s`, prompt, arguments, pollingClient))
	if id = answer.TaskID; id == "" {
		id = answer.Structured.ThreadID
	}
	if id == "" {
		t.Fatal("the call has neither a task nor a thread")
	}
	mark := `"turn_context"`
	switch prompt {
	case "please wait":
		<-held
		until(t, "the file of the task has the set-up", func() bool { // which is written a moment later
			files := must.Get(filepath.Glob(filepath.Join(f.home, "codex-mcp", "tasks", "*.json")))(t)
			return len(files) > 0 && !slices.ContainsFunc(files, func(path string) bool {
				text, err := os.ReadFile(path)
				return err != nil || strings.Contains(string(text), `"setup":{"line"`)
			})
		})
	case "please form":
		<-held
		mark = "output_schema"
	case "please run":
		mark = `"function_call"`
	case "please check":
		until(t, "the check does not wait", func() bool {
			text, _ := os.ReadFile(filepath.Join(f.cwd, "checked"))
			return len(text) == strings.Count(arguments, ";;")
		})
	case "please set up":
		until(t, "the set-up does not wait", func() bool {
			text, _ := os.ReadFile(filepath.Join(f.cwd, "set"))
			return len(text) == 1
		})
	case "please ask":
		for v, ok := (taskView{}), true; ok && len(v.InputRequests) == 0; <-time.After(time.Millisecond) {
			v, ok = s.call("tasks/get", fmt.Sprintf(`"taskId":%q,%s`, id, pollingClient))
		}
	}
	until(t, "the file of the conversation does not have it", func() bool {
		for _, path := range k.rollouts(threadOf(id)) {
			if text, err := os.ReadFile(path); err == nil && strings.Contains(string(text), mark) {
				return true
			}
		}
		return false
	})
	if end == nil {
		end = (*mortal).kill
	}
	end(s)
	s.p.wait()
	return k, id
}

// configureCut writes the settings of a server, with a value of calls.full_access.
func configureCut(t *testing.T, f folders, access string) {
	t.Helper()
	settings := "[approvals]\nallow = [{command = [\"sleep\"], outside = true}]\n[calls]\nfull_access = \"" + access + "\"\n"
	write(t, filepath.Join(f.home, "codex-mcp.toml"), settings)
}

// threadOf returns the thread of a task, or of a turn in the background.
func threadOf(id string) string {
	thread, _, _ := strings.Cut(id, ".")
	return thread
}

// told waits for the end of a task, or of a turn in the background, and returns what the client gets.
func (s *mortal) told(id string) string {
	s.t.Helper()
	for {
		if threadOf(id) == id {
			v, ok := s.call("tools/call", fmt.Sprintf(`"name":"codex-wait","arguments":{"threadIds":[%q],"seconds":1},%s`, id, waitingClient))
			if text := string(v.Content); !ok || strings.Contains(text, "(completed)") {
				return text
			}
			continue
		}
		v, ok := s.poll(id)
		if !ok || v.Status == "completed" {
			return string(v.Result)
		}
		<-time.After(2 * time.Millisecond)
	}
}
