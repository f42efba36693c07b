package native_test

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/approve"
	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/internal/decide/rulefile"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

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
func (p *person) answer(ctx context.Context, m protocol.EventMsg, what string, rule rulefile.Rule, offered bool) elicit.Outcome {
	d := approve.New(&approve.Options{Kept: p.kept}, nil).Decide(ctx, &approval.Request{Event: m, Question: &elicit.Question{}}, false)
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

func (p *person) ApproveExec(ctx context.Context, r protocol.ExecApprovalRequest) elicit.Outcome {
	rule, err := rulefile.Offer(&r)
	what := r.Command[len(r.Command)-1]
	if !r.Confinable {
		what += " (outside)"
	}
	return p.answer(ctx, r, what, rule, err == nil)
}

func (p *person) ApprovePatch(ctx context.Context, r protocol.PatchApprovalRequest) elicit.Outcome {
	return p.answer(ctx, r, "patch of "+strings.Join(slices.Sorted(maps.Keys(r.Changes)), ", "), rulefile.Rule{}, false)
}

// TestTasks plays the recorded turns of coding tasks: with a person who approves each
// question, and with one who accepts each rule. No question is asked that an accepted rule
// covers. Unless whole, it plays a quarter of the tasks.
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
	if err != nil {
		t.Fatal(err)
	}
	defer conv.Close()
	turn(t, conv, say("go"))
	diff(t, "requests", len(turns)+1, len(provider.Requests()))
	return p
}
