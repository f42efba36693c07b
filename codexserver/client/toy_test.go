package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/client"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

// toy is a server that answers each method with a function.
type toy struct {
	mux  jsonrpc.Mux
	mu   sync.Mutex
	seen []string // tools/call: the tool and its arguments
}

// newToy returns a server of one era.
func newToy(modern bool) *toy {
	s := &toy{}
	if modern {
		s.answer("server/discover", `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{},`+
			`"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"toy","version":"1"},"io.github.codexmcp/engine":{"name":"e","reason":"r"}}}`)
	} else {
		s.answer("initialize", `{"protocolVersion":"2025-06-18","serverInfo":{"name":"toy","version":"1","engine":{"name":"e","reason":"r"}},"capabilities":{}}`)
	}
	return s
}

// answer answers a method with these results, and repeats the last one.
func (s *toy) answer(method string, results ...string) {
	s.mux.HandleRaw(method, func(_ context.Context, params json.RawMessage) (any, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		var p struct {
			Name      string
			Arguments json.RawMessage
		}
		if json.Unmarshal(params, &p) == nil && p.Name != "" {
			s.seen = append(s.seen, p.Name+" "+string(p.Arguments))
		}
		next := results[0]
		if len(results) > 1 {
			results = results[1:]
		}
		if words, is := strings.CutPrefix(next, "error "); is { // CODE MESSAGE
			code, message, _ := strings.Cut(words, " ")
			n, err := strconv.Atoi(code)
			return nil, errors.Join(err, &jsonrpc.Error{Code: jsonrpc.Code(n), Message: message, Data: json.RawMessage(strconv.Quote(message))})
		}
		return json.RawMessage(next), nil
	})
}

// Serve implements [client.Server].
func (s *toy) Serve(ctx context.Context, t jsonrpc.Transport) error {
	return jsonrpc.NewPeer(t, &s.mux, &jsonrpc.Options{Cancellation: jsonrpc.MCPCancel}).Run(ctx)
}

// result is the result of a tool with structured content.
func result(structured string) string {
	return `{"content":[{"type":"text","text":"text"},{"type":"text","text":"\nnote"},{"type":"text","text":"hint","annotations":{"audience":["assistant"]}},{"type":"text","text":"both","annotations":{"audience":["assistant","user"]}},{"type":"text","text":"all","annotations":{"audience":[]}}],"structuredContent":` + structured + `}`
}

