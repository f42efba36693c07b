package modern

import (
	"cmp"
	"encoding/json"
)

// ExtensionTasks is the key of the tasks extension in the capabilities. The value is a
// [TasksExtensionCapability].
const ExtensionTasks = "io.modelcontextprotocol/tasks"

// Created returns the result of a call that has become the task t, whose status is Status, or
// working if that is empty.
func (t Task) Created() *CreateTaskResult {
	return &CreateTaskResult{
		TaskID: t.TaskID, CreatedAt: t.CreatedAt, LastUpdatedAt: t.LastUpdatedAt, StatusMessage: t.StatusMessage,
		TTLMs: t.TTLMs, PollIntervalMs: t.PollIntervalMs, Status: cmp.Or(t.Status, TaskStatusWorking), Extra: t.Extra,
	}
}

// Working returns t as a running task. This method and those below ignore t.Status: the
// type of the result has the status.
func (t Task) Working() *WorkingTask {
	return &WorkingTask{
		TaskID: t.TaskID, CreatedAt: t.CreatedAt, LastUpdatedAt: t.LastUpdatedAt, StatusMessage: t.StatusMessage,
		TTLMs: t.TTLMs, PollIntervalMs: t.PollIntervalMs, Extra: t.Extra,
	}
}

// InputRequired returns t as a task that waits for answers to requests.
func (t Task) InputRequired(requests InputRequests) *InputRequiredTask {
	return &InputRequiredTask{
		TaskID: t.TaskID, CreatedAt: t.CreatedAt, LastUpdatedAt: t.LastUpdatedAt, StatusMessage: t.StatusMessage,
		TTLMs: t.TTLMs, PollIntervalMs: t.PollIntervalMs, InputRequests: requests, Extra: t.Extra,
	}
}

// Completed returns t as a task with its result, which must be a JSON object.
func (t Task) Completed(result json.RawMessage) *CompletedTask {
	return &CompletedTask{
		TaskID: t.TaskID, CreatedAt: t.CreatedAt, LastUpdatedAt: t.LastUpdatedAt, StatusMessage: t.StatusMessage,
		TTLMs: t.TTLMs, PollIntervalMs: t.PollIntervalMs, Result: result, Extra: t.Extra,
	}
}

// Failed returns t as a task that ended with a JSON-RPC error.
func (t Task) Failed(err Error) *FailedTask {
	return &FailedTask{
		TaskID: t.TaskID, CreatedAt: t.CreatedAt, LastUpdatedAt: t.LastUpdatedAt, StatusMessage: t.StatusMessage,
		TTLMs: t.TTLMs, PollIntervalMs: t.PollIntervalMs, Error: err, Extra: t.Extra,
	}
}

// Cancelled returns t as a task that was cancelled.
func (t Task) Cancelled() *CancelledTask { return (*CancelledTask)(t.Working()) }

// TaskOf returns the members that a task has in every status; ok is false for nil and for a
// status that this version does not have.
func TaskOf(d DetailedTask) (t Task, ok bool) {
	switch d := d.(type) {
	case *WorkingTask:
		return taskOf(d.TaskID, d.CreatedAt, d.LastUpdatedAt, d.StatusMessage, d.TTLMs, d.PollIntervalMs,
			TaskStatusWorking, d.Extra)
	case *InputRequiredTask:
		return taskOf(d.TaskID, d.CreatedAt, d.LastUpdatedAt, d.StatusMessage, d.TTLMs, d.PollIntervalMs,
			TaskStatusInputRequired, d.Extra)
	case *CompletedTask:
		return taskOf(d.TaskID, d.CreatedAt, d.LastUpdatedAt, d.StatusMessage, d.TTLMs, d.PollIntervalMs,
			TaskStatusCompleted, d.Extra)
	case *FailedTask:
		return taskOf(d.TaskID, d.CreatedAt, d.LastUpdatedAt, d.StatusMessage, d.TTLMs, d.PollIntervalMs,
			TaskStatusFailed, d.Extra)
	case *CancelledTask:
		return taskOf(d.TaskID, d.CreatedAt, d.LastUpdatedAt, d.StatusMessage, d.TTLMs, d.PollIntervalMs,
			TaskStatusCancelled, d.Extra)
	}
	return Task{}, false
}

func taskOf(
	id, created, updated string, message *string, ttl, poll *int64, status TaskStatus, extra map[string]json.RawMessage,
) (Task, bool) {
	return Task{
		TaskID: id, CreatedAt: created, LastUpdatedAt: updated, StatusMessage: message,
		TTLMs: ttl, PollIntervalMs: poll, Status: status, Extra: extra,
	}, true
}
