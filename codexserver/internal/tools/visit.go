package tools

import (
	"github.com/codexmcp/codexmcp/codexserver/internal/approve"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
)

// visit makes the client a place for the questions of a turn: until leave is called, or, if it is
// asked without a call, until the turn that another client began ends.
func (c *call) visit(j *Job) (leave func()) {
	asker := c.asker()
	if asker == nil || c.Background.Ask != nil && j.delivery.owner == c.Jobs {
		return func() {}
	}
	asker = approve.Only(asker, j.log.Asks) // another turn of the thread may belong to another client
	if c.Background.Ask == nil {
		return j.thread.Attach(asker)
	}
	j.receive(c.Jobs, func() (leave func()) { return j.thread.Attach(asker) })
	return func() {}
}

// asker returns the client of the call as a place, or nil if it cannot be asked.
func (c *call) asker() approve.Place {
	if ask := c.Awaited.Ask; ask != nil && approve.Shows(ask) {
		return ask
	}
	return nil
}

// receive lets a visitor attend until the turn ends, unless it does already.
func (j *Job) receive(visitor *Jobs, attend func() (leave func())) {
	js := j.delivery.owner
	js.mu.Lock()
	defer js.mu.Unlock()
	if j.visitors[visitor] != nil || j.over() {
		return
	}
	if j.visitors == nil {
		j.visitors = map[*Jobs]func(){}
	}
	j.visitors[visitor] = attend()
}

// close ends the job, which has its result. Lost is true if the caller gave up before.
func (j *Job) close(lost bool) {
	if j.leave != nil {
		j.leave()
	}
	js := j.delivery.owner
	js.mu.Lock()
	defer js.mu.Unlock()
	j.delivery.lost = lost && !j.delivery.background
	for _, leave := range j.visitors {
		leave()
	}
	close(j.done)
	js.ended(j)
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
