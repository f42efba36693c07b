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
	var plan protocol.PlanUpdate
	if err := decodeArguments(call.Arguments, &plan); err != nil {
		return Result{Output: err.Error()}, nil
	}
	var wrong *argumentError
	if plan.Plan == nil {
		wrong = &argumentError{"plan", "missing"}
	}
	for i, step := range plan.Plan {
		switch {
		case step.Step == "":
			wrong = &argumentError{fmt.Sprintf("plan.%d.step", i), "missing"}
		case !slices.Contains([]string{"pending", "in_progress", "completed"}, step.Status):
			wrong = &argumentError{fmt.Sprintf("plan.%d.status", i), `want "pending", "in_progress" or "completed"`}
		}
	}
	if wrong != nil {
		return Result{Output: wrong.Error()}, nil
	}
	if err := t.Acting(); err != nil {
		return Result{}, err
	}
	t.Host.Emit(plan)
	return Result{Output: "Plan updated"}, nil
}
