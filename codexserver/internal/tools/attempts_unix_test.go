//go:build unix

package tools_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// tries is a model for attempts: the name of the model of each is the shell line that it runs, once, before it answers with
// that line.
func tries() *providertest.Server {
	return providertest.New(providertest.Turn{Repeat: true, Func: func(r providertest.Request) providertest.Turn {
		if len(r.ToolOutputs()) == 0 {
			return providertest.Call(providertest.Shell("1", "sh", "-c", r.Model()))
		}
		return providertest.Say("did " + r.Model())
	}})
}

var anAttempt = regexp.MustCompile(`ttempt (\d)(?:: | of)`)

// attempted is the result of a call with attempts.
type attempted struct {
	started
	Worktree protocol.Worktree
	Attempts []protocol.Attempt
	Check    protocol.Check
}

// TestAttempts has the best of several attempts as the result of one call.
func TestAttempts(t *testing.T) {
	for i, tt := range []struct {
		name, check string
		lines       []string // what each attempt runs
		status      string
		order       []int // the attempts, the best first
	}{
		{"one is right", "test -f right", []string{"touch wrong", "touch right", "echo > more"}, "completed", []int{1, 0, 2}},
		{"none is right", "test -f right", []string{"echo a > x; echo b >> x", "echo > y"}, "incomplete", []int{1, 0}},
		{"without a check", "", []string{"printf 'a\\nb\\n' > x", "echo a > x"}, "completed", []int{1, 0}},
		{"a check that was changed", "sh sub/x", []string{"echo true > sub/x", "echo exit 0 > sub/x; seq 99 > long"}, "completed", []int{0, 1}},
		{"a test that was deleted", "test -f right", []string{"touch right; rm sub/x_test.go", "touch right; seq 9 > long", "touch right; seq 5 > short"},
			"completed", []int{2, 1, 0}},
		{"all the same", "true", []string{"touch a", "touch b", "touch c", "touch d"}, "completed", []int{0, 1, 2, 3}},
	} {
		{
			era := eras[i%2]
			t.Run(tt.name+", "+string(era), func(t *testing.T) {
				w := newWorkshop(t)
				must.OK(t, os.WriteFile(filepath.Join(w.repo, "sub/x"), []byte("false\n"), 0o600),
					os.WriteFile(filepath.Join(w.repo, "sub/x_test.go"), nil, 0o600))
				w.git("add", ".")
				w.git("commit", "--quiet", "-m", "tests")
				e := newNative(t, w.home, tries())
				c := servertest.Join(t, codexserver.New(e, &codexserver.Options{Home: w.home}), servertest.Host{Era: era})
				var r attempted
				arguments := map[string]any{"prompt": "try", "cwd": w.repo, "attempts": len(tt.lines), "models": tt.lines}
				if tt.check != "" {
					arguments["check"] = tt.check
				}
				texts := use(t, c, "codex", arguments, &r).texts()
				var order []int
				for _, n := range anAttempt.FindAllStringSubmatch(strings.Join(texts, " "), -1) {
					order = append(order, int(n[1][0]-'1'))
				}
				must.Equal(t, "status", tt.status, r.Status)
				must.Equal(t, "the best first", tt.order, order)
				must.Equal(t, "others", len(tt.lines)-1, len(r.Attempts))
				var next started
				use(t, c, "codex-reply", map[string]any{"prompt": "go on", "threadId": r.ThreadID}, &next)
				must.Equal(t, "the best goes on", "did "+tt.lines[tt.order[0]], strings.SplitN(next.Content, "\n", 2)[0])
				must.Equal(t, "the repository has changed", "", w.git("status", "--porcelain"))
			})
		}
	}
}

// asker is an engine that asks a question in each turn, and waits for ever in a turn without one.
func asker(working *atomic.Int32) engine.TurnFunc {
	return func(ctx context.Context, host engine.Host, items []protocol.InputItem) error {
		working.Add(1)
		defer working.Add(-1)
		if protocol.TextOf(items) == "wait" {
			<-ctx.Done()
			return &engine.AbortError{Reason: protocol.AbortInterrupted, Cause: context.Cause(ctx)}
		}
		out := host.Ask(ctx, approval.Command{CallID: "c", Cwd: "/work", Command: []string{"git", "push"}})
		host.Emit(protocol.AgentMessage{Message: string(out.Decision)})
		return nil
	}
}

