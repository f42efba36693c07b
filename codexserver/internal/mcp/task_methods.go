package mcp

import (
	stdjson "encoding/json"

	"github.com/codexmcp/codexmcp/codexserver/internal/mcp/taskfile"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
	"github.com/go-json-experiment/json/jsontext"
)

// The methods of tasks run on the read loop. They answer at once for a task that this
// process serves, and in another goroutine for others, because they must read a file.

// getTask returns the state of a task.
func (s *ModernSession) getTask(q *request) (any, error) {
	var p struct {
		TaskID string `json:"taskId"`
	}
	err := q.needTasks()
	if err == nil {
		err = decode(q.rpc.Params, &p)
	}
	if err != nil {
		return nil, err
	}
	if t := s.live(p.TaskID); t != nil {
		return s.taskResult(t, q.form), nil
	}
	if err := s.enter(); err != nil {
		return nil, err
	}
	s.later(q.rpc, func() (any, error) {
		t, file, owner, err := s.find(p.TaskID)
		switch {
		case err != nil:
			return nil, err
		case t != nil:
			return s.taskResult(t, q.form), nil
		}
		return &modern.GetTaskResult{Meta: s.resultMeta(), Task: s.foreign(file, owner)}, nil
	}, nil, s.open.leave)
	return nil, nil
}

func (s *ModernSession) taskResult(t *task, form bool) *modern.GetTaskResult {
	t.call.mu.Lock()
	defer t.call.mu.Unlock()
	return &modern.GetTaskResult{Meta: s.resultMeta(), Task: t.detailed(form)}
}

// updateTask takes answers to the questions of a task. It ignores unknown and answered
// keys.
func (s *ModernSession) updateTask(q *request) (any, error) {
	if err := q.needTasks(); err != nil {
		return nil, err
	}
	m, err := members("", jsontext.Value(q.rpc.Params))
	if err != nil {
		return nil, err
	}
	var id string
	if err := decode(stdjson.RawMessage(m["taskId"]), &id); err != nil {
		return nil, invalid("/taskId", "want a string")
	}
	return s.change(q, id, &modern.UpdateTaskResult{Meta: s.resultMeta()}, func(t *task) error {
		answers, err := members("/inputResponses", m["inputResponses"])
		if err == nil && t != nil {
			t.call.take(nil, answers)
		}
		return err
	})
}

// change calls f with the task of an id if this process serves it, and with nil if the task
// has ended, and returns the result.
func (s *ModernSession) change(q *request, id string, result any, f func(*task) error) (any, error) {
	if t := s.live(id); t != nil {
		if err := f(t); err != nil {
			return nil, err
		}
		return result, nil
	}
	if err := s.enter(); err != nil {
		return nil, err
	}
	s.later(q.rpc, func() (any, error) {
		t, file, owner, err := s.find(id)
		if err != nil {
			return nil, err
		}
		if err := f(t); err != nil {
			return nil, err
		}
		if owner == taskfile.Other {
			return nil, elsewhere(file)
		}
		return result, nil
	}, nil, s.open.leave)
	return nil, nil
}

// cancelTask interrupts the turn of a task without waiting for its end.
func (s *ModernSession) cancelTask(q *request) (any, error) {
	var p struct {
		TaskID string `json:"taskId"`
	}
	err := q.needTasks()
	if err == nil {
		err = decode(q.rpc.Params, &p)
	}
	if err != nil {
		return nil, err
	}
	return s.change(q, p.TaskID, &modern.CancelTaskResult{Meta: s.resultMeta()}, func(t *task) error {
		if t != nil {
			t.call.mu.Lock()
			t.cancelled = true
			t.call.mu.Unlock()
			t.call.cancel(thread.ErrInterrupted)
		}
		return nil
	})
}
