//go:build realcodex

package appserver_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/nightly"
)

// TestRealTasks plays the recorded turns of coding tasks, as TestTasks of the native engine does, with
// a person who approves each question. All tasks take half a minute, so without -update only some are
// played, and one by day.
func TestRealTasks(t *testing.T) {
	shared := servertest.NewTaskFolders(t)
	t.Setenv("HOME", shared.Home)
	t.Setenv("PATH", shared.Bin+":/usr/bin:/bin")
	tasks := servertest.Tasks(t)
	asked := make([]servertest.Asked, len(tasks))
	t.Run("each", func(t *testing.T) {
		for i := range tasks {
			if !*update && (i%8 != 0 || i > 0 && !nightly.Tests()) {
				continue
			}
			t.Run(tasks[i].Name, func(t *testing.T) {
				t.Parallel()
				asked[i] = playTask(t, &tasks[i])
			})
		}
	})
	if !t.Failed() {
		servertest.RecordTasks(t, "codex", asked, *update)
	}
}

func playTask(t *testing.T, task *servertest.Task) (asked servertest.Asked) {
	t.Helper()
	var turns []providertest.Turn
	for i, step := range task.Steps {
		line, outside := strings.CutPrefix(step, "outside: ")
		if strings.HasPrefix(step, "*** Begin Patch") {
			line = "apply_patch <<'EOF'\n" + step + "EOF\n"
		}
		call := map[string]any{"cmd": line}
		if outside {
			call["sandbox_permissions"], call["justification"] = "require_escalated", "the task needs it"
		}
		turns = append(turns, providertest.Call(providertest.Tool(fmt.Sprint("c", i), "exec_command", call)))
	}
	turns = append(turns, providertest.Say("ok"))
	provider := providertest.New(turns...)
	t.Cleanup(provider.Close)
	folders := servertest.NewTaskFolders(t)
	e, err := appserver.New(&appserver.Options{CodexHome: folders.Codex})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	task.Make(t, folders, servertest.CodexConfig(provider.BaseURL(), ""))
	approves := func(question string) elicit.Outcome {
		asked.Once = append(asked.Once, folders.Show(question))
		return elicit.Outcome{Decision: elicit.Approved}
	}
	h := &recorder{
		exec: func(_ context.Context, q protocol.ExecApprovalRequest) elicit.Outcome {
			return approves(q.Command[len(q.Command)-1])
		},
		patch: func(_ context.Context, q protocol.PatchApprovalRequest) elicit.Outcome {
			return approves("patch of " + strings.Join(slices.Sorted(maps.Keys(q.Changes)), ", "))
		},
	}
	conv, err := e.Start(t.Context(), protocol.Config{
		Cwd: folders.Repo, ApprovalPolicy: protocol.ApprovalPolicy(task.Policy), Sandbox: protocol.SandboxMode(task.Sandbox),
	}, h)
	if err != nil {
		t.Fatal(err)
	}
	if err := conv.Turn(t.Context(), text("go")); err != nil {
		t.Fatal(err)
	}
	if n := len(provider.Requests()); n != len(turns) {
		t.Errorf("%d requests, want %d", n, len(turns))
	}
	return asked
}
