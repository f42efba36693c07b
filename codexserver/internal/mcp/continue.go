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
	"github.com/codexmcp/codexmcp/mcptypes/modern"
	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// The work of a server that was killed is in the files of its tasks, and of its turns in the
// background, which are tasks that no client was given. The next server continues it when its
// client makes the first call: a client that starts a server only to see what it offers
// makes none.

// resume is what the file of a task has for the next server.
type resume struct {
	// Turn is [tools.Turn.Resume].
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

// encode returns r for a turn, or nil if no other server can continue it.
func (r resume) encode(t *tools.Turn) jsontext.Value {
	if r.Turn = t.Resume(); r.Turn == nil {
		return nil
	}
	raw, err := jsonv2.Marshal(r, jsontext.AllowInvalidUTF8(true))
	if err != nil { // does not happen
		return nil
	}
	return raw
}

// continues reports whether this server continues the work of others.
func (ts *Tasks) continues() bool { return ts != nil && !ts.options.NoResume }

// keepTurn keeps a file of a turn in the background, so that the next server can continue it. R is
// what it needs besides the turn.
func (s *ModernSession) keepTurn(turn *tools.Turn, tool string, r resume) {
	tasks := s.client.server.Tasks
	if !tasks.continues() || turn.Resume() == nil {
		return
	}
	r.Background = true
	file, news, err := tasks.create(turn, taskfile.Task{
		Principal: s.client.principal(), Tool: tool, Status: taskfile.Working, Message: "in the background",
	}, r)
	if err != nil {
		s.client.Log().Warn("a turn in the background would not survive this server", "error", err)
		return
	}
	s.client.Go(func() { tasks.follow(turn, file, r, news) })
}

// survive lets the turns of a call of a tool in the background survive this server, and those of others
// continue, see continueAll for ask. Able says whether the client can be asked.
func (s *ModernSession) survive(tc *tools.Call, tool string, able func() bool, ask approve.Place) {
	tc.Survival.Known = s.continueAll(ask)
	tc.Survival.Kept = func(t *tools.Turn) { s.keepTurn(t, tool, resume{Form: able(), Host: tc.Host}) }
}

// continueAll continues the work of servers that were killed, once, in the background. Ask asks
// the questions of turns in the background, or is nil for this session's. The channel is closed
// when the turns are known here.
func (s *ModernSession) continueAll(ask approve.Place) <-chan struct{} {
	s.once.Do(func() {
		if !s.client.server.Tasks.continues() {
			close(s.known)
			return
		}
		s.client.Go(func() {
			defer close(s.known)
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
	return s.known
}

// continueAs continues a task of a server that was killed, if this server does that, see continueAll for ask.
// What prevents it is logged.
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
	var k resume
	file, before, err := tasks.store.Adopt(id, func(f *taskfile.Task) (err error) {
		if err = jsonv2.Unmarshal(f.Resume, &k); err != nil {
			return err
		}
		if k.Life++; f.Status != taskfile.InputRequired {
			k.Ended++
		}
		f.Resume, err = jsonv2.Marshal(k)
		return err
	})
	if err != nil {
		return err
	}
	cut := tools.Unfinished{Thread: file.Thread(), Resume: k.Turn, Did: file.Did, Ended: k.Ended}
	if k.Background {
		err = s.continueInBackground(file, k, cut, ask)
	} else {
		err = s.continueCall(file, k, cut)
	}
	if err != nil {
		return errors.Join(err, tasks.store.Return(file, before))
	}
	return nil
}

// continueCall continues the call of a task.
func (s *ModernSession) continueCall(file taskfile.Task, k resume, cut tools.Unfinished) error {
	client := elicit.Client{ProtocolVersion: modern.ProtocolVersion, Name: k.Host}
	if k.Form {
		client.Capabilities = json.RawMessage(`{"elicitation":{}}`)
	}
	tasks := s.client.server.Tasks
	if err := tasks.enter(s.client.principal()); err != nil {
		return err
	}
	c := s.unstarted(file.Tool, client)
	c.taskable, c.inbox.life, c.attached.alone = true, k.Life, true
	run, err := s.client.server.Tools.Continue(c.ctx, c.of(tasks.observed(c.ctx, file), jsonrpc.ID{}), cut, false)
	if err != nil {
		c.cancel(nil)
		tasks.leave(s.client.principal())
		return err
	}
	c.task = &task{call: c, resume: k, file: file}
	tasks.add(c.task)
	c.run(run, func() { tasks.leave(s.client.principal()) })
	s.client.Go(func() { c.task.keep(nil) })
	c.awaitTurn() // who waits for continueAll finds the turn
	return nil
}

// awaitTurn waits until the call has a turn, or its result.
func (c *call) awaitTurn() {
	for {
		c.mu.Lock()
		turn, changed := c.turn, c.changed
		c.mu.Unlock()
		if turn != nil {
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
func (s *ModernSession) continueInBackground(file taskfile.Task, k resume, cut tools.Unfinished, ask approve.Place) error {
	tasks := s.client.server.Tasks
	a := thread.Attend{Ask: ask, Comes: s.client.comes(k.Form), Observer: thread.ObserverOf(tasks.observed(s.client.ctx, file))}
	if !a.Comes {
		a.Ask = nil
	}
	tc := s.call(jsonrpc.ID{}, k.Host, a, a)
	var turn *tools.Turn
	tc.Survival.Durable, tc.Begun = true, func(begun *tools.Turn) { turn = begun }
	run, err := s.client.server.Tools.Continue(s.client.ctx, tc, cut, true)
	if err != nil {
		return err
	}
	run()
	if turn == nil {
		return tasks.store.Remove(file.ID) // the limit of turns in the background; its result says so to nobody
	}
	_, news := turn.Asks()
	s.client.Go(func() { tasks.follow(turn, file, k, news) })
	return nil
}
