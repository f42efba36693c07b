package rollout_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/native/internal/rollout"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestTurns reads the lines of turns; the time of each line is its number in seconds.
func TestTurns(t *testing.T) {
	at := func(second int) time.Time { return time.Date(2025, 9, 30, 10, 0, second, 0, time.UTC) }
	const (
		begins   = `codex_mcp {"kind":"turn_begins","turn":"k","pid":7,"mark":"m"}`
		said     = `event_msg {"type":"user_message","message":"hi"}`
		hi       = `response_item {"type":"message","role":"user","content":[]}`
		request  = `turn_context {"cwd":"/","model":"m"}`
		call     = `response_item {"type":"function_call","name":"shell","arguments":"{}","call_id":"c"}`
		response = `codex_mcp {"kind":"response_ends"}`
		asks     = `codex_mcp {"kind":"call_asks","call":"c"}`
		approved = `codex_mcp {"kind":"call_approved","call":"c"}`
		refused  = `codex_mcp {"kind":"call_refused","call":"c","output":"no","aborts":true}`
		starts   = `codex_mcp {"kind":"call_begins","call":"c","tool":"fetch"}`
		output   = `response_item {"type":"function_call_output","call_id":"c","output":"ok"}`
		message  = `codex_mcp {"kind":"message"}`
		goesOn   = `codex_mcp {"kind":"turn_continues","pid":8}`
		ends     = `codex_mcp {"kind":"turn_ends","turn":"k","end":{"error":"e"}}`
		replaced = `compacted {"message":"s","replacement_history":[{"type":"message","role":"user","content":[]}]}`
	)
	first := rollout.Record{Kind: rollout.TurnBegins, Turn: "k", PID: 7, Mark: "m"}
	begun := &rollout.Record{Kind: rollout.CallBegins, Call: "c", Tool: "fetch"}
	no := &rollout.Record{Kind: rollout.CallRefused, Call: "c", Output: "no", Aborts: true}
	one := func(t rollout.Turn) []*rollout.Turn {
		t.First, t.PID, t.Begun = first, max(t.PID, 7), at(0)
		if t.Marks == nil {
			t.Marks = []string{"m"}
		}
		return []*rollout.Turn{&t}
	}
	calls := func(c rollout.Call) map[string]*rollout.Call { return map[string]*rollout.Call{"c": &c} }
	for _, tt := range []struct {
		name  string
		lines []string
		want  []*rollout.Turn
	}{
		{"without a turn", []string{said, hi, request, asks, response, output}, nil},
		{"two requests", []string{begins, said, hi, request, call, response, request}, one(rollout.Turn{Heard: at(6), Requests: 2, Items: 2})},
		{"a response that is not whole", []string{begins, said, hi, request, call}, one(rollout.Turn{Heard: at(4), Requests: 1, Items: 2, Rest: 2})},
		{"a response that was cut off", []string{begins, said, hi, asks, `codex_mcp {"kind":"response_ends","cut":"length"}`}, one(rollout.Turn{Heard: at(4), Items: 1, Cut: "length"})},
		{"asked, and again", []string{begins, said, asks, asks}, one(rollout.Turn{Heard: at(3), Calls: calls(rollout.Call{Asks: at(2)})})},
		{"approved", []string{begins, said, asks, refused, approved}, one(rollout.Turn{Heard: at(4), Calls: calls(rollout.Call{})})},
		{"refused", []string{begins, said, asks, refused}, one(rollout.Turn{Heard: at(3), Calls: calls(rollout.Call{Refused: no})})},
		{"asked after a refusal", []string{begins, said, asks, refused, asks}, one(rollout.Turn{Heard: at(4), Calls: calls(rollout.Call{Asks: at(4)})})},
		{"begun", []string{begins, said, asks, starts}, one(rollout.Turn{Heard: at(3), Calls: calls(rollout.Call{Begins: begun})})},
		{"begun, and asked outside of the sandbox", []string{begins, said, starts, asks}, one(rollout.Turn{Heard: at(3), Calls: calls(rollout.Call{Begins: begun, Asks: at(3)})})},
		{"answered", []string{begins, said, call, response, starts, output}, one(rollout.Turn{Heard: at(5), Items: 2, Rest: 1})},
		{"continued", []string{begins, said, `codex_mcp {"kind":"turn_continues","pid":8,"mark":"n"}`, `codex_mcp {"kind":"turn_continues","pid":9}`},
			one(rollout.Turn{Heard: at(3), PID: 9, Marks: []string{"m", "n"}, Continued: 2})},
		{"continued while it only waited", []string{begins, said, call, response, asks, goesOn, asks, goesOn, asks, asks, goesOn}, one(rollout.Turn{Heard: at(10), PID: 8, Items: 1, Calls: calls(rollout.Call{Asks: at(4)})})},
		{"continued before it asked again", []string{begins, said, asks, goesOn, goesOn, asks}, one(rollout.Turn{Heard: at(5), PID: 8, Continued: 1, Calls: calls(rollout.Call{Asks: at(2)})})},
		{"continued after a decision", []string{begins, said, asks, approved, goesOn}, one(rollout.Turn{Heard: at(4), PID: 8, Continued: 1, Calls: calls(rollout.Call{})})},
		{"continued after more than a question", []string{begins, said, asks, hi, goesOn, asks, request, goesOn, asks, starts, goesOn},
			one(rollout.Turn{Heard: at(10), PID: 8, Continued: 3, Requests: 1, Items: 1, Rest: 1, Calls: calls(rollout.Call{Begins: begun})})},
		{"a further message", []string{begins, said, message, said}, one(rollout.Turn{Heard: at(3)})},
		{"a message of another program", []string{begins, said, said}, one(rollout.Turn{Heard: at(2), Foreign: true})},
		{"ended", []string{begins, said, ends, said}, one(rollout.Turn{Heard: at(3), End: &rollout.End{Error: "e"}})},
		{"with another turn after it", []string{begins, said, `codex_mcp {"kind":"turn_begins","turn":"l"}`}, append(one(rollout.Turn{Heard: at(2), Foreign: true}),
			&rollout.Turn{First: rollout.Record{Kind: rollout.TurnBegins, Turn: "l"}, Begun: at(2), Heard: at(2)})},
		{"the end of another turn", []string{`codex_mcp {"kind":"turn_ends","turn":"l","end":{}}`},
			[]*rollout.Turn{{First: rollout.Record{Kind: rollout.TurnEnds, Turn: "l", End: &rollout.End{}}, Begun: at(0), Heard: at(0), End: &rollout.End{}}}},
		{"compacted", []string{begins, said, hi, call, call, replaced, call}, one(rollout.Turn{Heard: at(6), Items: 2, Rest: 1})},
		{"what is no record", []string{begins, `codex_mcp []`}, one(rollout.Turn{Heard: at(1)})},
	} {
		var in strings.Builder
		in.WriteString(`{"timestamp":"t","type":"session_meta","payload":{"id":"` + id + `"}}` + "\n")
		for i, line := range tt.lines {
			kind, payload, _ := strings.Cut(line, " ")
			fmt.Fprintf(&in, `{"timestamp":"2025-09-30T10:00:%02d.000Z","type":"%s","payload":%s}`+"\n", i, kind, payload)
		}
		r, err := rollout.Read(strings.NewReader(in.String()))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(tt.want, r.Turns, cmpopts.IgnoreUnexported(rollout.Turn{}), cmpopts.EquateEmpty()); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, d)
		}
		var open *rollout.Turn
		if n := len(r.Turns); n > 0 && r.Turns[n-1].End == nil && !r.Turns[n-1].Foreign {
			open = r.Turns[n-1]
		}
		if r.Open() != open || r.Turn("") != nil || r.Turn("x") != nil || tt.want != nil && r.Turn(tt.want[0].First.Turn) != r.Turns[0] {
			t.Errorf("%s: open %v", tt.name, r.Open())
		}
	}
}

func TestOldTurnsAreLeftOut(t *testing.T) {
	w := create(t)
	for i := range 18 {
		if err := w.Record(rollout.Record{Kind: rollout.TurnBegins, Turn: fmt.Sprint(i)}, i == 17); err != nil {
			t.Fatal(err)
		}
	}
	r, err := rollout.Load(w.Path())
	if err != nil || len(r.Turns) != 16 || r.Turns[0].First.Turn != "2" {
		t.Errorf("%v, %v", r.Turns, err)
	}
}

func TestIDOf(t *testing.T) {
	const begin = "rollout-2025-09-30T10-11-12-"
	for name, want := range map[string]string{
		begin + id + ".jsonl": id, "/a/" + begin + id + ".jsonl": id, begin[1:] + id + ".jsonl": "", begin + id: "", begin + id + ".json": "",
		begin + id + "0.jsonl": "", begin + id[1:] + ".jsonl": "", begin + strings.Replace(id, "0", "x", 1) + ".jsonl": "",
	} {
		if got, ok := rollout.IDOf(name); ok != (want != "") || ok && got != want {
			t.Errorf("%s: %q, %t", name, got, ok)
		}
	}
}
