//go:build unix

package native_test

import (
	"context"
	"fmt"
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

// recorded has three commands, each of which counts how often it ran. Whoever plays it goes on where the history ends.
func recorded(req providertest.Request) providertest.Turn {
	n := len(req.ToolOutputs())
	if req.LastUserText() == "hello" || n == 3 {
		return providertest.Say("hello")
	}
	id := fmt.Sprintf("c%d", n+1)
	return providertest.Turn{Reasoning: []string{"a thought"}, ToolCalls: []providertest.ToolCall{providertest.Shell(id, "sh", "-c", "echo >> "+id)}}
}

// reviewed finds nothing.
func reviewed(req providertest.Request) providertest.Turn {
	if req.LastUserText() == "hello" {
		return providertest.Say("hello")
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

// TestFailoverOverTheWire has the first provider refuse in a turn, with clients of both eras of MCP. Each command runs
// once and is asked about once. The result and the transcript, also after the server has ended, say who answered.
func TestFailoverOverTheWire(t *testing.T) {
	t.Parallel()
	for version, wires := range map[string][]string{"2025-11-25": {"chat", "responses"}, "2026-07-28": {"responses", "chat"}} {
		for name, tt := range map[string]struct {
			after int    // the first provider refuses after so many answers
			open  string // or while the question about this command is open
			model func(providertest.Request) providertest.Turn
			run   func(*wired) (client.Result, error)
		}{
			"before the first byte": {model: recorded, run: inFront},
			"a question is open":    {after: -1, open: "c3", model: recorded, run: inFront},
			"in the background":     {after: 2, model: recorded, run: inBackground},
			"in a review":           {model: reviewed, run: review},
		} {
			t.Run(version+"/"+name, func(t *testing.T) {
				t.Parallel()
				w := &wired{several: newSeveral(t, native.Options{Tools: setting.ToolsFiles}, wires...), asked: map[string]int{}}
				w.scripts[0].Add(providertest.Turn{Repeat: true, Func: func(req providertest.Request) providertest.Turn {
					w.mu.Lock()
					defer w.mu.Unlock()
					if w.refusing = w.refusing || w.answers == tt.after; w.refusing {
						return limited(3600)
					}
					w.answers++
					return tt.model(req)
				}})
				w.scripts[1].Add(providertest.Turn{Repeat: true, Func: tt.model})
				w.client = w.connect(version, func(q *client.Question) {
					w.mu.Lock()
					defer w.mu.Unlock()
					command := strings.Join(q.Command, " ")
					w.asked[command]++
					w.refusing = w.refusing || tt.open != "" && strings.Contains(command, tt.open)
				})
				r, err := tt.run(w)
				if err != nil || r.Status != protocol.StatusCompleted {
					t.Fatalf("%+v, %v", r, err)
				}
				for command, n := range w.asked {
					diff(t, "questions about "+command, 1, n)
				}
				for _, id := range []string{"c1", "c2", "c3"} {
					if name != "in a review" {
						diff(t, id, "\n", read(t, filepath.Join(w.at, id)))
					}
				}
				w.told(r)
			})
		}
	}
}

func inFront(w *wired) (client.Result, error) {
	return w.client.Run(w.t.Context(), client.Task{Prompt: "go", Cwd: w.at})
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

func review(w *wired) (client.Result, error) {
	servertest.Git(w.t, w.at, "init", "-q")
	write(w.t, filepath.Join(w.at, "changed"), "x\n")
	return w.client.Review(w.t.Context(), client.Review{Target: "uncommitted", Cwd: w.at})
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
