package protocol_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// limit is the usual size of a result.
const limit = 45_000

// TestTurnResult encodes all members, and reads them back.
func TestTurnResult(t *testing.T) {
	r := protocol.TurnResult{
		ThreadID: "t1", Content: "done", Output: jsontext.Value(`{ "a": 1 }`), Status: protocol.StatusCompleted, Model: "m", DurationMS: 1500,
		Rerouted: slices.Repeat([]protocol.Rerouted{{FromProvider: "a", FromModel: "k", ToProvider: "b", ToModel: "m", Reason: "its limit"}}, 3),
		Usage:    &protocol.TurnUsage{Turn: protocol.Tokens{Input: 10, Cached: 4, Output: 3, Reasoning: 1}, Thread: protocol.Tokens{Input: 30, Cached: 4, Output: 9, Reasoning: 2}},
		Plan:     []protocol.PlanStep{{Step: "look", Status: "completed"}}, ChangesFrom: protocol.ChangesFromTree,
		Changes: []protocol.Change{
			{Path: "a\xffb", Kind: "update", Added: new(2), Removed: new(1), By: protocol.ByPatch},
			{Path: "new", From: "old", Kind: "rename", Added: new(0), Removed: new(0), By: protocol.ByOther},
			{Path: "x.png", Kind: "add"},
		},
		Unknown: []protocol.Unknown{{Path: "sub/", Why: "it is too large"}},
		Commands: []protocol.Command{
			{Command: "go test", Cwd: "/w", ExitCode: new(1), DurationMS: new(int64(1000)), ApprovedBy: "client"}, {Command: "sleep 9", Cwd: "/w"},
		},
		Refused: []protocol.Refusal{{Kind: "command", What: "git push", Cwd: "/w", Why: "declined", By: "desk", Reason: "declined"}},
		Missing: []protocol.Missing{{Server: "db", Why: "exit status 3"}},
	}
	const want = `{
	"threadId": "t1",
	"content": "done",
	"output": {"a": 1},
	"status": "completed",
	"model": "m",
	"rerouted": [
		{"fromProvider": "a", "fromModel": "k", "toProvider": "b", "toModel": "m", "reason": "its limit"},
		{"fromProvider": "a", "fromModel": "k", "toProvider": "b", "toModel": "m", "reason": "its limit"},
		{"fromProvider": "a", "fromModel": "k", "toProvider": "b", "toModel": "m", "reason": "its limit"}
	],
	"durationMs": 1500,
	"usage": {
		"turn": {"input": 10, "cached": 4, "output": 3, "reasoning": 1},
		"thread": {"input": 30, "cached": 4, "output": 9, "reasoning": 2}
	},
	"plan": [{"step": "look", "status": "completed"}],
	"changesFrom": "tree",
	"changes": [
		{"path": "a�b", "kind": "update", "added": 2, "removed": 1, "by": "patch"},
		{"path": "new", "from": "old", "kind": "rename", "added": 0, "removed": 0, "by": "other"},
		{"path": "x.png", "kind": "add"}
	],
	"unknown": [{"path": "sub/", "why": "it is too large"}],
	"commands": [
		{"command": "go test", "cwd": "/w", "exitCode": 1, "durationMs": 1000, "approvedBy": "client"},
		{"command": "sleep 9", "cwd": "/w"}
	],
	"refused": [{"kind": "command", "what": "git push", "cwd": "/w", "why": "declined", "by": "desk", "reason": "declined"}],
	"missing": [{"server": "db", "why": "exit status 3"}]
}`
	got := r.JSON(limit)
	compact := jsontext.Value(want)
	must.OK(t, compact.Compact())
	must.Equal(t, "the result", string(compact), string(got))
	var back protocol.TurnResult
	if err := json.Unmarshal(got, &back); err != nil || string(back.JSON(limit)) != string(got) {
		t.Errorf("%v: %s", err, back.JSON(limit))
	}
}

// shape has the members of an encoded result that the tests check.
type shape struct {
	Output    jsontext.Value `json:"output"`
	Truncated map[string]int `json:"truncated"`
}

func shapeOf(t testing.TB, out []byte) shape {
	t.Helper()
	var s shape
	must.OK(t, json.Unmarshal(out, &s))
	return s
}

// TestJSONOfBadOutput checks that output is left out if it is not JSON that every reader accepts.
func TestJSONOfBadOutput(t *testing.T) {
	for _, output := range []string{`{`, `{"a":1,"a":2}`, ``, `1 2`, strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000)} {
		r := protocol.TurnResult{Output: jsontext.Value(output)}
		if out := r.JSON(limit); len(out) > limit || !jsontext.Value(out).IsValid() || shapeOf(t, out).Output != nil {
			t.Errorf("%.20s: %.200s", output, out)
		}
	}
}

