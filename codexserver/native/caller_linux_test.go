package native_test

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/approve"
	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/internal/decide/rulefile"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// hostileEngine is the native engine for hostile callers.
var hostileEngine = servertest.HostileEngine{Kind: servertest.Native, Model: hostileModel, Open: func(t *testing.T, y *servertest.Yard) func(time.Duration, setting.FullAccess) servertest.Server {
	e := openYard(t, y)
	return func(limit time.Duration, access setting.FullAccess) servertest.Server {
		return codexserver.New(e, &codexserver.Options{
			Folder: y.Start, Home: y.Codex, Tasks: codexserver.TaskOptions{Mode: "never"}, Approvals: elicit.Options{Timeout: limit},
			Calls: codexserver.CallOptions{FullAccess: access},
		})
	}
}}

func hostileModel(t testing.TB, next func([]byte) servertest.Step) string {
	p := providertest.New(providertest.Turn{Repeat: true, Func: func(r providertest.Request) providertest.Turn {
		step := next(r.Body)
		call := map[string]any{"command": []string{"bash", "-c", step.Line}}
		switch {
		case step.Fail:
			return providertest.Turn{Status: 400, Body: `{"error":{"message":"no such luck"}}`}
		case step.ID == "":
			return providertest.Say(cmp.Or(step.Say, "done"))
		case step.Patch != "":
			call["command"] = []string{"apply_patch", step.Patch}
		case step.Outside:
			call["with_escalated_permissions"], call["justification"] = true, "to write"
		}
		return providertest.Call(providertest.Tool(step.ID, "shell", call))
	}})
	t.Cleanup(p.Close)
	return p.BaseURL()
}

func openYard(t *testing.T, y *servertest.Yard) *native.Engine {
	t.Helper()
	return open(t, native.Options{CodexHome: y.Codex, Environ: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + y.Home, "TMPDIR=" + os.TempDir(), "SHELL=/bin/bash"}})
}

// TestHostileArguments checks that the table has each argument of codex.
func TestHostileArguments(t *testing.T) {
	c := servertest.Connect(t, hostileEngine.Open(t, servertest.NewYards(t).New(t, servertest.Confined, hostileModel))(0, ""), nil)
	var list struct {
		Tools []struct {
			Name        string
			InputSchema struct{ Properties map[string]any }
		}
	}
	parse(t, []byte(c.Ask(t, "tools/list", `{}`)), &list)
	n := 0
	for _, tool := range list.Tools {
		for name := range tool.InputSchema.Properties {
			if tool.Name == "codex" && name != "prompt" {
				if n++; !servertest.HostileArgument(name) {
					t.Errorf("no hostile call has the argument %s", name)
				}
			}
		}
	}
	if n == 0 {
		t.Error("codex has no arguments")
	}
}

// TestHostileCaller plays the table of hostile calls, whole at night.
func TestHostileCaller(t *testing.T) {
	boxtest.Need(t)
	share := 4
	if *whole {
		share = 1
	}
	hostileEngine.TestHostileCalls(t, share)
}

func TestAskedCaller(t *testing.T) {
	boxtest.Need(t)
	hostileEngine.TestAskedCalls(t, 1)
}

// TestHostileBackground begins a turn that nobody waits for: its question stays open until a codex-wait
// has it. The table of hostile calls has those that decline.
func TestHostileBackground(t *testing.T) {
	boxtest.Need(t)
	y := servertest.NewYards(t).New(t, servertest.Confined, hostileModel)
	c, id := servertest.Dial(t, hostileEngine.Open(t, y)(time.Minute, ""), nil), y.ID()
	client := servertest.HostileClient{Answer: servertest.After(400*time.Millisecond, servertest.Accept)}
	begun := client.Modern(t.Context(), c, "codex", `{"prompt":"`+id+`","sandbox":"danger-full-access","approval-policy":"never","background":true}`)
	if got := y.Written(id); len(got) > 0 || y.Requests(id) > 0 {
		t.Errorf("written before the answer: %q\n%s", got, begun)
	}
	result := client.Modern(t.Context(), c, "codex-wait", `{"threadIds":["`+servertest.ThreadOf(t, begun)+`"],"seconds":20}`)
	if got := y.Written(id); len(got) == 0 {
		t.Errorf("nothing was written after the approval:\n%s", result)
	}
}

