package turn_test

import (
	"bytes"
	"context"
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/admit"
	"github.com/codexmcp/codexmcp/codexserver/internal/approve"
	"github.com/codexmcp/codexmcp/codexserver/internal/changes"
	"github.com/codexmcp/codexmcp/codexserver/internal/decide"
	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/codexserver/internal/record"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/memdir"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/google/go-cmp/cmp"
)

func TestMain(m *testing.M) {
	native.Main() // does not return in a launcher
	os.Exit(memdir.Run(m))
}

// person approves every command except a push.
func person(_ context.Context, r *approval.Request) (elicit.Outcome, error) {
	if m, ok := r.Subject.(approval.Command); ok && strings.Contains(strings.Join(m.Command, " "), "git push") {
		return elicit.Outcome{Decision: elicit.Denied, Reason: elicit.ReasonDeclined, Feedback: "not on a Friday"}, nil
	}
	return elicit.Outcome{Decision: elicit.Approved}, nil
}

// enginePatch is the patch of [engineTurn].
const enginePatch = "*** Begin Patch\n*** Update File: a.go\n@@\n a\n-b\n+B\n c\n*** Update File: b.go\n@@\n-1\n 2\n*** End Patch"

// newNative returns the native engine with a scripted model. The end of the test closes both. It asks for nothing and
// has no sandbox, unless the configuration says more.
func newNative(t *testing.T, model *providertest.Server, more map[string]any) engine.Engine {
	t.Helper()
	t.Cleanup(model.Close)
	overrides := map[string]any{
		"model": "scripted", "model_provider": "local", "model_providers.local.name": "local", "model_providers.local.base_url": model.BaseURL(),
		"model_providers.local.wire_api": "responses", "approval_policy": "never", "sandbox_mode": "danger-full-access",
	}
	maps.Copy(overrides, more)
	e := must.Get(native.New(&native.Options{CodexHome: t.TempDir(), Overrides: overrides}))(t)
	t.Cleanup(func() { e.Close() })
	return e
}

// runTurn runs one turn of a new thread, which a call awaits.
func runTurn(t *testing.T, e engine.Engine, o *approve.Options, cwd string, a thread.Attend) error {
	t.Helper()
	share := thread.NewTable(e, o).Share("")
	defer share.Close()
	th := must.Get(share.Start(t.Context(), admit.Trusted(), protocol.Config{Cwd: cwd}, a))(t)
	return th.Begin(t.Context(), a, protocol.TurnInput{Items: protocol.TextInput("go")}).Wait()
}

// engineTurn runs the turn of TestTurn with an engine. Its model applies enginePatch, removes
// old.go, runs a failing test that writes test.log, and tries to push. The report must have
// the changes that git sees, and the commands and refusals of the record of approvals.
func engineTurn(t *testing.T, e engine.Engine) protocol.TurnResult {
	t.Helper()
	tt := newTurn(t, func(tt *work) {
		tt.write("a.go", "a\nb\nc\n")
		tt.write("b.go", "1\n2\n")
		tt.write("old.go", "x\ny\nz\n")
	})
	tt.end(nil)
	tt.write("old.go", "x\ndirty\n")
	tt.write("dirty.go", "x\n")
	var lines bytes.Buffer
	tt.git("add", "-A")
	tt.git("commit", "-q", "-m", "dirty") // git counts changes from this commit
	tt.c = newWatch(changes.Options{Scratch: git.Scratch{Dir: t.TempDir()}, Announced: engine.TraitsOf(e).Announces, Before: time.Minute, After: time.Minute})
	a := thread.Attend{Turn: tt.c.Turn, Ask: &approve.Place{Ask: person}}
	got := tt.end(runTurn(t, e, &approve.Options{Record: record.To(&lines)}, tt.dir, a))

	must.Equal(t, "changes and git diff --numstat", tt.numstat(), numstatOf(got))
	if got.ChangesFrom != "tree" || got.Status != "completed" {
		t.Errorf("status %q, changes from %q", got.Status, got.ChangesFrom)
	}
	var ran, refused []string
	for _, c := range got.Commands {
		ran = append(ran, c.Command+" by "+c.ApprovedBy)
	}
	for _, f := range got.Refused {
		refused = append(refused, f.What+" by "+f.By+" "+f.Reason)
	}
	wantRan, wantRefused := recorded(t, &lines)
	if d := cmp.Diff(wantRan, ran); d != "" || len(ran) != 2 {
		t.Error("commands and the record of approvals (-want +got)\n" + d)
	}
	if d := cmp.Diff(wantRefused, refused); d != "" || len(refused) != 1 {
		t.Error("refused and the record of approvals (-want +got)\n" + d)
	}
	if n := len(got.Commands); n == 0 || got.Commands[n-1].ExitCode == nil || *got.Commands[n-1].ExitCode != 3 {
		t.Errorf("commands: %+v", got.Commands)
	}
	r := tt.c.So()
	t.Logf("%s", r.JSON(setting.DefaultResult))
	return r
}

func TestTurnOfTheNativeEngine(t *testing.T) {
	model := providertest.New(
		providertest.Turn{ToolCalls: []providertest.ToolCall{providertest.Shell("1", "apply_patch", enginePatch)}, Usage: &providertest.Usage{Input: 30, Cached: 7, Output: 2, Reasoning: 1}},
		providertest.Call(providertest.Shell("2", "rm", "old.go")),
		providertest.Call(providertest.Shell("3", "sh", "-c", "echo FAIL > test.log; exit 3")),
		providertest.Call(providertest.Shell("4", "git", "push", "origin")),
		providertest.Say("done"),
	)
	r := engineTurn(t, newNative(t, model, map[string]any{"approval_policy": "untrusted"}))
	want := protocol.Tokens{Input: 70, Cached: 7, Output: 22, Reasoning: 1}
	if r.Usage == nil {
		t.Fatal("no usage")
	}
	if d := cmp.Diff(want, r.Usage.Turn); d != "" || r.Model != "scripted" {
		t.Errorf("model %q, usage (-want +got)\n%s", r.Model, d)
	}
}

func recorded(t *testing.T, lines *bytes.Buffer) (ran, refused []string) {
	t.Helper()
	for line := range strings.Lines(lines.String()) {
		l := must.Get(record.Parse([]byte(line)))(t)
		switch {
		case l.Event != "decided" || l.Kind != "command":
		case l.Decision == "approved":
			ran = append(ran, elicit.ShowCommand(l.Command)+" by "+l.By)
		default: // as a person wrote it
			refused = append(refused, elicit.ShowCommand(decide.Written(l.Command))+" by "+l.By+" "+l.Reason)
		}
	}
	return ran, refused
}
