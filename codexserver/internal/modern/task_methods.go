package modern

import (
	stdjson "encoding/json"

	"github.com/codexmcp/codexmcp/codexserver/internal/taskfile"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
	"github.com/go-json-experiment/json/jsontext"
)

// getTask runs on the read loop. It answers at once for a task that this process serves,
// and in another goroutine for others, because it must read their file. The peer does not
// bound what is answered later than on the read loop, so these requests count as such that
// may take long.
func (s *Session) getTask(q *request) (any, error) {
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
	if s.open.Add(1) > MaxConcurrent {
		s.open.Add(-1)
		return nil, tooMany()
	}
	reply := q.rpc.Responder()
	s.running.Go(func() {
		defer s.open.Add(-1)
		s.reads <- struct{}{}
		t, file, owner, err := s.find(p.TaskID)
		<-s.reads
		var result any
		switch {
		case t != nil:
			result = s.taskResult(t, q.form)
		case err == nil:
			result = &modern.GetTaskResult{Meta: s.resultMeta(), Task: s.foreign(file, owner)}
		}
		if err := reply.Reply(result, err); err != nil {
			s.server.Logger.Debug("tasks/get", "error", err)
		}
	})
	return nil, nil
}

func (s *Session) taskResult(t *task, form bool) *modern.GetTaskResult {
	t.call.mu.Lock()
	defer t.call.mu.Unlock()
	return &modern.GetTaskResult{Meta: s.resultMeta(), Task: t.detailed(form)}
}

// updateTask takes answers to the questions of a task. It ignores unknown and answered
// keys.
func (s *Session) updateTask(q *request) (any, error) {
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
	t, file, owner, err := s.find(id)
	if err != nil {
		return nil, err
	}
	answers, err := members("/inputResponses", m["inputResponses"])
	switch {
	case err != nil:
		return nil, err
	case t != nil:
		t.call.take(nil, answers)
	case owner == taskfile.Other:
		return nil, elsewhere(file)
	}
	return &modern.UpdateTaskResult{Meta: s.resultMeta()}, nil
}

// cancelTask interrupts the turn of a task without waiting for its end.
func (s *Session) cancelTask(q *request) (any, error) {
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
	t, file, owner, err := s.find(p.TaskID)
	switch {
	case err != nil:
		return nil, err
	case t != nil:
		t.call.mu.Lock()
		t.cancelled = true
		t.call.mu.Unlock()
		t.call.cancel(thread.ErrInterrupted)
	case owner == taskfile.Other:
		return nil, elsewhere(file)
	}
	return &modern.CancelTaskResult{Meta: s.resultMeta()}, nil
}