// TestTrustedCaller checks that the word for all other keys of calls is none for more access.
func TestTrustedCaller(t *testing.T) {
	boxtest.Need(t)
	for _, arguments := range []string{
		`"config":{"sandbox_mode":"danger-full-access","approval_policy":"never"}`,
		`"config":{"profile":"wide"}`,
		`"config":{"profiles":{"mine":{"sandbox_mode":"danger-full-access","approval_policy":"never"}},"profile":"mine"}`,
		`"config":{"model_providers.mock.base_url":"http://127.0.0.1:1/v1"}`,
	} {
		t.Run(arguments, func(t *testing.T) {
			y := servertest.NewYards(t).New(t, servertest.Confined, hostileModel)
			s := codexserver.New(openYard(t, y), &codexserver.Options{Folder: y.Start, Calls: codexserver.CallOptions{TrustedCalls: true}})
			id := y.ID()
			result := servertest.Connect(t, s, nil).CallTool(t, "codex", `{"prompt":"`+id+`",`+arguments+`}`)
			if got := y.Written(id); len(got) > 0 || !strings.Contains(result, "calls.full_access") {
				t.Errorf("written: %q\n%s", got, result)
			}
		})
	}
}

// TestTrustedServers has a trusted call name a program and ask for more access. The program starts after the answer, and
// its tools are there in the same turn.
func TestTrustedServers(t *testing.T) {
	for answer, want := range map[string]bool{servertest.Accept: true, servertest.Decline: false} {
		t.Run(answer, func(t *testing.T) {
			mark := filepath.Join(t.TempDir(), "started")
			started := func() bool { _, err := os.Stat(mark); return err == nil }
			b := setup(t, "", native.Limits{}, providertest.Call(providertest.ToolCall{ID: "c1", Name: "toy__echo", Arguments: `{"x":"1"}`}), providertest.Say("ok"))
			asked := 0
			ask := servertest.HostileClient{Answer: func(context.Context) (string, error) {
				time.Sleep(approve.Instant + 100*time.Millisecond) // a program that starts has the time for it
				if asked++; started() {
					t.Error("the program was started before the answer")
				}
				return answer, nil
			}}
			s := codexserver.New(b.engine, &codexserver.Options{Folder: b.cwd, Tasks: codexserver.TaskOptions{Mode: "never"}, Calls: codexserver.CallOptions{TrustedCalls: true}})
			toy, err := json.Marshal(map[string]any{"mcp_servers": map[string]any{"toy": map[string]any{
				"command": "/bin/sh", "args": []string{"-c", "touch " + mark + "; exec '" + os.Args[0] + "'"}, "env": map[string]string{"PLAY": "mcp server"},
			}}})
			must.OK(t, err)
			result := ask.Modern(t.Context(), servertest.Dial(t, s, nil), "codex", `{"prompt":"use it","approval-policy":"never","config":`+string(toy)+`}`)
			must.Equal(t, "questions", 1, asked)
			must.Equal(t, "the program was started: "+result, want, started())
			requests := b.provider.Requests()
			if want && (len(requests) != 2 || !strings.Contains(fmt.Sprint(requests[1].ToolOutputs()), "echo:1")) || !want && len(requests) > 0 {
				t.Errorf("%d requests to the model\n%s", len(requests), result)
			}
		})
	}
}

var update = flag.Bool("update", false, "record the questions of the tasks")

// person is a host that approves each question, or accepts each rule that one proposes.
type person struct {
	*host
	t       *testing.T
	always  bool
	kept    *rulefile.Store
	folders servertest.TaskFolders
	asked   []string
	rules   int // accepted
}

