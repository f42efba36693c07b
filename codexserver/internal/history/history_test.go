package history_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/history"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/google/go-cmp/cmp"
)

// good returns a history without faults: a free command, one that was approved after its
// server was killed, one that was interrupted, one that was refused, and a patch.
func good() *history.History {
	id := func(call string) history.ID { return history.ID{Thread: "t", Call: call} }
	const done = `{"output":"","metadata":{"exit_code":0}}`
	yes, no := history.Decision{Approves: true, By: "client"}, history.Decision{By: "client"}
	rule := history.Decision{Approves: true, By: "rule"}
	h := &history.History{
		Recorded: true,
		Calls:    map[history.ID]*history.Call{},
		Turns:    map[string]*history.Turn{"k": {Thread: "t", Key: "k", Begun: 2, Ended: 1}},
		Tasks:    []history.Task{{Name: "task", Thread: "t", Ended: true, Told: "it may have run, and was not run again"}},
		Free:     func(command []string) bool { return command[0] == "free" },
	}
	for _, c := range []history.Call{
		{ID: id("free"), Command: []string{"free"}, Begun: 1, Output: done, Effects: 1},
		{ID: id("rule"), Command: []string{"ls"}, Begun: 1, Output: done, Effects: 1, Decisions: []history.Decision{rule}},
		{ID: id("asked twice"), Command: []string{"rm"}, Begun: 1, Output: done, Effects: 1, Decisions: []history.Decision{yes}},
		{ID: id("cut"), Command: []string{"rm"}, Begun: 1, Cut: true, Output: "who knows", Effects: 1, Decisions: []history.Decision{yes}},
		{ID: id("refused"), Command: []string{"rm"}, Output: "the command was not run", Decisions: []history.Decision{no}},
		{ID: id("patch"), Patch: true, Begun: 1, Output: done, Effects: -1, Decisions: []history.Decision{yes},
			Files: []history.File{{Path: "/w/c", State: history.After}}},
		{ID: id("half"), Patch: true, Begun: 1, Cut: true, Output: "who knows", Effects: -1, Decisions: []history.Decision{yes},
			Files: []history.File{{Path: "/w/a", State: history.After}, {Path: "/w/b", State: history.Before}}},
	} {
		h.Calls[c.ID] = &c
	}
	return h
}

// TestPlanted plants one fault in a good history. The checker finds it.
func TestPlanted(t *testing.T) {
	if faults := good().Check(); faults != nil {
		t.Fatalf("a good history has faults: %v", faults)
	}
	of := func(h *history.History, call string) *history.Call {
		return h.Calls[history.ID{Thread: "t", Call: call}]
	}
	for name, tt := range map[string]struct {
		plant func(*history.History)
		want  history.Kind
	}{
		"a command twice":        {func(h *history.History) { of(h, "asked twice").Effects = 2 }, history.Twice},
		"a free command twice":   {func(h *history.History) { of(h, "free").Effects = 2 }, history.Twice},
		"no approval":            {func(h *history.History) { of(h, "asked twice").Decisions = nil }, history.Unapproved},
		"not free any more":      {func(h *history.History) { of(h, "free").Command[0] = "paid" }, history.Unapproved},
		"begun without approval": {func(h *history.History) { c := of(h, "cut"); c.Decisions, c.Effects = nil, 0 }, history.Unapproved},
		"ran although refused":   {func(h *history.History) { of(h, "refused").Effects = 1 }, history.AfterDenial},
		"begun although refused": {func(h *history.History) { of(h, "refused").Begun++ }, history.AfterDenial},
		"refused after it was approved": {func(h *history.History) {
			c := of(h, "cut")
			c.Decisions = append(c.Decisions, history.Decision{By: "desk"})
		}, history.AfterDenial},
		"one approval for two":           {func(h *history.History) { of(h, "cut").Begun++ }, history.OneForTwo},
		"no record before the effect":    {func(h *history.History) { of(h, "free").Begun = 0 }, history.Unrecorded},
		"a patch is half applied":        {func(h *history.History) { of(h, "half").Cut = false }, history.HalfPatch},
		"only the model knows":           {func(h *history.History) { h.Tasks[0].Told = "done" }, history.Unsaid},
		"a part of a file":               {func(h *history.History) { of(h, "patch").Files[0].State = history.Other }, history.HalfPatch},
		"a patch that is not there":      {func(h *history.History) { of(h, "patch").Files[0].State = history.Before }, history.Missing},
		"a command that did nothing":     {func(h *history.History) { of(h, "free").Effects = 0 }, history.Missing},
		"an effect nobody was told of":   {func(h *history.History) { of(h, "cut").Cut = false }, history.Untold},
		"a beginning nobody was told of": {func(h *history.History) { c := of(h, "cut"); c.Cut, c.Effects = false, 0 }, history.Untold},
		"a task without an end":          {func(h *history.History) { h.Tasks[0].Ended = false }, history.NoEnd},
		"a turn without an end":          {func(h *history.History) { h.Turns["k"].Ended = 0 }, history.NoEnd},
		"a turn with two ends":           {func(h *history.History) { h.Turns["k"].Ended = 2 }, history.TwoEnds},
		"a process is left":              {func(h *history.History) { h.Left = []string{"1 sleep"} }, history.LeftOver},
		"a call that nobody answered":    {func(h *history.History) { of(h, "free").Output = "" }, history.Unanswered},
	} {
		t.Run(name, func(t *testing.T) {
			h := good()
			tt.plant(h)
			faults := h.Check()
			if !slices.ContainsFunc(faults, func(f history.Fault) bool { return f.Kind == tt.want }) {
				t.Errorf("found %v, want %q", faults, tt.want)
			}
		})
	}
}

