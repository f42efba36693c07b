package rollout_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native/internal/rollout"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestTurns reads the lines of turns.
func TestTurns(t *testing.T) {
	const (
		begins   = `event_msg {"type":"task_started","turn_id":"k","model_context_window":null}`
		other    = `event_msg {"type":"task_started","turn_id":"l","model_context_window":null}`
		said     = `event_msg {"type":"user_message","message":"hi"}`
		hi       = `response_item {"type":"message","role":"user","content":[]}`
		call     = `response_item {"type":"function_call","name":"shell","arguments":"{}","call_id":"c"}`
		ends     = `event_msg {"type":"task_complete","turn_id":"k","last_agent_message":"bye"}`
		fails    = `event_msg {"type":"error","message":"e"}`
		aborts   = `event_msg {"type":"turn_aborted","turn_id":"k","reason":"interrupted"}`
		replaced = `compacted {"message":"s","replacement_history":[{"type":"message","role":"user","content":[]}]}`
	)
	bye := protocol.TaskComplete{TurnID: "k", LastAgentMessage: new("bye")}
	for _, tt := range []struct {
		name  string
		lines []string
		want  []rollout.Turn
	}{
		{"without a turn", []string{said, hi, call, ends}, nil},
		{"a beginning alone", []string{hi, begins}, []rollout.Turn{{ID: "k"}}},
		{"a call", []string{hi, begins, hi, said, call}, []rollout.Turn{{ID: "k", Items: 2, Said: true}}},
		{"continued", []string{begins, hi, said, call, begins, hi, said}, []rollout.Turn{{ID: "k", Items: 3, Said: true}}},
		{"ended", []string{begins, hi, said, ends, hi}, []rollout.Turn{{ID: "k", Items: 2, Said: true, End: bye}}},
		{"ended twice", []string{begins, hi, said, ends, fails}, []rollout.Turn{{ID: "k", Items: 1, Said: true, End: bye}}},
		{"failed", []string{begins, hi, said, fails}, []rollout.Turn{{ID: "k", Items: 1, Said: true, End: protocol.Error{Message: "e"}}}},
		{"aborted", []string{begins, aborts}, []rollout.Turn{{ID: "k", End: protocol.TurnAborted{TurnID: "k", Reason: "interrupted"}}}},
		{"again after its end", []string{begins, ends, begins}, []rollout.Turn{{ID: "k", End: bye}, {ID: "k"}}},
		{"with another turn after it", []string{begins, hi, said, other, hi}, []rollout.Turn{{ID: "k", Items: 2, Said: true}, {ID: "l", Items: 1}}},
		{"compacted", []string{begins, hi, call, call, replaced, call}, []rollout.Turn{{ID: "k", Items: 2}}},
		{"what is no event", []string{begins, `event_msg {"type":"task_started","turn_id":7}`}, []rollout.Turn{{ID: "k"}}},
	} {
		var in strings.Builder
		in.WriteString(`{"timestamp":"t","type":"session_meta","payload":{"id":"` + id + `"}}` + "\n")
		for _, line := range tt.lines {
			kind, payload, _ := strings.Cut(line, " ")
			fmt.Fprintf(&in, `{"timestamp":"2025-09-30T10:00:00.000Z","type":"%s","payload":%s}`+"\n", kind, payload)
		}
		r, err := rollout.Read(strings.NewReader(in.String()))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(tt.want, r.Turns, cmpopts.IgnoreUnexported(rollout.Turn{}), cmpopts.EquateEmpty()); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, d)
		}
		for _, raw := range r.Events {
			if strings.Contains(string(raw), "task_") || strings.Contains(string(raw), `"error"`) {
				t.Errorf("%s: the past shows %s", tt.name, raw)
			}
		}
		if last := r.Last(); (last == nil) != (tt.want == nil) || last != nil && last.ID != tt.want[len(tt.want)-1].ID {
			t.Errorf("%s: last %v", tt.name, last)
		}
	}
}

func TestOldTurnsAreLeftOut(t *testing.T) {
	w := create(t)
	for i := range 18 {
		if err := w.Event(protocol.TaskStarted{TurnID: fmt.Sprint("turn-", i)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Durable(); err != nil {
		t.Fatal(err)
	}
	r, err := rollout.Load(w.Path())
	if err != nil || len(r.Turns) != 16 || r.Turns[0].ID != "turn-2" {
		t.Errorf("%v, %v", r.Turns, err)
	}
}
