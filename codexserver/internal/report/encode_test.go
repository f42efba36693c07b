package report_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/repo"
	"github.com/codexmcp/codexmcp/codexserver/internal/report"
	"github.com/codexmcp/codexmcp/codexserver/internal/turnlog"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

func TestJSON(t *testing.T) {
	r := report.Report{
		ThreadID: "t1", Content: "done", Output: jsontext.Value(`{ "a": 1 }`), Status: turnlog.Completed, Model: turnlog.Model{Name: "m", Rerouted: slices.Repeat([]protocol.ModelReroute{{FromProvider: "a", FromModel: "k", ToProvider: "b\n", ToModel: "m", Reason: "its limit\u202e"}}, 9)}, Duration: 1500 * time.Millisecond,
		Usage: &turnlog.Usage{
			Turn:   protocol.TokenUsage{InputTokens: 10, CachedInputTokens: 4, OutputTokens: 3, ReasoningOutputTokens: 1, TotalTokens: 13},
			Thread: protocol.TokenUsage{InputTokens: 30, CachedInputTokens: 4, OutputTokens: 9, ReasoningOutputTokens: 2, TotalTokens: 39},
		},
		Plan: []protocol.PlanStep{{Step: "look", Status: "completed"}},
		Changes: report.Changes{From: report.FromTree, List: []report.Change{
			{Change: repo.Change{Path: "a\nb\xff\u202e", Kind: repo.Update, Lines: &repo.Lines{Added: 2, Removed: 1}}, Origin: report.ByPatch},
			{Change: repo.Change{Path: "new", From: "old", Kind: repo.Rename, Lines: &repo.Lines{}}, Origin: report.ByOther},
			{Change: repo.Change{Path: "x.png", Kind: repo.Add}},
		}, Unknown: []repo.Gap{{Path: "sub/\n", Why: "it is too large"}}},
		Commands: []turnlog.Command{
			{Shown: "go test", Cwd: "/w", Exit: &turnlog.Exit{Code: 1, Duration: time.Second}, ApprovedBy: approval.ByClient},
			{Shown: "sleep 9", Cwd: "/w"},
		},
		Refused: []turnlog.Refusal{{Kind: "command", What: "git push", Cwd: "/w", Why: "declined", By: approval.ByDesk, Reason: elicit.ReasonDeclined}},
	}
	const want = `{
	"threadId": "t1",
	"content": "done",
	"output": {"a": 1},
	"status": "completed",
	"model": "m",
	"rerouted": [
		{"fromProvider": "a", "fromModel": "k", "toProvider": "b\\n", "toModel": "m", "reason": "its limit\\u{202e}"},
		{"fromProvider": "a", "fromModel": "k", "toProvider": "b\\n", "toModel": "m", "reason": "its limit\\u{202e}"},
		{"fromProvider": "a", "fromModel": "k", "toProvider": "b\\n", "toModel": "m", "reason": "its limit\\u{202e}"}
	],
	"durationMs": 1500,
	"usage": {
		"turn": {"input": 10, "cached": 4, "output": 3, "reasoning": 1},
		"thread": {"input": 30, "cached": 4, "output": 9, "reasoning": 2}
	},
	"plan": [{"step": "look", "status": "completed"}],
	"changesFrom": "tree",
	"changes": [
		{"path": "\"a\\nb\\377\\342\\200\\256\"", "kind": "update", "added": 2, "removed": 1, "by": "patch"},
		{"path": "new", "from": "old", "kind": "rename", "added": 0, "removed": 0, "by": "other"},
		{"path": "x.png", "kind": "add"}
	],
	"unknown": [{"path": "\"sub/\\n\"", "why": "it is too large"}],
	"commands": [
		{"command": "go test", "cwd": "/w", "exitCode": 1, "durationMs": 1000, "approvedBy": "client"},
		{"command": "sleep 9", "cwd": "/w"}
	],
	"refused": [{"kind": "command", "what": "git push", "cwd": "/w", "why": "declined", "by": "desk", "reason": "declined"}]
}`
	got := r.JSON(0)
	check(t, schema(t), got, setting.DefaultResult)
	if d := cmp.Diff(compact(t, want), string(got)); d != "" {
		t.Error("(-want +got)\n" + d)
	}
}

func compact(t *testing.T, text string) string {
	t.Helper()
	v := jsontext.Value(text)
	if err := v.Compact(); err != nil {
		t.Fatal(err)
	}
	return string(v)
}

// shape has the members of an encoded report that the tests check.
type shape struct {
	Content   string           `json:"content"`
	Output    jsontext.Value   `json:"output"`
	Changes   []jsontext.Value `json:"changes"`
	Commands  []jsontext.Value `json:"commands"`
	Refused   []jsontext.Value `json:"refused"`
	Plan      []jsontext.Value `json:"plan"`
	Truncated map[string]int   `json:"truncated"`
}

