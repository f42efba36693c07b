//go:build unix

package native_test

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/client"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/elicit"
)

// played is the model of a turn. Whoever plays it goes on where the history ends.
type played = func(providertest.Request) providertest.Turn

// recorded has three commands. Asked for a summary, it writes one.
func recorded(req providertest.Request) providertest.Turn {
	return goOn(req, step("c1", "echo one > one"), step("c2", "echo two > two"), step("c3", "cat one two > three"))
}

// step is a command that counts how often it ran.
func step(id, script string) providertest.ToolCall {
	return providertest.Tool(id, "shell", map[string]any{"command": "echo " + id + " >> ran-" + id + "; " + script})
}

// goOn makes the first call that has no result, or says that all is done.
func goOn(req providertest.Request, calls ...providertest.ToolCall) providertest.Turn {
	switch {
	case !strings.Contains(string(req.Body), `"tools":[{`):
		return providertest.Say("the summary")
	case req.LastUserText() == "hello":
		return providertest.Say("hello")
	}
	done := map[string]bool{}
	for _, out := range req.ToolOutputs() {
		done[out.CallID] = true
	}
	for _, call := range calls {
		if !done[call.ID] {
			return providertest.Turn{Reasoning: []string{"a thought"}, ToolCalls: []providertest.ToolCall{call}}
		}
	}
	return providertest.Say("done")
}

// reviewed reads once, and finds nothing.
func reviewed(req providertest.Request) providertest.Turn {
	switch {
	case req.LastUserText() == "hello":
		return providertest.Say("hello")
	case len(req.ToolOutputs()) == 0:
		return providertest.Call(providertest.Shell("r1", "cat", "changed"))
	}
	return providertest.Say(`{"findings":[],"overall_correctness":"patch is correct","overall_explanation":"fine","overall_confidence_score":1}`)
}

// wired is an engine with two providers, behind a server with a client.
type wired struct {
	*several
	client *client.Client

	mu       sync.Mutex
	asked    map[string]int // how often about a command
	answers  int            // of the first provider
	refusing bool           // it has begun to refuse
}

// newWired makes one. Its client speaks a version of MCP, and its user approves. The first provider
// begins to refuse where p says.
func newWired(t *testing.T, version string, p disturbance, wires ...string) *wired {
	t.Helper()
	w := &wired{several: newSeveral(t, native.Options{Tools: setting.ToolsFiles}, wires...), asked: map[string]int{}}
	model, refusal := p.model, refusals(wires[0])[p.how]
	w.scripts[0].Add(providertest.Turn{Repeat: true, Func: func(req providertest.Request) providertest.Turn {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.refusing = w.refusing || p.how != "" && p.open == "" && w.answers == p.after; w.refusing {
			return refusal
		}
		w.answers++
		return model(req)
	}})
	w.scripts[1].Add(providertest.Turn{Repeat: true, Func: model})
	w.client = w.connect(version, func(q *client.Question) {
		w.mu.Lock()
		defer w.mu.Unlock()
		command := strings.Join(q.Command, " ")
		w.asked[command]++
		w.refusing = w.refusing || p.open != "" && strings.Contains(command, p.open)
	})
	return w
}

// connect connects a client to a new server of the engine.
func (w *wired) connect(version string, asked func(*client.Question)) *client.Client {
	w.t.Helper()
	c, err := client.Start(w.t.Context(), &client.Options{
		Server:   codexserver.New(w.engine, &codexserver.Options{Home: w.home, Changes: codexserver.ChangeOptions{Off: true}}),
		Protocol: version,
		Ask: func(_ context.Context, q *client.Question) elicit.Outcome {
			asked(q)
			return elicit.Outcome{Decision: elicit.Approved}
		},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = c.Close() })
	return c
}

// tree returns the files of a folder, those of git aside.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == ".git" {
			return fs.SkipDir
		}
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		files[strings.TrimPrefix(path, dir)] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// disturbance is where the first provider begins to refuse.
type disturbance struct {
	how   string // one of refusals; "" is an undisturbed turn
	after int    // so many answers
	open  string // or while the question about this command is open
	model played
	run   func(*wired) (client.Result, error) // nil calls codex
}

// disturbances are those of a turn.
var disturbances = map[string]disturbance{
	"before the first byte": {how: "usage limit"},
	"in a text":             {how: "in a text", after: 1},
	"in arguments":          {how: "in arguments", after: 1},
	"in reasoning":          {how: "in reasoning", after: 2},
	"after a call was sent": {how: "after a call", after: 2},
	"at the answer":         {how: "no quota", after: 3},
	"a question is open":    {how: "usage limit", open: "ran-c3"},
	"in the background":     {how: "usage limit", after: 2, run: inBackground},
	"in a compaction":       {how: "usage limit", after: 1, run: compacted},
	"in a review":           {how: "usage limit", model: reviewed, run: review},
	"later in a review":     {how: "in a text", after: 1, model: reviewed, run: review},
}

