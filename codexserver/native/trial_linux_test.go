package native_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/audit"
	"github.com/codexmcp/codexmcp/codexserver/internal/audit/trial"
	"github.com/codexmcp/codexmcp/codexserver/internal/board"
	"github.com/codexmcp/codexmcp/codexserver/internal/policy"
	"github.com/codexmcp/codexmcp/codexserver/internal/sandbox"
	"github.com/codexmcp/codexmcp/codexserver/internal/sandbox/sandboxtest"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/internal/turnlog"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// auditor is a host with a record, and with a person who approves each question.
type auditor struct {
	*host
	board  *board.Board
	thread approval.Thread
}

func (a *auditor) Emit(m protocol.EventMsg) {
	line, files := turnlog.EffectOf(m)
	a.board.Note(a.thread, "turn", line, files)
	a.host.Emit(m)
}

func (a *auditor) EmitAs(_ string, m protocol.EventMsg) { a.Emit(m) }

func (a *auditor) ApproveExec(ctx context.Context, r protocol.ExecApprovalRequest) elicit.Outcome {
	return a.board.Decide(ctx, &approval.Request{Thread: a.thread, Event: r, Question: &elicit.Question{}}).Outcome
}

// variant is a configuration of rules and a policy.
type variant struct {
	name    string
	rules   approval.Rules
	policy  protocol.ApprovalPolicy
	sandbox protocol.SandboxMode
}

