package history_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/history"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/google/go-cmp/cmp"
)

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
		if c.Cut != (id.Call == "n28-1") {
			t.Errorf("%s: %+v", id.Call, c)
		}
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