func shapeOf(t testing.TB, out []byte) shape {
	t.Helper()
	var s shape
	if err := json.Unmarshal(out, &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestJSONCutsTheLongest checks that only the longest members are cut.
func TestJSONCutsTheLongest(t *testing.T) {
	strict := schema(t)
	for _, tt := range []struct {
		name string
		r    report.Report
		cut  []string // the members that are cut
	}{
		{"changes", report.Report{Content: strings.Repeat("word ", 1000), Changes: report.Changes{List: changesOf(10_000)}, Commands: commandsOf(50)}, []string{"changes"}},
		{"commands", report.Report{Changes: report.Changes{List: changesOf(100)}, Commands: commandsOf(5000)}, []string{"commands"}},
		{"content", report.Report{Content: strings.Repeat("é", 1<<20), Changes: report.Changes{List: changesOf(100)}}, []string{"content"}},
		{"content that grows when it is quoted", report.Report{Content: strings.Repeat("\x01\xff", 1<<20)}, []string{"content"}},
		{"content of half characters", report.Report{Content: strings.Repeat("\x80", 1<<20)}, []string{"content"}},
		{"output", report.Report{Output: jsontext.Value(`"` + strings.Repeat("x", 90_000) + `"`)}, []string{"output"}},
		{"all", report.Report{
			Content: strings.Repeat("x", 90_000), Output: jsontext.Value(`"` + strings.Repeat("x", 90_000) + `"`), Changes: report.Changes{List: changesOf(10_000)},
			Commands: commandsOf(5000), Refused: refusalsOf(5000), Plan: planOf(5000),
		}, []string{"changes", "commands", "content", "output", "plan", "refused"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out := tt.r.JSON(0)
			check(t, strict, out, setting.DefaultResult)
			got := shapeOf(t, out)
			if d := cmp.Diff(tt.cut, keys(got.Truncated)); d != "" {
				t.Error("cut (-want +got)\n" + d)
			}
			if len(out) < setting.DefaultResult*3/4 && len(tt.cut) == 1 && tt.cut[0] != "output" {
				t.Errorf("only %d bytes", len(out))
			}
			for name, sum := range map[string][2]int{
				"changes":  {len(got.Changes) + got.Truncated["changes"], len(tt.r.Changes.List)},
				"commands": {len(got.Commands) + got.Truncated["commands"], len(tt.r.Commands)},
				"refused":  {len(got.Refused) + got.Truncated["refused"], len(tt.r.Refused)},
				"plan":     {len(got.Plan) + got.Truncated["plan"], len(tt.r.Plan)},
			} {
				if sum[0] != sum[1] {
					t.Errorf("%s: %d including omitted ones, want %d", name, sum[0], sum[1])
				}
			}
			if n := len(got.Commands); n > 0 && !strings.Contains(string(got.Commands[n-1]), fmt.Sprintf(" %d", len(tt.r.Commands)-1)) {
				t.Errorf("the last command is %s", got.Commands[n-1])
			}
		})
	}
}

func changesOf(n int) []report.Change {
	var list []report.Change
	for i := range n {
		list = append(list, report.Change{Change: repo.Change{Path: fmt.Sprintf("folder/%d.go", i), Kind: repo.Add, Lines: &repo.Lines{Added: i}}})
	}
	return list
}

func commandsOf(n int) []turnlog.Command {
	var list []turnlog.Command
	for i := range n {
		list = append(list, turnlog.Command{Shown: fmt.Sprintf("run %d", i), Cwd: "/w", Exit: &turnlog.Exit{}})
	}
	return list
}

func refusalsOf(n int) []turnlog.Refusal {
	var list []turnlog.Refusal
	for i := range n {
		list = append(list, turnlog.Refusal{Kind: "other", What: fmt.Sprint("w", i), Why: "declined"})
	}
	return list
}

func planOf(n int) []protocol.PlanStep {
	var list []protocol.PlanStep
	for i := range n {
		list = append(list, protocol.PlanStep{Step: fmt.Sprint("step ", i), Status: "pending"})
	}
	return list
}

func keys(m map[string]int) []string {
	var names []string
	for _, name := range []string{"changes", "commands", "content", "output", "plan", "refused"} {
		if m[name] > 0 {
			names = append(names, name)
		}
	}
	return names
}

// TestJSONOfBadOutput checks that output is left out if it is not JSON that every reader
// accepts.
func TestJSONOfBadOutput(t *testing.T) {
	for _, output := range []string{`{`, `{"a":1,"a":2}`, ``, `1 2`, strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000)} {
		r := report.Report{Output: jsontext.Value(output)}
		out := r.JSON(0)
		check(t, schema(t), out, setting.DefaultResult)
		if got := shapeOf(t, out); got.Output != nil {
			t.Errorf("%.20s: output %.20s", output, got.Output)
		}
	}
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
		c := newWatch(report.Options{})
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
		r := c.Report()
		r.Content, r.Output = strings.Repeat(content, n(6)%300), jsontext.Value(output)
		want := max(int(limit), report.MinLimit)
		if limit == 0 {
			want = setting.DefaultResult
		}
		out := r.JSON(int(limit))
		check(t, strict, out, want)
		got := shapeOf(t, out)
		if len(got.Commands)+got.Truncated["commands"] != commands || len(got.Changes)+got.Truncated["changes"] != len(patch) {
			t.Errorf("%d commands, %d changes, %v", len(got.Commands), len(got.Changes), got.Truncated)
		}
	})
}

// TestLeast fills the members of the smallest report that are never cut.
func TestLeast(t *testing.T) {
	for _, char := range []string{"x", `"`, "\\", "\x01", "\xff", "é", "\u2028"} {
		long := strings.Repeat(char, 1000)
		m := protocol.ModelReroute{FromProvider: long, FromModel: long, ToProvider: long, ToModel: long, Reason: long}
		r := &report.Report{ThreadID: long, Stopped: long, Content: long, Model: turnlog.Model{Name: long, Rerouted: []protocol.ModelReroute{m, m, m}}}
		out := r.JSON(report.MinLimit)
		if len(out) > report.MinLimit || !strings.Contains(string(out), `"rerouted":[{`) {
			t.Errorf("%q: %d bytes: %s", char, len(out), out)
		}
	}
}
