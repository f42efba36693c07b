package turn_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/changes"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// readBack returns the result that a text has.
func readBack(t testing.TB, out []byte) (r protocol.TurnResult) {
	t.Helper()
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// FuzzJSON checks that any report is encoded as JSON within the limit and matches the schema.
func FuzzJSON(f *testing.F) {
	f.Add([]byte("\x00\x00\x10\x00"), "content", "argv", "path", `{"a":[1]}`, uint16(0))
	f.Add([]byte("\xff\xff\xff\xff\xff\xff\xff\xff"), strings.Repeat("\x80", 2000), "\x1b[2J\u202e", "a\nb\xff", `"x"`, uint16(5000))
	f.Add([]byte("0123456789abcdef"), "\U0001f600", "", "…", "null", uint16(65535))
	strict := schema(f)
	f.Fuzz(func(t *testing.T, seed []byte, content, argv, path, output string, limit uint16) {
		if len(content)+len(argv)+len(path) > 4096 {
			return // the texts are repeated below
		}
		seed = append(seed, make([]byte, 32)...)
		n := func(i int) int { return int(binary.LittleEndian.Uint16(seed[2*i:])) }
		commands := n(0) % 10
		if commands == 9 { // a few reports have more than a collector keeps
			commands = n(0) % 1100
		}
		c := newWatch(changes.Options{})
		c.Begin(t.Context(), protocol.SessionConfigured{SessionID: path, Model: argv}, nil)
		for i := range commands {
			command := []string{argv, strings.Repeat(argv, n(1)%20)}
			id := fmt.Sprint(i % 7)
			request := protocol.ExecApprovalRequest{CallID: id, Command: command, Cwd: path}
			c.Event(request)
			decision := approval.Decision{Outcome: elicit.Outcome{Decision: elicit.Denied, Feedback: content, Reason: elicit.Reason(elicit.ReasonDeclined)}, By: approval.Decider(argv)}
			if i%2 == 0 {
				decision.Decision = elicit.Approved
			}
			c.Decided(&approval.Request{Event: request, Question: &elicit.Question{Message: content}}, decision)
			c.Event(protocol.ExecCommandBegin{CallID: id, Command: command, Cwd: path})
			c.Event(protocol.ExecCommandEnd{CallID: id, ExitCode: n(2), Duration: protocol.Duration(n(3))})
		}
		patch := map[string]protocol.FileChange{}
		for i := range n(4) % 30 {
			patch[fmt.Sprint(path, i)] = protocol.FileChange{Add: &protocol.FileContent{Content: content}}
		}
		c.Event(protocol.PatchApplyBegin{CallID: "p", Changes: patch})
		c.Event(protocol.PatchApplyEnd{CallID: "p", Success: true})
		c.Event(protocol.PlanUpdate{Plan: []protocol.PlanStep{{Step: content, Status: path}}})
		c.Event(protocol.TokenCount{
			Info:       &protocol.TokenUsageInfo{TotalTokenUsage: protocol.TokenUsage{InputTokens: math.MaxInt64, OutputTokens: math.MinInt64}},
			RateLimits: &protocol.RateLimits{Primary: &protocol.RateLimitWindow{UsedPercent: math.Inf(n(5)%2 - 1)}},
		})
		c.End(nil)
		r := c.So()
		r.Content, r.Output = strings.Repeat(content, n(6)%300), jsontext.Value(output)
		want := max(int(limit), protocol.MinResult)
		out := r.JSON(int(limit))
		check(t, strict, out, want)
		got := readBack(t, out)
		if len(got.Commands)+got.Truncated.Commands != commands || len(got.Changes)+got.Truncated.Changes != len(patch) {
			t.Errorf("%d commands, %d changes, %v", len(got.Commands), len(got.Changes), got.Truncated)
		}
	})
}

// TestLeast fills the members of the smallest result that are never cut.
func TestLeast(t *testing.T) {
	for _, char := range []string{"x", `"`, "\\", "\x01", "\xff", "é", "\u2028"} {
		long := strings.Repeat(char, 1000)
		c := newWatch(changes.Options{})
		c.Begin(t.Context(), protocol.SessionConfigured{SessionID: long, Model: long}, nil)
		for range 4 {
			c.Event(protocol.ModelReroute{FromProvider: long, FromModel: long, ToProvider: long, ToModel: long, Reason: long})
		}
		c.End(nil)
		r := c.So()
		r.Content = long
		out := r.JSON(protocol.MinResult)
		if len(out) > protocol.MinResult || !strings.Contains(string(out), `"rerouted":[{`) {
			t.Errorf("%q: %d bytes: %s", char, len(out), out)
		}
	}
}