func inBackground(w *wired) (client.Result, error) {
	r, err := w.client.Background(w.t.Context(), client.Task{Prompt: "go", Cwd: w.at})
	if err != nil {
		return r, err
	}
	all, err := w.client.Wait(w.t.Context(), r.ThreadID)
	if err != nil || len(all) != 1 {
		return r, fmt.Errorf("%d results, %w", len(all), err)
	}
	return all[0], nil
}

func compacted(w *wired) (client.Result, error) {
	r, err := w.client.Run(w.t.Context(), client.Task{Prompt: "hello", Cwd: w.at})
	if err != nil {
		return r, err
	}
	return w.client.Run(w.t.Context(), client.Task{Prompt: "go", Thread: r.ThreadID, Arguments: map[string]any{"compact": true}})
}

func review(w *wired) (client.Result, error) {
	servertest.Git(w.t, w.at, "init", "-q")
	write(w.t, filepath.Join(w.at, "changed"), "x\n")
	return w.client.Review(w.t.Context(), client.Review{Target: "uncommitted", Cwd: w.at})
}

// play runs the turn of a point.
func (p disturbance) play(t *testing.T, version string, wires ...string) (*wired, client.Result) {
	t.Helper()
	if p.model == nil {
		p.model = recorded
	}
	if p.run == nil {
		p.run = func(w *wired) (client.Result, error) {
			return w.client.Run(t.Context(), client.Task{Prompt: "go", Cwd: w.at})
		}
	}
	w := newWired(t, version, p, wires...)
	r, err := p.run(w)
	if err != nil || r.Status != protocol.StatusCompleted {
		t.Fatalf("refusals %q: %+v, %v", p.how, r, err)
	}
	return w, r
}

// undisturbed is the same turn without refusals.
func (p disturbance) undisturbed() disturbance {
	p.how, p.open = "", ""
	return p
}

// TestFailoverOverTheWire has the first provider refuse at each point of a turn, with clients of both
// eras of MCP. The turn is as without refusals: the same files, each command once, the same questions
// once each. The result and the transcript, also after the server has ended, say who answered.
func TestFailoverOverTheWire(t *testing.T) {
	t.Parallel()
	for version, wires := range map[string][]string{"2025-11-25": {"chat", "responses"}, "2026-07-28": {"responses", "chat"}} {
		pairs := [][]string{wires}
		if *whole {
			pairs = [][]string{{"chat", "responses"}, {"responses", "responses"}, {"responses", "chat"}, {"chat", "chat"}}
		}
		for _, wires := range pairs {
			for name, p := range disturbances {
				t.Run(fmt.Sprintf("%s/%s to %s/%s", version, wires[0], wires[1], name), func(t *testing.T) {
					t.Parallel()
					first, _ := p.undisturbed().play(t, version, wires...)
					w, r := p.play(t, version, wires...)
					diff(t, "files", tree(t, first.at), tree(t, w.at))
					diff(t, "questions", maps.Clone(first.asked), maps.Clone(w.asked))
					for command, n := range w.asked {
						diff(t, "questions about "+command, 1, n)
					}
					for id := range 3 {
						if ran := tree(t, w.at)[fmt.Sprintf("/ran-c%d", id+1)]; !strings.Contains(name, "review") && ran != fmt.Sprintf("c%d\n", id+1) {
							t.Errorf("command %d ran as %q", id+1, ran)
						}
					}
					w.told(r)
				})
			}
		}
	}
}

// told checks that the result, the transcript, and that of another server say who answered, and that
// the conversation continues.
func (w *wired) told(r client.Result) {
	t := w.t
	t.Helper()
	var result struct {
		StructuredContent struct {
			Model    string `json:"model"`
			Rerouted []struct {
				FromProvider, ToProvider, ToModel string
			} `json:"rerouted"`
		} `json:"structuredContent"`
	}
	if r.Raw != nil { // codex-wait has rows in its place
		parse(t, r.Raw, &result)
		got := result.StructuredContent
		if len(got.Rerouted) != 1 || got.Rerouted[0].FromProvider != "a" || got.Rerouted[0].ToProvider != "b" || got.Rerouted[0].ToModel != "m1" || got.Model != "m1" {
			t.Errorf("the result has %+v", got)
		}
	}
	show := func(c *client.Client, turns int) string {
		var page struct {
			Content string `json:"content"`
		}
		if err := c.Call(t.Context(), "codex-show", map[string]any{"threadId": r.ThreadID, "what": "transcript"}, &page); err != nil {
			t.Fatal(err)
		}
		text := page.Content
		diff(t, "lines that say who answers", turns, strings.Count(text, "m1 of b answers from now on, in place of m0 of a"))
		return text
	}
	inOrder(t, show(w.client, 1), "m1 of b answers", "codex:\n")
	again, err := w.client.Run(t.Context(), client.Task{Prompt: "hello", Thread: r.ThreadID})
	if err != nil || again.Status != protocol.StatusCompleted || again.Answer != "hello" {
		t.Errorf("the next turn: %+v, %v", again, err)
	}
	if err := w.client.Close(); err != nil {
		t.Error(err)
	}
	show(w.connect("", func(q *client.Question) { t.Errorf("asked %s", q.Message) }), 2) // the first provider still refuses
}
