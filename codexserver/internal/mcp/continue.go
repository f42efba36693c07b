package mcp

import (
	"encoding/json"
	"errors"

	"github.com/codexmcp/codexmcp/codexserver/internal/approve"
	"github.com/codexmcp/codexmcp/codexserver/internal/mcp/taskfile"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/internal/tools"
	"github.com/codexmcp/codexmcp/codexserver/internal/turn"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
)

// The work of a server that was killed is in the files of its tasks, and of its turns in the
// background, which are tasks that no client was given. The next server continues it when its
// client makes the first call: a client that starts a server only to see what it offers
// makes none.

// survive lets the turns of a call of a tool in the background survive this server, and those of others
// continue, see continueAll for ask. Able says whether the client can be asked.
func (s *Session) survive(tc *tools.Call, tool string, able func() bool, ask *approve.Place) {
	tc.Known = s.continueAll(ask)
	tc.Kept = func(t *turn.Turn) {
		if t.Resume() == nil {
			return
		}
		resume := &taskfile.Resume{Form: able(), Client: tc.Client, Background: true}
		f := &turnFile{session: s, task: taskfile.Task{Tool: tool, Message: "in the background", Resume: resume}}
		changed, err := f.create(t, says)
		if err != nil {
			s.Log().Warn("a turn in the background would not survive this server", "error", err)
			return
		}
		f.keepInBackground(t, changed)
	}
}

// continueAll continues the work of servers that were killed, once, in the background. Ask asks
// the questions of turns in the background, or is nil for this session's. The channel is closed
// when the turns are known here.
func (s *Session) continueAll(ask *approve.Place) <-chan struct{} {
	s.once.Do(func() {
		if !s.server.Tools.Continues() {
			close(s.known)
			return
		}
		s.Go(func() {
			defer close(s.known)
			all, err := s.server.Tasks.store.Gone()
			if err != nil {
				s.Log().Warn("tasks of other servers", "error", err)
			}
			for _, file := range all {
				if file.Principal == s.principal() {
					s.continueAs(file, ask)
				}
			}
		})
	})
	return s.known
}

// continueAs continues a task of a server that was killed, if this server does that, see continueAll for ask. If
// another session does, it waits for that. What prevents it is logged.
func (s *Session) continueAs(file taskfile.Task, ask *approve.Place) {
	if !s.server.Tools.Continues() || file.Resume == nil {
		return
	}
	if err := s.continued(file.ID, ask); err != nil && !errors.Is(err, taskfile.ErrNotServed) {
		s.Log().Warn("a task of a server that was killed is not continued", "task", file.ID, "error", err)
	}
}

// continued continues a task. Several goroutines and servers may try; one does.
func (s *Session) continued(id string, ask *approve.Place) error {
	tasks := s.server.Tasks
	if err := s.server.Tools.CanContinue(s.ctx); err != nil {
		return err
	}
	tasks.adopting <- struct{}{}
	defer func() { <-tasks.adopting }()
	if s.ctx.Err() != nil {
		return nil // the next server continues it
	}
	file, giveUp, err := tasks.store.Adopt(id)
	if err != nil {
		return err
	}
	if file.Resume.Background {
		err = s.continueInBackground(file, ask)
	} else {
		err = s.continueCall(file)
	}
	if err != nil {
		return errors.Join(err, giveUp())
	}
	return nil
}

// continueCall continues the call of a task.
func (s *Session) continueCall(file taskfile.Task) error {
	k := file.Resume
	client := elicit.Client{ProtocolVersion: modern.ProtocolVersion, Name: k.Client}
	if k.Form {
		client.Capabilities = json.RawMessage(`{"elicitation":{}}`)
	}
	tasks := s.server.Tasks
	leave, err := tasks.limit.Enter(s.principal())
	if err != nil {
		return err
	}
	c := s.unstarted(jsonrpc.ID{}, file.Tool, client, true)
	c.inbox.life, c.alone = k.Life, true
	task := &liveTask{turnFile: turnFile{session: s, task: file}, call: c}
	c.toolCall.Begun = func(t *turn.Turn) {
		c.begin(t)
		task.keep(t, t.Changed())
	}
	r, err := s.server.Tools.Continue(c.ctx, c.toolCall, k.Turn, &file.Did, false)
	if err != nil {
		c.cancel(nil)
		leave()
		return err
	}
	if r != nil { // it did not begin
		leave()
		c.finish(r)
		task.end()
		return nil
	}
	c.run(leave, func() *mcptypes.CallToolResult { return c.toolCall.Result(c.ctx) })
	return nil
}

// continueInBackground continues a turn in the background.
func (s *Session) continueInBackground(file taskfile.Task, ask *approve.Place) error {
	tasks := s.server.Tasks
	a := thread.Attend{Ask: ask, Comes: s.comes(file.Resume.Form)}
	if !a.Comes {
		a.Ask = nil
	}
	tc := s.call(jsonrpc.ID{}, file.Resume.Client, a, a)
	var begun *turn.Turn
	tc.Durable, tc.Begun = true, func(t *turn.Turn) { begun = t }
	_, err := s.server.Tools.Continue(s.ctx, tc, file.Resume.Turn, &file.Did, true)
	if err != nil {
		return err
	}
	if begun == nil {
		return tasks.store.Remove(file.ID) // the limit of turns in the background; its result says so to nobody
	}
	(&turnFile{session: s, task: file}).keepInBackground(begun, begun.Changed())
	return nil
}
