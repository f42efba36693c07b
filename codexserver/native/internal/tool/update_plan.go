package tool

import (
	"context"
	"fmt"
	"slices"

	"github.com/codexmcp/codexmcp/codexserver/native/internal/model"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

var planDefinition = model.Tool{
	Name:        "update_plan",
	Description: "Shows the user your plan for the task, whole, each time it changes. At most one step is in progress.",
	Parameters: []byte(`{"type":"object","properties":{
"explanation":{"type":"string","description":"Why the plan is new or has changed"},
"plan":{"type":"array","description":"All steps in their order","items":{"type":"object","properties":{
"step":{"type":"string","description":"A few words"},
"status":{"type":"string","enum":["pending","in_progress","completed"]}
},"required":["step","status"],"additionalProperties":false}}
},"required":["plan"],"additionalProperties":false}`),
}

func (t *Turn) updatePlan(_ context.Context, call Call) (Result, error) {
	var args struct {
		Explanation *string `json:"explanation"`
		Plan        *[]struct {
			Step   *string `json:"step"`
			Status *string `json:"status"`
		} `json:"plan"`
	}
	if err := decodeArguments(call.Arguments, &args); err != nil {
		return Result{Output: err.Error()}, nil
	}
	if args.Plan == nil {
		return Result{Output: (&argumentError{"plan", "missing"}).Error()}, nil
	}
	plan := protocol.PlanUpdate{Explanation: args.Explanation, Plan: []protocol.PlanStep{}}
	for i, step := range *args.Plan {
		switch {
		case step.Step == nil:
			return Result{Output: (&argumentError{fmt.Sprintf("plan.%d.step", i), "missing"}).Error()}, nil
		case step.Status == nil:
			return Result{Output: (&argumentError{fmt.Sprintf("plan.%d.status", i), "missing"}).Error()}, nil
		case !slices.Contains([]string{"pending", "in_progress", "completed"}, *step.Status):
			return Result{Output: (&argumentError{fmt.Sprintf("plan.%d.status", i), `want "pending", "in_progress" or "completed"`}).Error()}, nil
		}
		plan.Plan = append(plan.Plan, protocol.PlanStep{Step: *step.Step, Status: *step.Status})
	}
	if err := t.Acting(); err != nil {
		return Result{}, err
	}
	t.Host.Emit(plan)
	return Result{Output: "Plan updated"}, nil
}
