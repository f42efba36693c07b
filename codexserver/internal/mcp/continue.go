package mcp

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/codexmcp/codexmcp/codexserver/internal/board"
	"github.com/codexmcp/codexmcp/codexserver/internal/mcp/taskfile"
	"github.com/codexmcp/codexmcp/codexserver/internal/mcptool"
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
	// Turn is [mcptool.Job.Keepsake].
	Turn jsontext.Value `json:"turn"`
	// Form is true if the client shows forms, and Host is its name.
	Form bool   `json:"form,omitzero"`
	Host string `json:"host,omitzero"`
	// Background is true for a turn in the background.
	Background bool `json:"background,omitzero"`
	// Life is how many servers have continued the turn.
	Life int `json:"life,omitzero"`
}

// encode returns the keepsake of a turn, or nil if no other server can continue it.
func (k keepsake) encode(j *mcptool.Job) jsontext.Value {
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
func (ts *Tasks) continues() bool { return ts != nil && ts.options.Continue }

// keepTurn keeps a file of a turn in the background, so that the next server can continue it. K is
// what it needs besides the turn.
func (s *ModernSession) keepTurn(j *mcptool.Job, tool string, k keepsake) {
	if !s.server.Tasks.continues() || j.Keepsake() == nil {
		return
	}
	k.Background = true
	news, _ := j.Changed() // before the file says what it is
	id, err := taskfile.NewID(j.ThreadID())
	var file taskfile.Task
	if err == nil {
		file, err = s.server.Tasks.store.Create(taskfile.Task{
			ID: id, Principal: s.principal(), Tool: tool, Status: taskfile.Working, Message: "in the background", Did: j.Did(),
			Resume: k.encode(j),
		})
	}
	if err != nil {
		s.log.Warn("a turn in the background would not survive this server", "error", err)
		return
	}
	s.follow(j, news, file, k)
}

// follow keeps the file of a turn in the background up to date. News is closed when there is some
// since the file was written.
func (s *ModernSession) follow(j *mcptool.Job, news <-chan struct{}, file taskfile.Task, k keepsake) {
	_, ended := j.Changed()
	t := &task{call: &call{session: s, job: j, done: ended, changed: make(chan struct{})}, keepsake: k, file: file}
	s.running.Go(func() { t.keep(news) })
}

// takeUp continues the work of servers that were killed, once, in the background. Ask asks
// the questions of turns in the background, or is nil for this session's. The channel is closed
// when the turns are known here.
func (s *ModernSession) takeUp(ask board.Ask) <-chan struct{} {
	s.taken.Do(func() {
		if !s.server.Tasks.continues() {
			close(s.took)
			return
		}
		s.running.Go(func() {
			defer close(s.took)
			all, err := s.server.Tasks.store.List()
			if err != nil {
				s.log.Warn("tasks of other servers", "error", err)
			}
			for _, e := range all {
				if s.ctx.Err() != nil {
					return
				}
				if e.Owner == taskfile.Gone && e.Task.Principal == s.principal() && e.Task.Resume != nil {
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

func (s *ModernSession) continueAs(file taskfile.Task, ask board.Ask) {
	if !s.server.Tasks.continues() || file.Resume == nil || s.ctx.Err() != nil {
		return
	}
	if err := s.continued(file.ID, ask); err != nil && !errors.Is(err, taskfile.ErrBusy) && !errors.Is(err, taskfile.ErrNotServed) {
		s.log.Warn("a task of a server that was killed is not continued", "task", file.ID, "error", err)
	}
}

// continued continues a task. Several goroutines and servers may try; one does.
func (s *ModernSession) continued(id string, ask board.Ask) error {
	tasks := s.server.Tasks
	if err := s.server.Tools.CanContinue(s.ctx); err != nil {
		return err
	}
	release, ok := tasks.adopt(s.ctx)
	if !ok {
		return s.ctx.Err()
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
	k.Life++
	if file.Resume, err = jsonv2.Marshal(k); err == nil {
		file, err = tasks.store.Update(file) // before a question has a key
	}
	if err == nil {
		err = tasks.enter(s.principal())
	}
	if err != nil {
		return giveUp(err)
	}
	cut := mcptool.Orphan{Thread: file.Thread(), Keepsake: k.Turn, Did: file.Did}
	if k.Background {
		err = s.continueInBackground(file, k, cut, ask)
	} else {
		err = s.continueCall(file, k, cut)
	}
	if err != nil {
		tasks.leave(s.principal())
		return giveUp(err)
	}
	return nil
}

// continueCall continues the call of a task.
func (s *ModernSession) continueCall(file taskfile.Task, k keepsake, cut mcptool.Orphan) error {
	done := make(chan struct{})
	c := &call{session: s, tool: file.Tool, done: done, changed: make(chan struct{})}
	c.slots = s.server.slots()
	c.form, c.taskable, c.life, c.adrift = k.Form, true, k.Life, true
	c.client = elicit.Client{ProtocolVersion: modern.ProtocolVersion, Name: k.Host}
	if k.Form {
		c.client.Capabilities = json.RawMessage(`{"elicitation":{}}`)
	}
	c.ctx, c.cancel = context.WithCancelCause(s.ctx)
	tc := s.Client.call(jsonrpc.ID{}, c.audience(c.ctx, false))
	tc.Shared, tc.MaxText, tc.Begun, tc.Host, tc.Durable = s.shared, maxText, c.begin, k.Host, true
	c.call = tc
	turn, err := s.server.Tools.Reopen(c.ctx, tc, cut)
	if err != nil {
		c.cancel(nil)
		return err
	}
	t := &task{call: c, keepsake: k, file: file, listeners: map[*listener]bool{}}
	c.task = t
	s.server.Tasks.add(t)
	s.running.Go(func() {
		defer close(done)
		defer s.server.Tasks.leave(s.principal())
		defer c.cancel(nil)
		var err error
		c.result, err = recovered(s.log, "a tool", func() (*mcptypes.CallToolResult, error) { return turn.Run(c.ctx, false), nil })
		if err != nil {
			c.result = mcptool.Broken()
		}
	})
	s.running.Go(func() { t.keep(nil) })
	return nil
}

// continueInBackground continues a turn in the background.
func (s *ModernSession) continueInBackground(file taskfile.Task, k keepsake, cut mcptool.Orphan, ask board.Ask) error {
	switch {
	case !k.Form && !s.waits():
		ask = s.unable
	case ask == nil:
		ask = s.hold
	}
	a := s.audience(s.ctx, way{turn: ask, background: ask}, nil)
	a.Turn = a.Background
	tc := s.Client.call(jsonrpc.ID{}, a)
	tc.Shared, tc.MaxText, tc.Host, tc.Durable = s.shared, maxText, k.Host, true
	var job *mcptool.Job
	tc.Begun = func(j *mcptool.Job) { job = j }
	turn, err := s.server.Tools.Reopen(s.ctx, tc, cut)
	if err != nil {
		return err
	}
	turn.Run(s.ctx, true)
	s.server.Tasks.leave(s.principal()) // it was counted as a task, which it is not
	if job == nil {
		return s.server.Tasks.store.Remove(file.ID) // the limit of turns in the background; its result says so to nobody
	}
	news, _ := job.Changed()
	s.follow(job, news, file, k)
	return nil
}
