package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
)

// worker is an engine that does what its prompt says, word by word: "sleep:2s" waits,
// "say:x" says x, "form" asks a question other than an approval, anything else is a
// command that needs an approval. Commands joined by + are asked about at once. The answer
// says how each was decided.
type worker struct {
	mu    sync.Mutex
	turns int
	ends  int
	ran   []string
}

func (w *worker) engine() engine.Engine { return engine.TurnFunc(w.turn) }

// did returns how many turns there were, and the commands that were run.
func (w *worker) did() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.TrimSpace(fmt.Sprint(w.turns) + " " + strings.Join(w.ran, " "))
}

// ended reports whether every turn has ended.
func (w *worker) ended() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ends == w.turns
}

func (w *worker) turn(ctx context.Context, host engine.Host, in []protocol.InputItem) error {
	w.mu.Lock()
	w.turns++
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.ends++
	}()
	var said []string
	for word := range strings.FieldsSeq(protocol.TextOf(in)) {
		kind, rest, _ := strings.Cut(word, ":")
		switch kind {
		case "sleep":
			d, _ := time.ParseDuration(rest)
			select {
			case <-time.After(d):
			case <-ctx.Done():
				return &engine.AbortError{Reason: protocol.AbortInterrupted, Cause: context.Cause(ctx)}
			}
		case "say":
			host.Emit(protocol.AgentMessage{Message: rest})
			said = append(said, rest)
		case "form":
			f, err := elicit.ServerQuestion("toy", json.RawMessage(`{"message":"Name?"}`))
			if err != nil {
				return err
			}
			answer, err := host.Elicit(ctx, f)
			said = append(said, fmt.Sprintf("form: %s %v", answer, err))
		default:
			out, err := w.commands(ctx, host, strings.Split(word, "+"))
			if err != nil {
				return err
			}
			said = append(said, out...)
		}
	}
	host.Emit(protocol.AgentMessage{Message: strings.Join(said, ", ")})
	return nil
}

func (w *worker) commands(ctx context.Context, host engine.Host, commands []string) (said []string, err error) {
	var all sync.WaitGroup
	outcomes := make([]elicit.Outcome, len(commands))
	for i, command := range commands {
		all.Go(func() {
			outcomes[i] = host.ApproveExec(ctx, protocol.ExecApprovalRequest{CallID: "c", Command: []string{command}, Cwd: "/work"})
			if outcomes[i].Decision == elicit.Approved {
				w.mu.Lock()
				w.ran = append(w.ran, command)
				w.mu.Unlock()
			}
		})
	}
	all.Wait()
	for i, out := range outcomes {
		if out.Decision == elicit.Abort {
			return nil, &engine.AbortError{Reason: protocol.AbortInterrupted, Cause: errors.Join(context.Cause(ctx), errors.New(out.ForModel()))}
		}
		said = append(said, commands[i]+": "+string(out.Decision))
	}
	return said, nil
}

// The answers to a question.
const (
	accepts  = `{"action":"accept"}`
	declines = `{"action":"decline"}`
)

func toolCall(tool, arguments string) []string {
	return []string{`"name":"` + tool + `"`, `"arguments":` + arguments}
}

// call calls a tool.
func (c *modernClient) call(tool, arguments string) answer {
	c.t.Helper()
	return c.start("tools/call", toolCall(tool, arguments)...).wait()
}

// codex calls the tool codex with a prompt.
func (c *modernClient) codex(prompt string) answer {
	c.t.Helper()
	return c.call("codex", fmt.Sprintf(`{"prompt":%q}`, prompt))
}

// round is a retry of a call: tool and arguments, a state, and the answers.
func (c *modernClient) round(tool, arguments, state, responses string) *exchange {
	members := append(toolCall(tool, arguments), fmt.Sprintf(`"requestState":%q`, state))
	if responses != "" {
		members = append(members, `"inputResponses":`+responses)
	}
	return c.start("tools/call", members...)
}

// state returns the state of an answer that asks.
func (c *modernClient) state(a answer) string {
	c.t.Helper()
	if a.input == nil || a.input.RequestState == nil {
		c.t.Fatalf("asks nothing: %s %v", a.raw, a.err)
	}
	return *a.input.RequestState
}

// keys returns the keys of an answer that asks, in order.
func (a answer) keys() string {
	if a.input == nil {
		return ""
	}
	var keys []string
	for key := range a.input.InputRequests {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return strings.Join(keys, " ")
}

// text returns an answer as one line.
func (a answer) text() string {
	switch {
	case a.err != nil:
		return fmt.Sprintf("%d %s", a.err.Code, a.err.Message)
	case a.input != nil:
		return "asks " + a.keys()
	case a.result == nil:
		return string(a.raw)
	}
	words := ""
	if a.result.IsError != nil && *a.result.IsError {
		words = "failed: "
	}
	for i, b := range a.result.Content {
		text := b.(*modern.TextContent).Text
		if strings.HasPrefix(text, "\n[thread ") {
			continue // it names the thread for the client's model
		}
		if i > 0 {
			words += " | "
		}
		words += text
	}
	return words
}

// structure returns the structured content of a result.
type structure struct {
	ThreadID, Content, Status string
	Threads                   []struct{ ThreadID, Content, Status, Since string }
}

func (a answer) structured() (s structure) {
	if a.result != nil {
		_ = json.Unmarshal(a.result.StructuredContent, &s) // the zero value shows in the test
	}
	return s
}

func noFile(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is there (%v)", path, err)
	}
}

// pass waits in a synctest bubble.
func pass(d time.Duration) { <-time.After(d) }
