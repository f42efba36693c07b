package mcp_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/mcptypes/modern"
)

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
