package appserver_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/approve"
	"github.com/codexmcp/codexmcp/codexserver/internal/changes"
	"github.com/codexmcp/codexmcp/codexserver/internal/record"
	turnpkg "github.com/codexmcp/codexmcp/codexserver/internal/turn"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// TestRecordOfRecordings plays recordings of the real app-server with a record: every call has one beginning and one end
// there, those that were asked about name their decision, and there is no other call.
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
			var lines strings.Builder
			b := approve.New(&approve.Options{Record: record.To(&lines)}, nil)
			defer b.Attach(&approve.Place{Ask: func(context.Context, *approval.Request) (elicit.Outcome, error) {
				return elicit.Outcome{Decision: answer}, nil
			}})()
			thread := approval.Thread{ID: "t"}
			now := turnpkg.New(changes.Options{})
			decide := func(m protocol.EventMsg) bool {
				r := &approval.Request{Thread: thread, Event: m, Question: &elicit.Question{}}
				d := b.Decide(t.Context(), r, false)
				now.Decided(r, d)
				return d.Decision.Approves()
			}
			calls, approved := map[string]int{}, map[string]bool{}
			for _, m := range h.events {
				switch e := m.(type) {
				case protocol.ExecApprovalRequest:
					approved[e.CallID] = decide(m)
				case protocol.PatchApprovalRequest:
					approved[e.CallID] = decide(m)
				case protocol.ExecCommandBegin:
					calls[e.CallID]++
				case protocol.PatchApplyBegin:
					calls[e.CallID]++
				case protocol.MCPToolCallBegin:
					calls[e.CallID]++
				}
				if line := turnpkg.LineOf(m); line.Event != "" {
					now.Note(&line)
					b.Note(thread, "turn", line)
				}
				now.Add("turn", 0, m)
			}
			for _, line := range now.Unended() {
				b.Note(thread, "turn", line)
			}
			running := map[string]string{} // the decisions of calls that have begun
			for text := range strings.Lines(lines.String()) {
				l, err := record.Parse([]byte(text))
				if err != nil {
					t.Fatal(err)
				}
				decision, begun := running[l.Call]
				switch l.Event {
				case record.Begins:
					if begun || approved[l.Call] != (l.DecisionID != "") {
						t.Errorf("%s: begun before: %t, approved: %t, the decision %q", l.Call, begun, approved[l.Call], l.DecisionID)
					}
					running[l.Call] = l.DecisionID
					calls[l.Call]--
					total++
				case record.Ends:
					if !begun || l.DecisionID != decision {
						t.Errorf("%s: begun: %t, its decision %q, of the end %q", l.Call, begun, decision, l.DecisionID)
					}
					delete(running, l.Call)
				}
			}
			for call, n := range calls {
				if n != 0 {
					t.Errorf("%s: %d calls more than records", call, n)
				}
			}
			if len(running) > 0 {
				t.Errorf("calls without an end: %v", running)
			}
		})
	}
	if total < 10 {
		t.Errorf("the recordings have %d calls", total)
	}
}
