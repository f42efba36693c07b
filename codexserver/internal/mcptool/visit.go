package mcptool

import (
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
)

// visit makes the client a place for the questions of a turn that another client began. With
// [Call.Place] it is one until leave is called, with [Call.Visitor] until the turn ends.
func (c *call) visit(j *Job) (leave func()) {
	switch {
	case c.Place != nil:
		return j.thread.Attach(ownQuestions{c.Place, j})
	case c.Visitor == nil || j.owner == c.Jobs || !j.receive(c.Jobs):
		return func() {}
	}
	away := j.thread.Attach(ownQuestions{c.Visitor, j})
	c.Go(func() {
		select {
		case <-j.done:
		case <-c.Ends.Done():
		}
		away()
	})
	return func() {}
}

// receive records a visitor. It returns false if it is known, or if the turn has ended.
func (j *Job) receive(visitor *Jobs) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.visitors[visitor] || j.end.result != nil {
		return false
	}
	if j.visitors == nil {
		j.visitors = map[*Jobs]bool{}
	}
	j.visitors[visitor] = true
	return true
}

// runs returns the running or queued turn of a thread, or nil.
func (js *Jobs) runs(id string) *Job {
	js.mu.Lock()
	defer js.mu.Unlock()
	for _, j := range js.list {
		if !j.over() && thread.CanonicalID(j.ThreadID()) == id {
			return j
		}
	}
	return nil
}

// open returns the open thread with an id that the client holds, or that has a turn of a client
// that it shares its turns with. It returns nil if there is none.
func (c *call) open(id string) *thread.Thread {
	if t := c.Threads.Find(id); t != nil {
		return t
	}
	if j := c.Jobs.of(id); j != nil && c.Jobs.Stays() {
		return c.Threads.Hold(id)
	}
	return nil
}
