package history_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/history"
	"github.com/google/go-cmp/cmp"
)

// lines writes a file with lines, of which the last one may lack its end, and returns its path.
func lines(t *testing.T, all ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(strings.Join(all, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestReadRollout reads a conversation: a call before its first record, one that a second server ran, a patch of three
// files, and a call in the part of a line at the end.
func TestReadRollout(t *testing.T) {
	dir := t.TempDir()
	file := func(name, now, before, after string) string {
		path := filepath.Join(dir, name)
		if now != "" {
			if err := os.WriteFile(path, []byte(now), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return fmt.Sprintf(`{"path":%q,"before":%q,"after":%q}`, path, sumOf(before), sumOf(after))
	}
	files := []string{file("done", "b", "a", "b"), file("undone", "a", "a", "b"), file("gone", "", "a", ""), file("other", "c", "a", "b")}
	var h history.History
	err := h.ReadRollout(lines(t,
		`{"type":"session_meta","payload":{"id":"t"}}`,
		`{"type":"session_meta","payload":{"id":"of what it was copied from"}}`,
		`{"type":"response_item","payload":{"type":"function_call","call_id":"1","arguments":"{\"command\":[\"ls\"]}"}}`,
		`{"type":"response_item","payload":{"type":"message","content":[]}}`,
		`{"type":"other","payload":"of another form"}`,
		`{"type":"codex_mcp","payload":{"kind":"turn_begins","turn":"k"}}`,
		`{"type":"response_item","payload":{"type":"function_call","call_id":"2","arguments":"{\"command\":[\"rm\",\"x\"]}"}}`,
		`{"type":"codex_mcp","payload":{"kind":"call_asks","call":"2"}}`,
		`{"type":"codex_mcp","payload":{"kind":"turn_continues","turn":"k"}}`,
		`{"type":"codex_mcp","payload":{"kind":"call_refused","call":"2"}}`,
		`{"type":"response_item","payload":{"type":"function_call_output","call_id":"2","output":"no"}}`,
		`{"type":"response_item","payload":{"type":"function_call","call_id":"3","arguments":"{\"command\":[\"apply_patch\",\"x\"]}"}}`,
		`{"type":"codex_mcp","payload":{"kind":"call_approved","call":"3"}}`,
		`{"type":"codex_mcp","payload":{"kind":"call_begins","call":"3","files":[`+strings.Join(files, ",")+`]}}`,
		`{"type":"codex_mcp","payload":{"kind":"turn_ends","turn":"k"}}`,
		`{"type":"response_item","payload":{"type":"function_call","call_id":"4","argu`,
	))
	if err != nil {
		t.Fatal(err)
	}
	want := history.History{Turns: map[string]*history.Turn{"k": {Thread: "t", Key: "k", Begun: 1, Continued: 1, Ended: 1}}, Calls: map[history.ID]*history.Call{}}
	for _, c := range []history.Call{
		{ID: history.ID{Thread: "t", Call: "1"}, Command: []string{"ls"}},
		{ID: history.ID{Thread: "t", Call: "2"}, Command: []string{"rm", "x"}, Events: []history.Event{history.Asked, history.Refused, history.Answered}, Output: "no", Marked: true},
		{ID: history.ID{Thread: "t", Call: "3"}, Patch: true, Events: []history.Event{history.Approved, history.Begun}, Marked: true, Files: []history.File{
			{Path: filepath.Join(dir, "done"), State: history.After}, {Path: filepath.Join(dir, "undone"), State: history.Before},
			{Path: filepath.Join(dir, "gone"), State: history.After}, {Path: filepath.Join(dir, "other"), State: history.Other},
		}},
	} {
		c.Effects = -1
		want.Calls[c.ID] = &c
	}
	if diff := cmp.Diff(want, h); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if err := new(history.History).ReadRollout(lines(t, `{"type":"codex_mcp","payload":{"kind":"turn_ends","turn":"k"}}`, "")); err == nil {
		t.Error("a conversation without an id was read")
	}
}

// sumOf returns the sum of a content, "" for a file that is not there.
func sumOf(content string) string {
	if content == "" {
		return ""
	}
	return fmt.Sprintf("%x", sha256.Sum256([]byte(content)))
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
	if err := h.ReadRecord(lines(t, record...)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, call.Decisions); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if err := h.ReadRecord(lines(t, record[0], `{"threadId":`)); err == nil {
		t.Error("a line that is cut off was read")
	}
}