// lines writes a file with lines, of which the last one may lack its end, and returns its path.
func lines(t *testing.T, all ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	must.OK(t, os.WriteFile(path, []byte(strings.Join(all, "\n")), 0o600))
	return path
}

// TestReadRollout reads a conversation: a call before its first turn, a turn that a second server continued, a patch of
// four files, and a call in the part of a line at the end.
func TestReadRollout(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{"done": "b\n", "other": "c\n"} {
		must.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	call := func(id, command string) string {
		return fmt.Sprintf(`{"type":"response_item","payload":{"type":"function_call","call_id":%q,"arguments":%q}}`, id, `{"command":`+command+`}`)
	}
	told := func(words string) string {
		return fmt.Sprintf(`{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":%q}]}}`, words)
	}
	started := `{"type":"event_msg","payload":{"type":"task_started","turn_id":"k"}}`
	var h history.History
	err := h.ReadRollout(lines(t,
		fmt.Sprintf(`{"type":"session_meta","payload":{"id":"t","cwd":%q}}`, dir),
		`{"type":"session_meta","payload":{"id":"of what it was copied from"}}`,
		call("1", `["ls"]`),
		`{"type":"response_item","payload":{"type":"message","content":[]}}`,
		`{"type":"other","payload":"of another form"}`,
		started,
		told("make x"),
		call("2", `["rm","x"]`),
		`{"type":"response_item","payload":{"type":"function_call_output","call_id":"2","output":"no"}}`,
		call("3", `["make"]`),
		started,
		told("<interrupted>\nWithout a result: make\n"),
		call("4", `["apply_patch","*** Begin Patch\n*** Add File: done\n+b\n*** Add File: undone\n+b\n*** Add File: other\n+b\n*** End Patch"]`),
		started,
		told("<interrupted>\nWithout a result: apply_patch\n"), // which leaves one out
		`{"type":"event_msg","payload":{"type":"task_complete","turn_id":"k"}}`,
		`{"type":"response_item","payload":{"type":"function_call","call_id":"5","argu`,
	))
	must.OK(t, err)
	want := history.History{Turns: map[string]*history.Turn{"k": {Thread: "t", Key: "k", Begun: 3, Ended: 1}}, Calls: map[history.ID]*history.Call{}}
	for _, c := range []history.Call{
		{ID: history.ID{Thread: "t", Call: "1"}, Command: []string{"ls"}},
		{ID: history.ID{Thread: "t", Call: "2"}, Command: []string{"rm", "x"}, Output: "no"},
		{ID: history.ID{Thread: "t", Call: "3"}, Command: []string{"make"}, Output: "<interrupted>\nWithout a result: make\n", Cut: true},
		{ID: history.ID{Thread: "t", Call: "4"}, Patch: true, Files: []history.File{
			{Path: filepath.Join(dir, "done"), State: history.After}, {Path: filepath.Join(dir, "undone"), State: history.Before},
			{Path: filepath.Join(dir, "other"), State: history.Other},
		}},
	} {
		c.Effects = -1
		want.Calls[c.ID] = &c
	}
	must.Equal(t, "the history", want, h)
	if err := new(history.History).ReadRollout(lines(t, started, "")); err == nil {
		t.Error("a conversation without an id was read")
	}
}

// TestReadAborted reads a conversation of Codex 0.171, which had the time to end the turn as aborted when its server was
// killed. The turn that continues it names the call.
func TestReadAborted(t *testing.T) {
	h := history.History{Tasks: []history.Task{{Thread: "01a21c50-fcfb-7562-9b97-a4a6d18d44f9", Ended: true, Told: "It may have run or not, and was not run again."}}, Free: func([]string) bool { return true }}
	must.OK(t, h.ReadRollout(filepath.Join("testdata", "codex-aborted.jsonl")))
	h.Turns = nil // of which one has another end
	for id, c := range h.Calls {
		must.Equal(t, id.Call+" is cut", id.Call == "n28-1", c.Cut)
	}
	if faults := h.Check(); len(h.Calls) != 3 || len(faults) > 0 {
		t.Errorf("%d calls, %v", len(h.Calls), faults)
	}
}

// TestReadRecord reads each kind of decision.
func TestReadRecord(t *testing.T) {
	call := &history.Call{ID: history.ID{Thread: "t", Call: "c"}}
	h := history.History{Calls: map[history.ID]*history.Call{call.ID: call}}
	var record []string
	want := []history.Decision{
		{Approves: true, By: "approved"}, {Approves: true, By: "approved_for_session"}, {Approves: true, By: "approved_always"}, {By: "denied"}, {By: "abort"},
	}
	for _, d := range want {
		record = append(record, fmt.Sprintf(`{"event":"decided","threadId":"t","callId":"c","decision":%q,"by":%[1]q,"reason":"user"}`, d.By))
	}
	record = append(record,
		`{"event":"decided","threadId":"t","callId":"c","decision":"denied","by":"client","reason":"interrupted"}`,
		`{"event":"decided","threadId":"u","callId":"c","decision":"denied","by":"client"}`,
		`{"event":"begins","threadId":"t","callId":"c"}`,
	)
	want = append(want, history.Decision{Withdrawn: true, By: "client"})
	must.OK(t, h.ReadRecord(lines(t, record...)))
	if diff := cmp.Diff(want, call.Decisions); diff != "" || call.Begun != 1 {
		t.Errorf("%d beginnings, (-want +got)\n%s", call.Begun, diff)
	}
	if err := h.ReadRecord(lines(t, record[0], `{"threadId":`)); err == nil {
		t.Error("a line that is cut off was read")
	}
}