// TestMethods compares the call that each method makes, and what it makes of the result.
func TestMethods(t *testing.T) {
	ctx := t.Context()
	two := 2
	for _, tt := range []struct {
		name   string
		method func(c *client.Client) (any, error)
		call   string
		result string
		want   any
	}{
		{"Run", func(c *client.Client) (any, error) {
			return c.Run(ctx, client.Task{
				Prompt: "p", Cwd: "/w", Model: "m", Approvals: protocol.ApprovalNever, Sandbox: "read-only", Worktree: true,
				Schema: json.RawMessage(`{"type":"object"}`), Arguments: map[string]any{"effort": "low"},
			})
		}, `codex {"prompt":"p","cwd":"/w","model":"m","approval-policy":"never","sandbox":"read-only","worktree":true,"output-schema":{"type":"object"},"effort":"low"}`,
			result(`{"threadId":"t","content":"c","status":"completed","output":{"a":1},"model":"m","durationMs":1500,"usage":{"turn":{"input":1},"thread":{"output":2}},` +
				`"changes":[{"path":"a","kind":"add","added":2,"by":"patch"}],"commands":[{"id":1,"command":"ls","cwd":"/","exitCode":2}],"refused":[{"kind":"command","what":"rm","why":"no","by":"client","reason":"declined"}]}`),
			client.Result{Answer: "text", Notes: []string{"note", "both", "all"}, TurnResult: protocol.TurnResult{
				ThreadID: "t", Content: "c", Status: protocol.StatusCompleted, Output: jsontext.Value(`{"a":1}`), Model: "m", DurationMS: 1500,
				Usage:   &protocol.TurnUsage{Turn: protocol.Tokens{Input: 1}, Thread: protocol.Tokens{Output: 2}},
				Changes: []protocol.Change{{Path: "a", Kind: "add", Added: &two, By: "patch"}}, Commands: []protocol.Command{{ID: 1, Command: "ls", Cwd: "/", ExitCode: &two}},
				Refused: []protocol.Refusal{{Kind: "command", What: "rm", Why: "no", By: "client", Reason: "declined"}},
			}}},
		{"Call", func(c *client.Client) (any, error) {
			var content map[string]any
			err := c.Call(ctx, "codex-list", nil, &content)
			return content, err
		}, `codex-list {}`, result(`{"conversations":[]}`), map[string]any{"conversations": []any{}}},
		{"Run in a conversation", func(c *client.Client) (any, error) {
			return c.Run(ctx, client.Task{Prompt: "p", Thread: "t", Cwd: "/w"})
		}, `codex-reply {"prompt":"p","threadId":"t"}`, result(`{"threadId":"t","status":"incomplete"}`),
			client.Result{TurnResult: protocol.TurnResult{ThreadID: "t", Status: protocol.StatusIncomplete}, Answer: "text", Notes: []string{"note", "both", "all"}}},
		{"Review", func(c *client.Client) (any, error) {
			return c.Review(ctx, client.Review{Target: "base", Branch: "main", Instructions: "i", Cwd: "/w"})
		}, `codex-review {"target":"base","branch":"main","instructions":"i","cwd":"/w"}`,
			result(`{"threadId":"t","status":"completed","findings":[{"title":"x","body":"b","path":"a","startLine":1,"endLine":2,"priority":2}],"verdict":{"correct":true,"explanation":"e"}}`),
			client.Result{Answer: "text", Notes: []string{"note", "both", "all"}, TurnResult: protocol.TurnResult{ThreadID: "t", Status: protocol.StatusCompleted,
				Findings: []protocol.Finding{{Title: "x", Body: "b", Path: "a", StartLine: 1, EndLine: 2, Priority: &two}}, Verdict: &protocol.Verdict{Correct: true, Explanation: "e"}}}},
	} {
		for _, modern := range []bool{false, true} {
			s := newToy(modern)
			s.answer("tools/call", tt.result)
			c := start(t, client.Options{Server: s})
			got, err := tt.method(c)
			must.Equal(t, fmt.Sprintf("%s: the server", tt.name), client.Info{Name: "toy", Version: "1", Engine: "e", Reason: "r"}, c.Info())
			if err != nil {
				t.Errorf("%s: %v", tt.name, err)
			}
			if r, ok := got.(client.Result); ok {
				if s := fmt.Sprint(r.Changes, r.Commands); r.Changes != nil && s != "[add a] [ls (exit 2)]" {
					t.Errorf("%s: it prints as %s", tt.name, s)
				}
				r.Raw = nil
				got = r
			}
			must.Equal(t, tt.name, tt.want, got)
			must.Equal(t, tt.name, []string{tt.call}, s.seen)
		}
	}
}