// live plays a task, and returns its record.
func live(t *testing.T, task *servertest.Task, with variant) (paths []string, env []string, writable []string) {
	t.Helper()
	var turns []providertest.Turn
	for i, step := range task.Steps {
		line, outside := strings.CutPrefix(step, "outside: ")
		argv := []string{"bash", "-lc", line}
		if strings.HasPrefix(step, "*** Begin Patch") {
			argv = []string{"apply_patch", step}
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
	env = []string{"PATH=" + folders.Bin + ":/usr/bin:/bin", "HOME=" + folders.Home, "SHELL=/bin/bash", "TMPDIR=" + os.TempDir()}
	e, err := native.New(&native.Options{CodexHome: folders.Codex, Environ: env, Ask: with.rules.Ask})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	path := filepath.Join(t.TempDir(), "log")
	record, err := audit.Open(path, 0)
	if err != nil {
		t.Fatal(err)
	}
	a := &auditor{host: &host{}, board: board.New(&board.Options{Rules: with.rules, Record: board.NewRecord(record)}, nil), thread: approval.Thread{ID: "t"}}
	defer a.board.Attach(board.NewPlace(approval.ByDesk, func(context.Context, *approval.Request) (elicit.Outcome, error) {
		return elicit.Outcome{Decision: elicit.Approved}, nil
	}))()
	cfg := protocol.Config{Cwd: folders.Repo, ApprovalPolicy: protocol.ApprovalPolicy(task.Policy), Sandbox: protocol.SandboxMode(task.Sandbox)}
	if with.policy != "" {
		cfg.ApprovalPolicy = with.policy
	}
	if with.sandbox != "" {
		cfg.Sandbox = with.sandbox
	}
	conv, err := e.Start(t.Context(), cfg, a)
	if err != nil {
		t.Fatal(err)
	}
	defer conv.Close()
	turn(t, conv, say("go"))
	a.board.EndTurn(a.thread)
	if err := record.Close(); err != nil {
		t.Fatal(err)
	}
	if r, err := audit.Verify([]string{path}, nil); err != nil || len(r.Faults) > 0 || len(r.Unfinished) > 0 {
		t.Errorf("%s, %s: %+v, %v", task.Name, with.name, r, err)
	}
	effects := map[string]int{} // every one has one beginning in the record, and the record no other
	for _, m := range a.events {
		switch m := m.(type) {
		case protocol.ExecCommandBegin:
			effects[m.CallID]++
		case protocol.PatchApplyBegin:
			effects[m.CallID]++
		}
	}
	if err := audit.Read([]string{path}, func(l audit.Line) error {
		if l.Effect == audit.Begins {
			effects[l.Call]--
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for call, n := range effects {
		if n != 0 {
			t.Errorf("%s, %s: %s has %d effects more than records", task.Name, with.name, call, n)
		}
	}
	return []string{path}, env, []string{folders.Repo, folders.Cache, os.TempDir()}
}

// TestTrial plays the recorded tasks with other rules and policies, stricter and laxer ones. What a trial says about
// the record of each is what happened with the others, but where it is not sure.
func TestTrial(t *testing.T) {
	sandboxtest.NeedTier(t, sandbox.TierThread)
	t.Setenv("HOME", sandboxtest.Outside(t))
	allow := func(outside bool, commands ...string) (rules []approval.Rule) {
		for _, c := range commands {
			rules = append(rules, approval.Rule{Command: strings.Fields(c), Outside: outside})
		}
		return rules
	}
	all := []variant{
		{name: "as it was"},
		{name: "lax", rules: approval.Rules{Allow: allow(true, "go", "git add", "git commit", "npm", "make", "python3", "cargo", "mkdir")}},
		{name: "in the sandbox", rules: approval.Rules{Allow: allow(false, "go", "git", "npm", "make", "python3", "cargo")}},
		{name: "strict", rules: approval.Rules{Deny: [][]string{{"git", "push"}, {"rm"}, {"npm"}}, Ask: [][]string{{"go"}, {"ls"}, {"git", "commit"}}, Allow: allow(true, "git")}},
		{name: "on-request", policy: protocol.ApprovalOnRequest},
		{name: "never", policy: protocol.ApprovalNever},
		{name: "untrusted", policy: protocol.ApprovalUntrusted},
		{name: "full access", policy: protocol.ApprovalOnRequest, sandbox: protocol.SandboxDangerFullAccess},
	}
	tasks := servertest.Tasks(t)
	for i := range tasks {
		if !servertest.Plays(i, *whole) {
			continue
		}
		task, all := &tasks[i], all
		if !*whole { // as it was, and two others in turns
			all = []variant{all[0], all[1+i/2%7], all[1+(i/2+3)%7]}
		}
		t.Run(task.Name, func(t *testing.T) {
			t.Parallel()
			records, fates := make([][]string, len(all)), make([]map[string]trial.Fate, len(all))
			var envs, roots [][]string
			for n, with := range all {
				paths, env, writable := live(t, task, with)
				records[n] = paths
				envs, roots = append(envs, env), append(roots, writable)
				var err error
				if fates[n], err = trial.Fates(paths); err != nil {
					t.Fatal(err)
				}
			}
			for from := range all {
				for to, with := range all {
					place := policy.Place{Env: envs[from], Roots: roots[from]}
					pol, mode := with.policy, with.sandbox
					if pol == "" {
						pol = protocol.ApprovalPolicy(task.Policy)
					}
					if mode == "" {
						mode = protocol.SandboxMode(task.Sandbox)
					}
					r, err := trial.Try(t.Context(), records[from], &trial.Options{Rules: with.rules, Policy: pol, Sandbox: mode, Look: func(q *protocol.ExecApprovalRequest) {
						place.Dir = q.Cwd
						q.Program, q.Replaceable = place.Replaceable(q.Command)
						q.Placed = true
					}})
					if err != nil {
						t.Fatal(err)
					}
					now := map[string]trial.Fate{}
					maps.Copy(now, fates[from])
					for _, c := range r.Changes {
						now[c.Thread+" "+c.Call] = c.Now
					}
					for call, fate := range fates[to] {
						if got := now[call]; got != fate && !r.Unsure[call] {
							i := slices.IndexFunc(r.Changes, func(c trial.Change) bool { return c.Thread+" "+c.Call == call })
							t.Errorf("from %s to %s: %s: the trial says that it %s (change %d), and it %s: %s", all[from].name, with.name, call, got, i, fate, task.Steps[strings.IndexByte("0123456789abcdefghijklmnopqrstuvwxyz", call[len(call)-1])%len(task.Steps)])
						}
					}
					if len(now) != len(fates[to]) {
						t.Errorf("from %s to %s: %d commands, want %d", all[from].name, with.name, len(now), len(fates[to]))
					}
				}
			}
		})
	}
}