// answer answers a question, unless a rule does.
func (p *person) answer(ctx context.Context, s approval.Subject, what string, rule rulefile.Rule, offered bool) elicit.Outcome {
	d := approve.New(&approve.Options{Kept: p.kept}, nil).Decide(ctx, &approval.Request{Subject: s, Question: &elicit.Question{}}, false)
	if d.By == approval.ByRule {
		return d.Outcome
	}
	if offered {
		what += " ─▶ " + rule.Words()
	}
	p.asked = append(p.asked, p.folders.Show(what))
	if !p.always || !offered {
		return elicit.Outcome{Decision: elicit.Approved}
	}
	kept, err := p.kept.Add(rulefile.Kept{Rule: rule, By: "client"})
	if err != nil {
		p.t.Error(err)
	}
	if p.rules++; kept.Number != p.rules {
		p.t.Errorf("asked about %s, which the accepted rule %d covers", what, kept.Number)
	}
	return elicit.Outcome{Decision: elicit.Approved, Confined: true}
}

func (p *person) Ask(ctx context.Context, s approval.Subject) elicit.Outcome {
	switch s := s.(type) {
	case approval.Command:
		rule, err := rulefile.Offer(rulefile.Action(s.Lasting()))
		what := s.Command[len(s.Command)-1]
		if !s.Confinable {
			what += " (outside)"
		}
		return p.answer(ctx, s, what, rule, err == nil)
	case approval.Patch:
		what := "patch of " + strings.Join(slices.Sorted(maps.Keys(s.Changes)), ", ")
		return p.answer(ctx, s, what, rulefile.Rule{}, false)
	}
	return p.host.Ask(ctx, s)
}

// TestTasks plays the recorded turns of coding tasks: with a person who approves each question, and with one who
// accepts each rule. No question is asked that an accepted rule covers. Unless whole, it plays a quarter of the tasks.
func TestTasks(t *testing.T) {
	boxtest.Need(t)
	// A folder that holds the home of this process is not writable as a whole. If /tmp were one,
	// commands would ask to leave the sandbox for a cache there.
	t.Setenv("HOME", boxtest.Outside(t))
	tasks := servertest.Tasks(t)
	asked := make([]servertest.Asked, len(tasks))
	t.Run("each", func(t *testing.T) {
		for i := range tasks {
			if !*update && !*whole && (i%4 < 2 || !servertest.Plays(i, false)) {
				continue
			}
			t.Run(tasks[i].Name, func(t *testing.T) {
				t.Parallel()
				once, always := playTask(t, &tasks[i], false), playTask(t, &tasks[i], true)
				asked[i] = servertest.Asked{Once: once.asked, Always: always.asked}
			})
		}
	})
	if !t.Failed() {
		servertest.RecordTasks(t, "native", asked, *update)
	}
}

func playTask(t *testing.T, task *servertest.Task, always bool) *person {
	t.Helper()
	var turns []providertest.Turn
	for i, step := range task.Steps {
		argv := []string{"apply_patch", step}
		line, outside := strings.CutPrefix(step, "outside: ")
		if !strings.HasPrefix(step, "*** Begin Patch") {
			argv = []string{"bash", "-lc", line}
		}
		call := map[string]any{"command": argv}
		if outside {
			call["with_escalated_permissions"] = true
		}
		turns = append(turns, providertest.Call(providertest.Tool(fmt.Sprint("c", i), "shell", call)))
	}
	provider := providertest.New(append(turns, providertest.Say("ok"))...)
	t.Cleanup(provider.Close)
	folders := servertest.NewTaskFolders(t)
	task.Make(t, folders, servertest.CodexConfig(provider.BaseURL(), ""))
	e := open(t, native.Options{CodexHome: folders.Codex, Environ: []string{
		"PATH=" + folders.Bin + ":/usr/bin:/bin", "HOME=" + folders.Home, "SHELL=/bin/bash", "TMPDIR=" + os.TempDir(),
	}})
	p := &person{host: &host{}, t: t, folders: folders, always: always, kept: rulefile.New(folders.Codex, &rulefile.Options{Writable: e.Traits().Reach})}
	conv, err := e.Start(t.Context(), protocol.Config{
		Cwd: folders.Repo, ApprovalPolicy: protocol.ApprovalPolicy(task.Policy), Sandbox: protocol.SandboxMode(task.Sandbox),
	}, p)
	must.OK(t, err)
	defer conv.Close()
	turn(t, conv, say("go"))
	must.Equal(t, "requests", len(turns)+1, len(provider.Requests()))
	return p
}