// TestJSONCutsTheLongest checks that only the longest members are cut.
func TestJSONCutsTheLongest(t *testing.T) {
	for _, tt := range []struct {
		name string
		r    protocol.TurnResult
		cut  []string // the members that are cut
	}{
		{"changes", protocol.TurnResult{Content: strings.Repeat("word ", 1000), Changes: changesOf(10_000), Commands: commandsOf(50)}, []string{"changes"}},
		{"commands", protocol.TurnResult{Changes: changesOf(100), Commands: commandsOf(5000)}, []string{"commands"}},
		{"content", protocol.TurnResult{Content: strings.Repeat("é", 1<<20), Changes: changesOf(100)}, []string{"content"}},
		{"content that grows when it is quoted", protocol.TurnResult{Content: strings.Repeat("\x01\xff", 1<<20)}, []string{"content"}},
		{"content of half characters", protocol.TurnResult{Content: strings.Repeat("\x80", 1<<20)}, []string{"content"}},
		{"output", protocol.TurnResult{Output: jsontext.Value(`"` + strings.Repeat("x", 90_000) + `"`)}, []string{"output"}},
		{"all", protocol.TurnResult{
			Content: strings.Repeat("x", 90_000), Output: jsontext.Value(`"` + strings.Repeat("x", 90_000) + `"`), Changes: changesOf(10_000),
			Commands: commandsOf(5000),
			Refused: list(5000, func(i int) protocol.Refusal {
				return protocol.Refusal{Kind: "other", What: fmt.Sprint("w", i), Why: "declined"}
			}),
			Plan: list(5000, func(i int) protocol.PlanStep {
				return protocol.PlanStep{Step: fmt.Sprint("step ", i), Status: "pending"}
			}),
			Missing: list(1000, func(i int) protocol.Missing {
				return protocol.Missing{Server: fmt.Sprint("server", i), Why: "exit status 1"}
			}),
		}, []string{"changes", "commands", "content", "missing", "output", "plan", "refused"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out := tt.r.JSON(limit)
			if len(out) > limit {
				t.Errorf("%d bytes", len(out))
			}
			got := shapeOf(t, out)
			must.Equal(t, "cut", tt.cut, slices.Sorted(maps.Keys(got.Truncated)))
			if len(out) < limit*3/4 && len(tt.cut) == 1 && tt.cut[0] != "output" {
				t.Errorf("only %d bytes", len(out))
			}
		})
	}
}

func list[T any](n int, element func(i int) T) []T {
	all := make([]T, n)
	for i := range all {
		all[i] = element(i)
	}
	return all
}

func changesOf(n int) []protocol.Change {
	return list(n, func(i int) protocol.Change {
		return protocol.Change{Path: fmt.Sprintf("folder/%d.go", i), Kind: "add", Added: &i, Removed: new(int)}
	})
}

func commandsOf(n int) []protocol.Command {
	return list(n, func(i int) protocol.Command {
		return protocol.Command{Command: fmt.Sprintf("run %d", i), Cwd: "/w", ExitCode: new(int), DurationMS: new(int64)}
	})
}

// TestFit gives a result too little room. What is kept and what is left out are together all of
// it: the first changes, the last commands and refusals, a text's beginning.
func TestFit(t *testing.T) {
	whole := protocol.TurnResult{ThreadID: "t", Content: strings.Repeat("é\n", 3000), Truncated: protocol.Truncated{Commands: 7, Refused: 8, Changes: 9, See: "codex-show"}}
	const n = 300
	for i := range n {
		whole.Plan = append(whole.Plan, protocol.PlanStep{Step: fmt.Sprint("step", i), Status: "pending"})
		whole.Commands = append(whole.Commands, protocol.Command{ID: i + 1, Command: "make"})
		whole.Refused = append(whole.Refused, protocol.Refusal{Kind: "other", What: fmt.Sprint("what", i)})
		whole.Changes = append(whole.Changes, protocol.Change{Path: fmt.Sprint("path", i), Kind: "add", By: protocol.ByPatch})
		whole.Unknown = append(whole.Unknown, protocol.Unknown{Path: fmt.Sprint("gap", i), Why: "why"})
	}
	for _, limit := range []int{1, 4096, 4097, 6000, 20_000} {
		text := whole.JSON(limit)
		var got protocol.TurnResult
		must.OK(t, json.Unmarshal(text, &got))
		if room := max(limit, 4096); len(text) > room || len(text) < room-room/5 {
			t.Errorf("limit %d: %d bytes", limit, len(text))
		}
		cut := got.Truncated
		if len(got.Content)+cut.Content != len(whole.Content) || !strings.HasPrefix(whole.Content, got.Content) || len(got.Plan)+cut.Plan != n || len(got.Commands)+cut.Commands != n+7 ||
			len(got.Refused)+cut.Refused != n+8 || len(got.Changes)+cut.Changes != n+9 || len(got.Unknown)+cut.Unknown != n || cut.See != "codex-show" {
			t.Errorf("limit %d: %d bytes, %d steps, %d commands, %d refusals, %d changes, %d gaps, and %+v", limit, len(got.Content), len(got.Plan), len(got.Commands), len(got.Refused), len(got.Changes), len(got.Unknown), cut)
		}
		for what, ok := range map[string]bool{
			"step": got.Plan[0].Step == "step0", "change": got.Changes[0].Path == "path0", "gap": got.Unknown[0].Path == "gap0",
			"command": got.Commands[len(got.Commands)-1].ID == n, "refusal": got.Refused[len(got.Refused)-1].What == "what299",
		} {
			if !ok {
				t.Errorf("limit %d: the wrong end of the list of a %s is left out", limit, what)
			}
		}
		again := got
		if again.Fit(limit); string(again.JSON(limit)) != string(text) {
			t.Errorf("limit %d: what fits is cut", limit)
		}
	}
	if len(whole.Plan) != n || whole.Truncated.Commands != 7 {
		t.Error("the whole result is changed")
	}
	short := protocol.TurnResult{ThreadID: "t", Truncated: protocol.Truncated{See: "codex-show"}}
	must.Equal(t, "a short one", `{"threadId":"t","content":"","durationMs":0,"changes":[],"commands":[],"refused":[]}`, string(short.JSON(limit)))
}
