//go:build realcodex

package appserver_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// unoffered is a log that keeps why the last question offered no rule of Codex.
type unoffered struct {
	slog.Handler
	reason string
}

func (u *unoffered) Enabled(context.Context, slog.Level) bool { return true }

func (u *unoffered) Handle(_ context.Context, r slog.Record) error {
	if r.Message == appserver.NoRule {
		r.Attrs(func(a slog.Attr) bool {
			if a.Key == "reason" {
				u.reason = a.Value.String()
			}
			return true
		})
	}
	return nil
}

// TestRealTasks plays the recorded turns of coding tasks, as TestTasks of the native engine
// does: with a person who approves each question, and with one who accepts each rule that Codex
// proposes and the question offers. Codex offers no accepted rule again. All tasks take a minute,
// so without -update only some are played.
func TestRealTasks(t *testing.T) {
	shared := servertest.NewTaskFolders(t)
	t.Setenv("HOME", shared.Home)
	t.Setenv("PATH", shared.Bin+":/usr/bin:/bin")
	tasks := servertest.Tasks(t)
	asked := make([]servertest.Asked, len(tasks))
	t.Run("each", func(t *testing.T) {
		for i := range tasks {
			if !*update && i%8 != 0 {
				continue
			}
			t.Run(tasks[i].Name, func(t *testing.T) {
				t.Parallel()
				asked[i] = playTask(t, &tasks[i])
			})
		}
	})
	if !can(t, readsAsk) {
		for i := range asked {
			if !*update && i%8 == 0 && len(asked[i].Once) == 0 {
				t.Errorf("%s: nothing was asked", tasks[i].Name)
			}
		}
		return // the questions are those of later versions
	}
	if !t.Failed() {
		servertest.RecordTasks(t, "codex", asked, *update)
	}
}

func playTask(t *testing.T, task *servertest.Task) (asked servertest.Asked) {
	t.Helper()
	var turns []providertest.Turn
	for range 2 {
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
	}
	provider := providertest.New(turns...)
	t.Cleanup(provider.Close)
	log := &unoffered{Handler: slog.DiscardHandler}
	home := servertest.NewTaskFolders(t)
	e, err := appserver.New(&appserver.Options{CodexHome: home.Codex, Logger: slog.New(log)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	var accepted []string
	for _, play := range []struct {
		folders servertest.TaskFolders
		always  bool
		asked   *[]string
	}{{home, false, &asked.Once}, {servertest.NewTaskFolders(t), true, &asked.Always}} {
		play.folders.Codex = home.Codex
		task.Make(t, play.folders, servertest.CodexConfig(provider.BaseURL(), ""))
		h := &recorder{
			exec: func(_ context.Context, q protocol.ExecApprovalRequest) elicit.Outcome {
				offered := q.Lasting
				if offered == "" {
					offered = "no rule: " + log.reason
				}
				*play.asked = append(*play.asked, play.folders.Show(q.Command[len(q.Command)-1]+" ─▶ "+offered))
				if !play.always || q.Lasting == "" {
					return elicit.Outcome{Decision: elicit.Approved}
				}
				_, rule, _ := strings.Cut(q.Lasting, "`")
				rule, _, _ = strings.Cut(rule, "`")
				rule = "`" + rule + " …`"
				if slices.Contains(accepted, rule) {
					t.Errorf("offered %s again", rule)
				}
				accepted = append(accepted, rule)
				return elicit.Outcome{Decision: elicit.ApprovedAlways}
			},
			patch: func(_ context.Context, q protocol.PatchApprovalRequest) elicit.Outcome {
				what := "patch of " + strings.Join(slices.Sorted(maps.Keys(q.Changes)), ", ")
				*play.asked = append(*play.asked, play.folders.Show(what+" ─▶ no rule: it proposes none for patches"))
				return elicit.Outcome{Decision: elicit.Approved}
			},
		}
		conv, err := e.Start(t.Context(), protocol.Config{
			Cwd: play.folders.Repo, ApprovalPolicy: protocol.ApprovalPolicy(task.Policy), Sandbox: protocol.SandboxMode(task.Sandbox),
		}, h)
		if err != nil {
			t.Fatal(err)
		}
		if err := conv.Turn(t.Context(), text("go")); err != nil {
			t.Fatal(err)
		}
		if err := conv.Close(); err != nil {
			t.Error(err)
		}
	}
	if n := len(provider.Requests()); n != len(turns) {
		t.Errorf("%d requests, want %d", n, len(turns))
	}
	return asked
}