// TestAttemptsAsk has all attempts ask at once. A person gets their questions one at a time, each with its attempt.
func TestAttemptsAsk(t *testing.T) {
	for _, era := range append(eras, servertest.Polls) {
		t.Run(string(era), func(t *testing.T) {
			w := newWorkshop(t)
			var open, working atomic.Int32
			o := &codexserver.Options{Home: w.home}
			c := servertest.Join(t, codexserver.New(asker(&working), o), servertest.Host{Era: era, Answer: func(context.Context) (string, error) {
				if n := open.Add(1); n > 1 {
					t.Errorf("%d questions are open", n)
				}
				time.Sleep(50 * time.Millisecond) // in which another question could come
				open.Add(-1)
				return servertest.Accept, nil
			}})
			c.Use(t.Context(), "codex", fmt.Sprintf(`{"prompt":"ask","cwd":%q,"attempts":3}`, w.repo))
			var asked []string
			for _, m := range c.Received("elicitation/create") {
				_, attempt, _ := strings.Cut(string(m), "This is attempt ")
				asked = append(asked, attempt[:len("1 of 3")])
			}
			slices.Sort(asked)
			must.Equal(t, "asked", []string{"1 of 3", "2 of 3", "3 of 3"}, asked)
		})
	}
}

// TestAttemptsEnd interrupts attempts in each way, which ends all of them.
func TestAttemptsEnd(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, c *servertest.Client, cancel func(), thread string){
		"the call is cancelled":  func(_ *testing.T, _ *servertest.Client, cancel func(), _ string) { cancel() },
		"the client disconnects": func(_ *testing.T, c *servertest.Client, _ func(), _ string) { c.Close() },
		"codex-interrupt": func(t *testing.T, c *servertest.Client, _ func(), thread string) {
			r := use(t, c, "codex-interrupt", map[string]any{"threadId": thread}, nil)
			must.Equal(t, "said", "Interrupted, with the other attempts.", r.texts()[0])
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorkshop(t)
			var working atomic.Int32
			c := servertest.Connect(t, codexserver.New(asker(&working), &codexserver.Options{Home: w.home}), nil)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			arguments := map[string]any{"prompt": "wait", "cwd": w.repo, "attempts": 3, "background": name == "codex-interrupt"}
			call := c.Start(ctx, "tools/call", map[string]any{"name": "codex", "arguments": arguments})
			for working.Load() < 3 {
				time.Sleep(time.Millisecond)
			}
			var r struct {
				StructuredContent struct {
					ThreadID string `json:"threadId"`
				} `json:"structuredContent"`
			}
			if name == "codex-interrupt" {
				must.OK(t, call.Result(&r))
			}
			end(t, c, cancel, r.StructuredContent.ThreadID)
			for began := time.Now(); working.Load() > 0; time.Sleep(time.Millisecond) {
				if time.Since(began) > time.Minute {
					t.Fatalf("%d attempts go on", working.Load())
				}
			}
		})
	}
}

// TestAttemptsRefused checks the arguments of attempts, and that a call which is refused leaves nothing.
func TestAttemptsRefused(t *testing.T) {
	w := newWorkshop(t)
	c := w.connect(codexserver.CallOptions{Turns: 2})
	locked := w.connect(codexserver.CallOptions{LockedArguments: []string{"worktree", "model"}})
	for _, tt := range []struct {
		client    *servertest.Client
		arguments map[string]any
		want      string
	}{
		{c, map[string]any{"attempts": 3}, "2 turns are under way, and no more may be (limits.turns)"},
		{c, map[string]any{"attempts": 2, "models": []string{"a"}}, "argument /models: it has 1 models for 2 attempts"},
		{c, map[string]any{"models": []string{"a"}}, "argument /models: it has 1 models for 0 attempts"},
		{c, map[string]any{"attempts": 2, "models": []string{"a", ""}}, "argument /models: a model without a name"},
		{c, map[string]any{"attempts": 2, "model": "m", "models": []string{"a", "b"}}, "argument /models: leave out model"},
		{c, map[string]any{"attempts": 2, "cwd": t.TempDir()}, "is not in the working tree of a git repository"},
		{locked, map[string]any{"attempts": 2}, "attempts"},
		{locked, map[string]any{"models": []string{"a"}}, "models"},
	} {
		tt.arguments["prompt"] = "new file"
		if tt.arguments["cwd"] == nil {
			tt.arguments["cwd"] = w.repo
		}
		r, err := tt.client.Tool(t.Context(), "codex", tt.arguments)
		if err != nil || !r.IsError || !strings.Contains(r.Content, tt.want) {
			t.Errorf("%v: %+v, %v", tt.arguments, r, err)
		}
	}
	left, err := os.ReadDir(filepath.Join(w.home, "codex-mcp-worktrees"))
	must.OK(t, err)
	must.Equal(t, "left", 0, len(left))
	must.Equal(t, "branches", "", w.git("branch", "--list", "codex/*"))
	var r attempted
	if use(t, c, "codex", map[string]any{"prompt": "new file", "cwd": w.repo, "attempts": 2}, &r); len(r.Attempts) != 1 {
		t.Errorf("the limit of turns was not given back: %+v", r)
	}
}

