package mcp

import (
	"encoding/json"
	"errors"

	"github.com/codexmcp/codexmcp/codexserver/internal/approve"
	"github.com/codexmcp/codexmcp/codexserver/internal/mcp/taskfile"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/internal/tools"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// The work of a server that was killed is in the files of its tasks, and of its turns in the
// background, which are tasks that no client was given. The next server continues it when its
// client makes the first call: a client that starts a server only to see what it offers
// makes none.

// keepsake is what the file of a task has for the next server.
type keepsake struct {
	// Turn is [tools.Job.Keepsake].
	Turn jsontext.Value `json:"turn"`
	// Form is true if the client can be asked, and Host is its name. Other clients get the questions of a
	// turn in the background.
	Form bool   `json:"form,omitzero"`
	Host string `json:"host,omitzero"`
	// Background is true for a turn in the background.
	Background bool `json:"background,omitzero"`
	// Life is how many servers have continued the turn, and Ended is how many have ended while it did not wait
	// for a person, who may be the reason.
	Life  int `json:"life,omitzero"`
	Ended int `json:"ended,omitzero"`
}

// encode returns the keepsake of a turn, or nil if no other server can continue it.
func (k keepsake) encode(j *tools.Job) jsontext.Value {
	if k.Turn = j.Keepsake(); k.Turn == nil {
		return nil
	}
	raw, err := jsonv2.Marshal(k, jsontext.AllowInvalidUTF8(true))
	if err != nil { // does not happen
		return nil
	}
	return raw
}

// continues reports whether this server continues the work of others.
func (ts *Tasks) continues() bool { return ts != nil && !ts.options.NoResume }

// keepTurn keeps a file of a turn in the background, so that the next server can continue it. K is
// what it needs besides the turn.
func (s *ModernSession) keepTurn(j *tools.Job, tool string, k keepsake) {
	if !s.client.server.Tasks.continues() || j.Keepsake() == nil {
		return
	}
	k.Background = true
	news, _ := j.Changed() // before the file says what it is
	id, err := taskfile.NewID(j.ThreadID())
	var file taskfile.Task
	if err == nil {
		file, err = s.client.server.Tasks.store.Create(taskfile.Task{
			ID: id, Principal: s.client.principal(), Tool: tool, Status: taskfile.Working, Message: "in the background", Did: j.Did(),
			Resume: k.encode(j),
		})
	}
	if err != nil {
		s.client.Log().Warn("a turn in the background would not survive this server", "error", err)
		return
	}
	s.follow(j, news, file, k)
}

// follow keeps the file of a turn in the background up to date. News is closed when there is some
// since the file was written.
func (s *ModernSession) follow(j *tools.Job, news <-chan struct{}, file taskfile.Task, k keepsake) {
	_, ended := j.Changed()
	t := &task{call: &call{session: s, job: j, done: ended, changed: make(chan struct{})}, keepsake: k, file: file}
	s.client.Go(func() { t.keep(news) })
}

// survive lets the turns of a call of a tool in the background survive this server, and those of others
// continue, see takeUp for ask. Able says whether the client can be asked.
func (s *ModernSession) survive(tc *tools.Call, tool string, able func() bool, ask approve.Place) {
	tc.Survival.Took = s.takeUp(ask)
	tc.Survival.Kept = func(j *tools.Job) { s.keepTurn(j, tool, keepsake{Form: able(), Host: tc.Host}) }
}

// takeUp continues the work of servers that were killed, once, in the background. Ask asks
// the questions of turns in the background, or is nil for this session's. The channel is closed
// when the turns are known here.
func (s *ModernSession) takeUp(ask approve.Place) <-chan struct{} {
	s.taken.Do(func() {
		if !s.client.server.Tasks.continues() {
			close(s.took)
			return
		}
		s.client.Go(func() {
			defer close(s.took)
			all, err := s.client.server.Tasks.store.List()
			if err != nil {
				s.client.Log().Warn("tasks of other servers", "error", err)
			}
			for _, e := range all {
				if s.client.ctx.Err() != nil {
					return
				}
				if e.Owner == taskfile.Gone && e.Task.Principal == s.client.principal() && e.Task.Resume != nil {
					s.continueAs(e.Task, ask)
				}
			}
		})
	})
	return s.took
}

// continueTask continues a task of a server that was killed, if this server does that. What
// prevents it is logged.
func (s *ModernSession) continueTask(file taskfile.Task) { s.continueAs(file, nil) }

func (s *ModernSession) continueAs(file taskfile.Task, ask approve.Place) {
	if !s.client.server.Tasks.continues() || file.Resume == nil || s.client.ctx.Err() != nil {
		return
	}
	if err := s.continued(file.ID, ask); err != nil && !errors.Is(err, taskfile.ErrBusy) && !errors.Is(err, taskfile.ErrNotServed) {
		s.client.Log().Warn("a task of a server that was killed is not continued", "task", file.ID, "error", err)
	}
}

// continued continues a task. Several goroutines and servers may try; one does.
func (s *ModernSession) continued(id string, ask approve.Place) error {
	tasks := s.client.server.Tasks
	if err := s.client.server.Tools.CanContinue(s.client.ctx); err != nil {
		return err
	}
	release, ok := tasks.adopt(s.client.ctx)
	if !ok {
		return s.client.ctx.Err()
	}
	defer release()
	before, owner, err := tasks.store.Get(id)
	if err != nil || owner != taskfile.Gone {
		return err
	}
	var k keepsake
	if err := jsonv2.Unmarshal(before.Resume, &k); err != nil {
		return err
	}
	file, err := tasks.store.Adopt(id)
	if err != nil {
		return err
	}
	giveUp := func(err error) error { return errors.Join(err, tasks.store.Return(file, before.Server)) }
	if k.Life++; before.Status != taskfile.InputRequired {
		k.Ended++
	}
	if file.Resume, err = jsonv2.Marshal(k); err == nil {
		file, err = tasks.store.Update(file) // before a question has a key
	}
	if err == nil {
		err = tasks.enter(s.client.principal())
	}
	if err != nil {
		return giveUp(err)
	}
	cut := tools.Orphan{Thread: file.Thread(), Keepsake: k.Turn, Did: file.Did, Ended: k.Ended}
	if k.Background {
		err = s.continueInBackground(file, k, cut, ask)
	} else {
		err = s.continueCall(file, k, cut)
	}
	if err != nil {
		tasks.leave(s.client.principal())
		return giveUp(err)
	}
	return nil
}

// continueCall continues the call of a task.
func (s *ModernSession) continueCall(file taskfile.Task, k keepsake, cut tools.Orphan) error {
	client := elicit.Client{ProtocolVersion: modern.ProtocolVersion, Name: k.Host}
	if k.Form {
		client.Capabilities = json.RawMessage(`{"elicitation":{}}`)
	}
	c := s.unstarted(file.Tool, client)
	c.taskable, c.inbox.life, c.attached.alone = true, k.Life, true
	turn, err := s.client.server.Tools.Reopen(c.ctx, c.of(s.client.server.Tasks.observed(c.ctx, file), jsonrpc.ID{}), cut)
	if err != nil {
		c.cancel(nil)
		return err
	}
	t := &task{call: c, keepsake: k, file: file, listeners: map[*listener]bool{}}
	c.task = t
	s.client.server.Tasks.add(t)
	c.run(func() *mcptypes.CallToolResult { return turn.Run(c.ctx, false) }, func() { s.client.server.Tasks.leave(s.client.principal()) })
	s.client.Go(func() { t.keep(nil) })
	c.awaitTurn() // who waits for takeUp finds the turn
	return nil
}

// awaitTurn waits until the call has a turn, or its result.
func (c *call) awaitTurn() {
	for {
		c.mu.Lock()
		job, changed := c.job, c.changed
		c.mu.Unlock()
		if job != nil {
			return
		}
		select {
		case <-changed:
		case <-c.done:
			return
		}
	}
}

// continueInBackground continues a turn in the background.
func (s *ModernSession) continueInBackground(file taskfile.Task, k keepsake, cut tools.Orphan, ask approve.Place) error {
	a := thread.Attend{Ask: ask, Comes: s.client.comes(k.Form), Observer: thread.ObserverOf(s.client.server.Tasks.observed(s.client.ctx, file))}
	if !a.Comes {
		a.Ask = nil
	}
	var job *tools.Job
	tc := s.call(jsonrpc.ID{}, k.Host, a, a)
	tc.Survival.Durable, tc.Begun = true, func(j *tools.Job) { job = j }
	turn, err := s.client.server.Tools.Reopen(s.client.ctx, tc, cut)
	if err != nil {
		return err
	}
	turn.Run(s.client.ctx, true)
	s.client.server.Tasks.leave(s.client.principal()) // it was counted as a task, which it is not
	if job == nil {
		return s.client.server.Tasks.store.Remove(file.ID) // the limit of turns in the background; its result says so to nobody
	}
	news, _ := job.Changed()
	s.follow(job, news, file, k)
	return nil
}
