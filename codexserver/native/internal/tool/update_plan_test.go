package tool_test

import (
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native/internal/tool"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/google/go-cmp/cmp"
)

func TestUpdatePlan(t *testing.T) {
	turn, h := begin(t, t.TempDir())
	res, err := turn.Call(t.Context(), tool.Call{ID: "c1", Name: "update_plan", Arguments: `{"plan":[{"step":"a","status":"in_progress"},{"step":"b","status":"pending"}]}`})
	if err != nil || res.Output != "Plan updated" {
		t.Errorf("%q, %v", res.Output, err)
	}
	want := []protocol.EventMsg{protocol.PlanUpdate{Plan: []protocol.PlanStep{{Step: "a", Status: "in_progress"}, {Step: "b", Status: "pending"}}}}
	if diff := cmp.Diff(want, h.all); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}