// TestHostileServer has answers that no client should believe, and long ones. Each call ends with an error, which is not long, and
// nothing is asked for an answer that cannot be read.
func TestHostileServer(t *testing.T) {
	const question = `{"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{}}}}`
	fill := strings.NewReplacer("TASK", `{"resultType":"task","taskId":"t","status":"working"}`, "QUESTION", question, "MANY", many(300, question), "LONG", strings.Repeat("x", 1<<18))
	for row := range strings.Lines(string(must.Get(os.ReadFile("testdata/hostile.txt"))(t))) {
		name, row, ok := strings.Cut(fill.Replace(strings.TrimSuffix(row, "\n")), " | ")
		if !ok || name[0] == '#' {
			continue
		}
		call, get, polls := strings.Cut(row, " | ")
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // fails if a goroutine is left
				s := newToy(true)
				s.answer("tools/call", call)
				s.answer("tasks/update", `{}`)
				s.answer("tasks/cancel", `{}`)
				if polls {
					s.answer("tasks/get", get)
				}
				var mu sync.Mutex
				asked := 0
				c := start(t, client.Options{Server: s, Ask: func(context.Context, *client.Question) elicit.Outcome {
					mu.Lock()
					defer mu.Unlock()
					asked++
					return elicit.Outcome{Decision: elicit.Approved}
				}})
				r, err := c.Run(t.Context(), client.Task{Prompt: "p"})
				if err == nil {
					err = r.Err()
				}
				errs := []error{err}
				if name == "a long turn" { // the answer of another tool is as long
					errs = append(errs, c.Call(t.Context(), "codex-interrupt", map[string]any{"threadId": "t"}, nil))
				}
				for _, err := range errs {
					if n := len(fmt.Sprint(err)); err == nil || n > 100<<10 {
						t.Errorf("an error of %d bytes", n)
					}
				}
				if asked > map[bool]int{true: 64}[name == "rounds without end"] {
					t.Errorf("asked %d times", asked)
				}
			})
		})
	}
}

func many(n int, question string) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("%q:%s", fmt.Sprint("q", i), question)
	}
	return strings.Join(all, ",")
}

// TestKeyOfAnotherQuestion has a task that asks a second question under the key of the first. The
// answer to the first does not count for it.
func TestKeyOfAnotherQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ask := func(message string) string {
			return `{"taskId":"t","status":"input_required","inputRequests":{"q":{"method":"elicitation/create","params":{"message":"` + message + `"}}}}`
		}
		s := newToy(true)
		s.answer("tools/call", `{"resultType":"task","taskId":"t","status":"working"}`)
		s.answer("tasks/get", ask("one"), ask("one"), ask("one"), ask("two"), ask("two"), `{"taskId":"t","status":"completed","result":{"content":[]}}`)
		var mu sync.Mutex
		var sent []string
		s.mux.HandleRaw("tasks/update", func(_ context.Context, params json.RawMessage) (any, error) {
			mu.Lock()
			defer mu.Unlock()
			var p struct{ InputResponses json.RawMessage }
			err := json.Unmarshal(params, &p)
			sent = append(sent, string(p.InputResponses))
			return struct{}{}, err
		})
		var asked []string
		c := start(t, client.Options{Server: s, Ask: func(_ context.Context, q *client.Question) elicit.Outcome {
			asked = append(asked, q.Message)
			if q.Message == "one" {
				return elicit.Outcome{Decision: elicit.Approved}
			}
			return elicit.Outcome{Decision: elicit.Denied}
		}})
		must.Get(c.Run(t.Context(), client.Task{Prompt: "p"}))(t)
		must.Equal(t, "result", []string{"one", "two"}, asked)
		accept, decline := `{"q":{"action":"accept","content":{}}}`, `{"q":{"action":"decline"}}`
		must.Equal(t, "result", []string{accept, decline}, slices.Compact(sent))
	})
}

