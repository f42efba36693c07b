package mcp

import (
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/mcp/taskfile"
	"github.com/codexmcp/codexmcp/codexserver/internal/tools"
	"github.com/codexmcp/codexmcp/mcptypes"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
	"github.com/go-json-experiment/json/jsontext"
)

// questionLife is how long the questions of a call that may become a task stay open. It is
// long, because the user of a task only looks from time to time.
const questionLife = time.Hour

// task is a call that its client polls, or a turn in the background, of which no client was told. Its file is
// written by create and keep alone, but for a server that takes it over. The call's mutex guards it.
type task struct {
	call      *call
	resume    resume        // for the next server, without the turn
	file      taskfile.Task // as last written
	cancelled bool          // by the client
	over      bool          // file has the result, perhaps only in memory
	listeners map[*listener]bool
}

// mayBeTask reports whether the call can be answered with a task.
func (s *ModernSession) mayBeTask(q *request, tool string) bool {
	return q.tasks && s.client.server.Tasks.serves() && tools.IsTurn(tool)
}

// becomeTask makes the call a task and returns the answer for its client, which
// can be asked, or not. It returns nil if the thread has not begun, or if the task's
// file cannot be written, which is logged. The call is then answered with its result.
func (c *call) becomeTask(can bool) *modern.CreateTaskResult {
	c.mu.Lock()
	turn, now, shown := c.turn, c.now(true), c.now(can)
	c.mu.Unlock()
	if turn == nil || turn.InBackground() { // which is answered soon
		return nil
	}
	t := &task{call: c, resume: resume{Form: c.inbox.canAsk, Host: c.call.Host}, listeners: map[*listener]bool{}}
	news, err := t.create(turn, now.status, now.doing)
	if err != nil {
		c.session.client.Log().Warn("a call does not become a task", "error", err)
		c.remain()
		return nil
	}
	c.session.client.server.Tasks.add(t)
	c.mu.Lock()
	c.task, c.attached.alone = t, true
	created := t.created(shown)
	c.mu.Unlock()
	c.session.client.Go(func() { t.keep(news) })
	return created
}

// create writes the first file of a task with a turn. News is closed when there is some since.
func (t *task) create(turn *tools.Turn, status taskfile.Status, message string) (news <-chan struct{}, err error) {
	_, news = turn.Asks() // before the file says what it is
	client := t.call.session.client
	id, err := taskfile.NewID(turn.ThreadID())
	if err == nil {
		t.file, err = client.server.Tasks.store.Create(taskfile.Task{
			ID: id, Principal: client.principal(), Tool: t.call.tool, Status: status, Message: message, Did: turn.Did(), Resume: t.resume.encode(turn),
		})
	}
	return news, err
}

// remain lets the call never become a task.
func (c *call) remain() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.taskable = false
	if c.attached.outlet != nil {
		c.attached.outlet.quieten(false)
	}
	c.change() // wakes the request, which has a deadline now
}

// created returns the answer that makes a call this task, as it is now. The caller holds the call's
// mutex.
func (t *task) created(now moment) *modern.CreateTaskResult {
	shared := t.shared(now.message)
	return &modern.CreateTaskResult{
		Meta: t.call.session.resultMeta(), TaskID: t.file.ID, Status: modern.TaskStatus(now.status), StatusMessage: &now.message,
		CreatedAt: shared.CreatedAt, LastUpdatedAt: shared.LastUpdatedAt, PollIntervalMs: shared.PollIntervalMs, TTLMs: shared.TTLMs,
	}
}

// fileTick is how often a changed status message is written to the file of a task, where
// other processes read it.
const fileTick = 5 * time.Second

// keep updates the file until the end of the turn: at once when its status changes, or there is
// news of the turn, so that the file of a server that was killed has what ran. News is closed when
// there is some since the file was written; nil is a task of another server, whose turn has not begun
// here. At the end a task has its result; a turn in the background has no file any more.
func (t *task) keep(news <-chan struct{}) {
	c := t.call
	ticker := time.NewTicker(fileTick)
	defer ticker.Stop()
	for ticked, acted := false, news == nil; ; {
		c.mu.Lock()
		if acted && c.turn != nil {
			_, news = c.turn.Asks()
		}
		now, file, changed, turn, cancelled := c.now(true), t.file, c.changed, c.turn, t.cancelled
		c.mu.Unlock()
		if t.resume.Background {
			now.status, now.doing = file.Status, file.Message
		}
		if turn != nil && (now.status != file.Status || acted || cancelled && file.Resume != nil || ticked && now.doing != file.Message) {
			file.Status, file.Message, file.Did, file.Resume = now.status, now.doing, turn.Did(), t.resume.encode(turn)
			if cancelled {
				file.Resume = nil
			}
			t.write(file)
			acted = false
		}
		ticked = false
		select {
		case <-changed:
		case <-news:
			acted = true
		case <-ticker.C:
			ticked = true
		case <-c.done:
			t.end()
			return
		}
	}
}

// write writes the task's file. If that fails the task is kept in memory.
func (t *task) write(file taskfile.Task) {
	written, err := t.call.session.client.server.Tasks.store.Update(file)
	if err != nil {
		t.call.session.client.Log().Warn("the file of a task", "task", file.ID, "error", err)
		written = file
	}
	t.call.mu.Lock()
	defer t.call.mu.Unlock()
	t.file = written
}

// end writes the result of the task. It removes the file of a turn in the background.
func (t *task) end() {
	c := t.call
	if t.resume.Background {
		if err := c.session.client.server.Tasks.store.Remove(t.file.ID); err != nil {
			c.session.client.Log().Warn("the file of a task", "task", t.file.ID, "error", err)
		}
		return
	}
	c.mu.Lock()
	file := t.file
	cancelled := t.cancelled
	c.mu.Unlock()
	if cancelled {
		file.Status, file.Message = taskfile.Cancelled, "cancelled by the client"
	} else {
		answer := c.result
		if c.session.client.ctx.Err() != nil && answer.IsError != nil && *answer.IsError {
			// The client may read this from another process, and does not know that this
			// server was stopped.
			did := file.Did
			if c.turn != nil {
				did = c.turn.Did()
			}
			answer, _ = tools.Ended(file.Thread(), did)
		}
		result, err := modern.Encode(c.complete(answer))
		if err != nil { // does not happen: it was encoded before
			result = []byte(`{"content":[],"isError":true,"resultType":"complete"}`)
		}
		file.Status, file.Message, file.Result = taskfile.Completed, endWords(c.result), jsontext.Value(result)
	}
	file.Did, file.Resume = nil, nil // the result has what it did
	err := c.session.client.server.Tasks.finish(&file)
	if err != nil {
		c.session.client.Log().Error("the end of a task is kept in memory: its file cannot be written", "task", file.ID, "error", err)
	}
	c.mu.Lock()
	t.file, t.over = file, true
	t.notify()
	c.mu.Unlock()
	if err == nil {
		c.session.client.server.Tasks.forget(file.ID, c.inbox.isLate())
	}
}

// endWords returns the status message of a task that has its result.
func endWords(r *mcptypes.CallToolResult) string {
	if r.IsError != nil && *r.IsError {
		return "ended with an error"
	}
	return "done"
}
