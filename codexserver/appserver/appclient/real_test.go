//go:build realcodex

package appclient_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/appserver/appclient"
	"github.com/codexmcp/codexmcp/codexserver/appserver/apptypes"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/internal/gobuild"
	"github.com/codexmcp/codexmcp/internal/moduleproxy"
	"github.com/codexmcp/codexmcp/internal/nightly"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// The tests of this file drive the real Codex that CODEX_BIN names, with a scripted provider on loopback.

// codex returns the command of a real app-server, with a home and a folder of its own.
func codex(t *testing.T, p *providertest.Server) *exec.Cmd {
	t.Helper()
	bin := os.Getenv("CODEX_BIN")
	if bin == "" {
		t.Fatal("CODEX_BIN is not set")
	}
	t.Cleanup(p.Close)
	home := t.TempDir()
	must.OK(t, os.WriteFile(filepath.Join(home, "config.toml"), []byte(servertest.CodexConfig(p.BaseURL(), "")), 0o600))
	cmd := exec.Command(bin, "app-server")
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "CODEX_HOME="+home, "HOME="+t.TempDir())
	return cmd
}

// touch is a turn of the model that wants to write outside of the sandbox, and one that repeats what it was told.
var touch = []providertest.Turn{
	providertest.Call(providertest.Tool("c1", "exec_command", map[string]any{
		"cmd": "touch made.txt && echo made", "sandbox_permissions": "require_escalated", "justification": "to write",
	})),
	{Func: func(r providertest.Request) providertest.Turn { return providertest.Say("seen: " + r.LastToolOutput()) }},
}

// TestRealThreads starts and resumes a thread, and interrupts a turn.
func TestRealThreads(t *testing.T) {
	provider := providertest.New(providertest.Say("one"), providertest.Turn{Stall: make(chan struct{})})
	cmd := codex(t, provider)
	again := exec.Command(cmd.Path, cmd.Args[1:]...)
	again.Dir, again.Env = cmd.Dir, cmd.Env
	c := must.Get(appclient.Start(t.Context(), cmd, nil))(t)
	defer c.Close()
	said := ""
	note := func(method string, n *apptypes.Note) {
		if item := n.Item; method == apptypes.NoteItemCompleted && item.Type == apptypes.ThreadItemAgentMessage {
			said = item.Text
		}
	}
	run := func(id, input string, note func(string, *apptypes.Note)) (*apptypes.Turn, error) {
		t.Helper()
		turn := must.Get(c.Begin(&apptypes.TurnParams{ThreadID: id, Input: appclient.Text(input)}, note))(t)
		return turn.Wait(t.Context())
	}
	var thread apptypes.ThreadReply
	must.OK(t, c.Call(t.Context(), apptypes.CallThreadStart, &apptypes.ThreadParams{Sandbox: "read-only"}, &thread))
	if _, err := run(thread.Thread.ID, "go", note); err != nil || said != "one" {
		t.Errorf("%v, said %q", err, said)
	}
	must.OK(t, c.Close())
	c = must.Get(appclient.Start(t.Context(), again, nil))(t)
	defer c.Close()
	must.OK(t, c.Call(t.Context(), apptypes.CallThreadResume, &apptypes.ThreadParams{ThreadID: thread.Thread.ID}, nil))
	var refused error
	end, err := run(thread.Thread.ID, "wait", func(method string, n *apptypes.Note) {
		if method == apptypes.NoteTurnStarted {
			refused = c.Call(t.Context(), apptypes.CallTurnSteer, &apptypes.SteerParams{ThreadID: n.ThreadID, ExpectedTurnID: "another", Input: appclient.Text("and on")}, nil)
			go func() {
				_ = c.Call(t.Context(), apptypes.CallTurnInterrupt, apptypes.InterruptParams{ThreadID: n.ThreadID, TurnID: n.Turn.ID}, nil)
			}()
		}
	})
	if err == nil || end.Status != apptypes.TurnStatusInterrupted || refused == nil {
		t.Errorf("interrupted: %v, %v; a message to another turn: %v", end, err, refused)
	}
	t.Logf("threads of Codex %s", c.Server().Version)
}

// TestRealOutside builds examples/appclient, at night in a module of its own, from a proxy of files, and has it
// answer a question of the real Codex.
func TestRealOutside(t *testing.T) {
	const root = "../../.."
	dir, env := t.TempDir(), moduleproxy.Environment(t, root)
	source := must.Get(os.ReadFile(filepath.Join(root, "examples/appclient/main.go")))(t)
	if n := bytes.Count(source, []byte("\n")); n >= 65 {
		t.Errorf("the example has %d lines", n)
	}
	must.OK(t, os.WriteFile(filepath.Join(dir, "main.go"), source, 0o600))
	program := filepath.Join(dir, "client")
	if nightly.Tests() {
		for _, args := range [][]string{{"mod", "init", "example.test/client"}, {"get", "."}, {"build", "-o", program, "."}} {
			moduleproxy.Command(t, dir, env, args...)
		}
	} else if err := gobuild.Program(program, filepath.Join(root, "examples/appclient")); err != nil {
		t.Fatal(err)
	}

	for answer, want := range map[string]string{"y\n": "made\\n", "n\n": "rejected", "": "rejected"} {
		t.Run(fmt.Sprintf("%q", answer), func(t *testing.T) {
			app := codex(t, providertest.New(touch...))
			cmd := exec.CommandContext(t.Context(), program, "Touch", "a", "file.")
			cmd.Dir, cmd.Stdin = app.Dir, strings.NewReader(answer)
			cmd.Env = append(app.Env, "PATH="+filepath.Dir(app.Path)+string(os.PathListSeparator)+os.Getenv("PATH"))
			printed, err := cmd.CombinedOutput()
			out := string(printed)
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if !strings.Contains(out, "touch made.txt") || !strings.Contains(out, "? [y/N] ") || !strings.Contains(out, want) {
				t.Errorf("printed %s", out)
			}
			if _, err := os.Stat(filepath.Join(app.Dir, "made.txt")); (err == nil) != (answer == "y\n") {
				t.Errorf("the file: %v", err)
			}
			t.Log(out)
		})
	}
}
