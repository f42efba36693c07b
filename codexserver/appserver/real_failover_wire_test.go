//go:build realcodex && unix

package appserver_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/client"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/google/go-cmp/cmp"
)

// counted is the model of a turn with three commands, with the tool of an engine. Whoever plays it goes
// on where the history ends.
func counted(call func(id, script string) providertest.ToolCall) func(providertest.Request) providertest.Turn {
	return func(req providertest.Request) providertest.Turn {
		done := map[string]bool{}
		for _, out := range req.ToolOutputs() {
			done[out.CallID] = true
		}
		for id, script := range []string{"echo one > one", "cat one > two", "cat one two > three"} {
			if name := fmt.Sprintf("c%d", id+1); !done[name] {
				return providertest.Call(call(name, "echo "+name+" >> ran-"+name+"; "+script))
			}
		}
		return providertest.Say("done")
	}
}

// TestRealFailoverOverTheWire has clients of both eras hand over tasks that are begun in Codex and ended
// in the native engine, one of them in the background. The files are those of a turn without refusals,
// each command ran once and was asked about once, and another server shows who had which part.
func TestRealFailoverOverTheWire(t *testing.T) {
	codexs := counted(func(id, script string) providertest.ToolCall {
		return providertest.Tool(id, "exec_command", map[string]any{"cmd": script, "sandbox_permissions": "require_escalated", "justification": "to count"})
	})
	natives := counted(func(id, script string) providertest.ToolCall {
		return providertest.Tool(id, "shell", map[string]any{"command": []string{"sh", "-c", script}, "with_escalated_permissions": true, "justification": "to count"})
	})
	_, want := playReal(t, "2026-07-28", false, -1, codexs, natives)
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		for after := range 4 {
			t.Run(fmt.Sprintf("%s/%d", version, after), func(t *testing.T) {
				asked, got := playReal(t, version, after == 2, after, codexs, natives)
				if d := cmp.Diff(want, got); d != "" || len(got) != 6 {
					t.Errorf("files (-want +got):\n%s", d)
				}
				for i := range 3 {
					id := fmt.Sprintf("c%d", i+1)
					if n := asked[id]; n != 1 || got["ran-"+id] != id+"\n" {
						t.Errorf("%d questions about %s, which ran as %q", n, id, got["ran-"+id])
					}
				}
			})
		}
	}
}

// playReal runs a turn that Codex's provider refuses after some answers, never with -1. It returns how
// often each command was asked about, and the files.
func playReal(t *testing.T, version string, background bool, after int, codexs, natives func(providertest.Request) providertest.Turn) (asked map[string]int, files map[string]string) {
	t.Helper()
	answers, asked := 0, map[string]int{}
	var mu sync.Mutex
	r, other := newRealPair(t, "approval_policy = \"on-request\"\nsandbox_mode = \"read-only\"", providertest.Turn{Repeat: true, Func: func(req providertest.Request) providertest.Turn {
		mu.Lock()
		defer mu.Unlock()
		if answers++; after >= 0 && answers > after {
			return spent()
		}
		return codexs(req)
	}})
	other.Add(providertest.Turn{Repeat: true, Func: natives})
	connect := func() *client.Client {
		c, err := client.Start(t.Context(), &client.Options{
			Server: codexserver.New(r.engine, &codexserver.Options{Home: r.home, Changes: codexserver.ChangeOptions{Off: true}}), Protocol: version,
			Ask: func(_ context.Context, q *client.Question) elicit.Outcome {
				mu.Lock()
				defer mu.Unlock()
				for _, id := range []string{"c1", "c2", "c3"} {
					if strings.Contains(strings.Join(q.Command, " "), "echo "+id) {
						asked[id]++
					}
				}
				return elicit.Outcome{Decision: elicit.Approved}
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	c := connect()
	task := client.Task{Prompt: "go", Cwd: r.cwd}
	var result client.Result
	var err error
	if background {
		var all []client.Result
		if result, err = c.Background(t.Context(), task); err == nil {
			if all, err = c.Wait(t.Context(), result.Thread); len(all) == 1 {
				result = all[0]
			}
		}
	} else {
		result, err = c.Run(t.Context(), task)
	}
	if err != nil || result.Status != client.Done || !strings.HasPrefix(result.Answer, "done") {
		t.Fatalf("%+v, %v", result, err)
	}
	_ = c.Close()
	r.restart(t)
	text, _, err := connect().Show(t.Context(), client.View{Thread: result.Thread, What: "transcript"})
	parts := strings.Count(text, "m1 of b on the engine native answers from now on, in place of mock-model of mock")
	if want := min(after+1, 1); err != nil || parts != want || !strings.Contains(text, "done") {
		t.Errorf("%v, the transcript has %d changes, want %d:\n%s", err, parts, want, text)
	}
	files = map[string]string{}
	entries, err := os.ReadDir(r.cwd)
	for _, e := range entries {
		b, failed := os.ReadFile(filepath.Join(r.cwd, e.Name()))
		if failed != nil {
			err = failed
		}
		files[e.Name()] = string(b)
	}
	if err != nil {
		t.Fatal(err)
	}
	return asked, files
}