// TestAttemptsBudget shares the tokens of a call among its attempts.
func TestAttemptsBudget(t *testing.T) {
	w := newWorkshop(t)
	c := servertest.Connect(t, codexserver.New(newNative(t, w.home, tries()), &codexserver.Options{Home: w.home}), nil)
	var r attempted
	use(t, c, "codex", map[string]any{
		"prompt": "try", "cwd": w.repo, "attempts": 3, "models": []string{"true", "true", "true"}, "budget": map[string]any{"tokens": 45},
	}, &r)
	if !strings.Contains(r.Content, "budget of 15 tokens reached") || r.Status != "aborted" {
		t.Errorf("%+v", r)
	}
	total := int64(15)
	for _, a := range r.Attempts {
		must.Equal(t, "status", protocol.StatusAborted, a.Status)
		total += a.Tokens
	}
	if total != 45 {
		t.Errorf("%d tokens were used", total)
	}
}

// TestAttemptsAtOnce has eight clients make attempts in one repository at once.
func TestAttemptsAtOnce(t *testing.T) {
	w := newWorkshop(t)
	server := codexserver.New(newNative(t, w.home, tries()), &codexserver.Options{Home: w.home})
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			c := servertest.Join(t, server, servertest.Host{Era: eras[i%2]})
			var r attempted
			use(t, c, "codex", map[string]any{
				"prompt": "try", "cwd": w.repo, "attempts": 2, "check": "test -f right",
				"models": []string{"touch wrong", fmt.Sprintf("touch right; echo %d > n", i)},
			}, &r)
			made := w.git("show", r.Worktree.Branch+":n")
			if r.Status != "completed" || len(r.Attempts) != 1 || r.Worktree.Commit == "" || made != fmt.Sprint(i) {
				t.Errorf("client %d: %+v, %q", i, r, made)
			}
		})
	}
	all.Wait()
	must.Equal(t, "branches", 16, strings.Count(w.git("branch", "--list", "codex/*"), "codex/"))
	must.Equal(t, "the repository has changed", "", w.git("status", "--porcelain"))
}

// TestAttemptInterrupted ends one attempt by its own conversation. The others go on.
func TestAttemptInterrupted(t *testing.T) {
	w := newWorkshop(t)
	c := servertest.Connect(t, codexserver.New(newNative(t, w.home, tries()), &codexserver.Options{Home: w.home}), nil)
	var r started
	use(t, c, "codex", map[string]any{
		"prompt": "try", "cwd": w.repo, "attempts": 2, "models": []string{"sleep 200", "sleep 201"}, "background": true,
	}, &r)
	other := ""
	for other == "" {
		var list struct{ Conversations []struct{ ThreadID string } }
		use(t, c, "codex-list", map[string]any{}, &list)
		for _, one := range list.Conversations {
			if one.ThreadID != r.ThreadID {
				other = one.ThreadID
			}
		}
	}
	must.Equal(t, "said", "Interrupted.", use(t, c, "codex-interrupt", map[string]any{"threadId": other}, nil).texts()[0])
	var waited struct{ Threads []attempted }
	wait := map[string]any{"threadIds": []string{r.ThreadID}, "seconds": 0.1}
	for len(waited.Threads) == 0 || !strings.HasSuffix(waited.Threads[0].Content, "2 aborted") {
		if use(t, c, "codex-wait", wait, &waited); len(waited.Threads) != 1 || waited.Threads[0].Status != "running" {
			t.Fatalf("the first attempt has ended: %+v", waited)
		}
	}
	use(t, c, "codex-interrupt", map[string]any{"threadId": r.ThreadID}, nil)
	use(t, c, "codex-wait", wait, &waited)
	if len(waited.Threads) != 1 || waited.Threads[0].Status != "aborted" || len(waited.Threads[0].Attempts) != 1 {
		t.Errorf("%+v", waited)
	}
}

// TestAttemptsFull refuses attempts when too many turns run in the background, and gives back what they count for.
func TestAttemptsFull(t *testing.T) {
	const most = 1024
	w := newWorkshop(t)
	var working atomic.Int32
	o := &codexserver.Options{Home: w.home, Calls: codexserver.CallOptions{Turns: most + 2}}
	c := servertest.Connect(t, codexserver.New(asker(&working), o), nil)
	for range most {
		use(t, c, "codex", map[string]any{"prompt": "wait", "cwd": w.repo, "background": true}, nil)
	}
	for range 2 {
		r := use(t, c, "codex", map[string]any{"prompt": "wait", "cwd": w.repo, "attempts": 2, "background": true}, nil)
		if text := r.texts()[0]; !strings.Contains(text, "1024 turns run in the background") {
			t.Errorf("%s", text)
		}
	}
}
