package appserver_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/audit"
	"github.com/codexmcp/codexmcp/codexserver/internal/board"
	"github.com/codexmcp/codexmcp/codexserver/internal/turnlog"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// TestRecordOfRecordings plays recordings of the real app-server with a record: every effect has one beginning and one end
// there, those that were asked about name their decision, and there is no other effect.
func TestRecordOfRecordings(t *testing.T) {
	files, err := filepath.Glob("testdata/traffic/*.ndjson")
	if err != nil || len(files) < 15 {
		t.Fatalf("recordings: %v, %v", files, err)
	}
	total := 0
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".ndjson"), func(t *testing.T) {
			steps := readRecording(t, file)
			answer := recorded(steps)
			h := decide(answer)
			synctest.Test(t, func(t *testing.T) { _ = play(t, steps, h) }) // its golden file has the error
			path := filepath.Join(t.TempDir(), "log")
			l, err := audit.Open(path, 0)
			if err != nil {
				t.Fatal(err)
			}
			b := board.New(&board.Options{Record: board.NewRecord(l)}, nil)
			defer b.Attach(board.NewPlace(approval.ByDesk, func(context.Context, *approval.Request) (elicit.Outcome, error) {
				return elicit.Outcome{Decision: answer}, nil
			}))()
			thread := approval.Thread{ID: "t"}
			effects, approved := map[string]int{}, map[string]bool{}
			for _, m := range h.events {
				switch e := m.(type) {
				case protocol.ExecApprovalRequest:
					d := b.Decide(t.Context(), &approval.Request{Thread: thread, Event: m, Question: &elicit.Question{}})
					approved[e.CallID] = d.Decision.Approves()
				case protocol.PatchApprovalRequest:
					d := b.Decide(t.Context(), &approval.Request{Thread: thread, Event: m, Question: &elicit.Question{}})
					approved[e.CallID] = d.Decision.Approves()
				case protocol.ExecCommandBegin:
					effects[e.CallID]++
				case protocol.PatchApplyBegin:
					effects[e.CallID]++
				case protocol.MCPToolCallBegin:
					effects[e.CallID]++
				}
				line, files := turnlog.EffectOf(m)
				b.Note(thread, "turn", line, files)
			}
			b.EndTurn(thread)
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			if r, err := audit.Verify([]string{path}, nil); err != nil || len(r.Faults) > 0 || len(r.Unfinished) > 0 {
				t.Errorf("%+v, %v", r, err)
			}
			begun, ends := map[string]audit.Line{}, map[string]int{}
			if err := audit.Read([]string{path}, func(l audit.Line) error {
				switch l.Effect {
				case audit.Begins:
					begun[l.ID] = l
					effects[l.Call]--
					total++
				case audit.Ends:
					ends[l.Of]++
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			for call, n := range effects {
				if n != 0 {
					t.Errorf("%s: %d effects more than records", call, n)
				}
			}
			for id, l := range begun {
				if ends[id] != 1 || approved[l.Call] != (l.DecidedBy != "") {
					t.Errorf("%s: %d ends, approved: %t, decided by %q", l.Call, ends[id], approved[l.Call], l.DecidedBy)
				}
			}
		})
	}
	if total < 10 {
		t.Errorf("the recordings have %d effects", total)
	}
}