// TestQuestionAnsweredElsewhere has a task whose question someone else answers.
func TestQuestionAnsweredElsewhere(t *testing.T) {
	for range 5 { // the end of the question and the next poll race
		synctest.Test(t, func(t *testing.T) {
			s := newToy(true)
			s.answer("tools/call", `{"resultType":"task","taskId":"t","status":"working"}`)
			s.answer("tasks/get", `{"taskId":"t","status":"input_required","inputRequests":{"q":{"method":"elicitation/create","params":{"message":"m"}}}}`,
				`{"taskId":"t","status":"working"}`, `{"taskId":"t","status":"completed","result":{"content":[]}}`)
			c := start(t, client.Options{Server: s, Ask: func(ctx context.Context, _ *client.Question) elicit.Outcome {
				<-ctx.Done()
				return elicit.Outcome{}
			}})
			if r, err := c.Run(t.Context(), client.Task{Prompt: "p"}); err != nil || r.Status != protocol.StatusCompleted {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
}

// TestQuestionAfterEvents has a function that is slower than the server. A question is asked when the
// events before it have been handled, and all arrive before the result.
func TestQuestionAfterEvents(t *testing.T) {
	for _, version := range []string{"", mcptypes.ProtocolVersion} {
		synctest.Test(t, func(t *testing.T) {
			var seen []string
			c := start(t, client.Options{Server: newServer(""), Protocol: version, Ask: func(context.Context, *client.Question) elicit.Outcome {
				seen = append(seen, "question")
				return elicit.Outcome{Decision: elicit.Approved}
			}})
			_, err := c.Run(t.Context(), client.Task{Prompt: "say:x ls", Watch: client.Watch{Event: func(e client.Event) {
				<-time.After(time.Second)
				seen = append(seen, e.Msg.EventType())
			}}})
			want := []string{"session_configured", "task_started", "agent_message", "exec_approval_request", "question", "agent_message", "task_complete"}
			if d := cmp.Diff(want, seen); d != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, d)
			}
		})
	}
}

// TestBackground calls the tools for several turns at a time.
func TestBackground(t *testing.T) {
	everywhere(t, func(t *testing.T, start func(client.Options) *client.Client, modern bool) {
		c := start(client.Options{Ask: outcome(elicit.Approved)})
		call := func(tool string, arguments map[string]any) (r struct {
			protocol.TurnResult `json:",embed"`
			Threads             []protocol.TurnResult `json:"threads"`
		}) {
			t.Helper()
			must.OK(t, c.Call(t.Context(), tool, arguments, &r))
			return r
		}
		var ids []string
		for _, prompt := range []string{"wait:1h", "ls say:b"} {
			r := call("codex", map[string]any{"prompt": prompt, "background": true})
			if r.Status.Ended() || r.ThreadID == "" {
				t.Fatalf("%+v", r)
			}
			ids = append(ids, r.ThreadID)
		}
		rows := call("codex-wait", map[string]any{"threadIds": ids}).Threads
		if len(rows) != 2 || rows[0].Status != protocol.StatusRunning || rows[1].Status != protocol.StatusCompleted || !strings.HasSuffix(rows[1].Content, "b") {
			t.Fatalf("%+v", rows)
		}
		call("codex-interrupt", map[string]any{"threadId": ids[0]})
		if rows = call("codex-wait", map[string]any{"threadIds": ids[:1]}).Threads; len(rows) != 1 || rows[0].Status != protocol.StatusAborted {
			t.Errorf("%+v", rows)
		}
		if page := call("codex-show", map[string]any{"threadId": ids[1], "what": "transcript"}); !strings.Contains(page.Content, "say:b") {
			t.Errorf("%+v", page)
		}
		var tool *client.ToolError
		if err := c.Call(t.Context(), "codex-interrupt", map[string]any{"threadId": "nothing"}, nil); !errors.As(err, &tool) || tool.Tool != "codex-interrupt" {
			t.Error(err)
		}
	})
}

func TestOptions(t *testing.T) {
	for _, o := range []*client.Options{nil, {}, {URL: "http://127.0.0.1:1/", Server: newToy(true)}, {URL: "http://example.com/mcp"}, {URL: "http://127.0.0.1:1/mcp"}} {
		if c, err := client.Start(t.Context(), o); err == nil {
			t.Errorf("%+v", o)
			c.Close()
		}
	}
}

// TestSilentTask has a server that no longer answers polls.
func TestSilentTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newToy(true)
		s.answer("tools/call", `{"resultType":"task","taskId":"c.1","status":"working","createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:00Z","ttlMs":null}`)
		s.mux.HandleRaw("tasks/get", func(ctx context.Context, _ json.RawMessage) (any, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		c := start(t, client.Options{Server: s})
		ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
		defer cancel()
		var lost *client.LostError
		if _, err := c.Run(ctx, client.Task{Prompt: "p"}); !errors.As(err, &lost) || lost.Task != "c.1" {
			t.Errorf("%v", err)
		}
	})
}
