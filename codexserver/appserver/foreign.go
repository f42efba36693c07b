package appserver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/appserver/apptypes"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// Codex begins turns that no call has asked for: while a goal is active, for a message that another program has queued, and
// when it likes. A person who reads a result believes that it is all that happens, so nothing of a conversation works on after
// its Turn. The conversation is ours as long as our app-server has its thread loaded, and nobody else speaks to that.
//
// A Turn is the turn that turn/start has answered. What has its id is in it, such as compaction; Codex's reviewer works in
// threads of which clients hear nothing. A sub-agent has a thread of its own, which an item of the Turn announces, and its turns
// are in the Turn while that runs. Each other turn in these threads is foreign. That holds for 0.154.0 and 0.171.0. The latter
// also names the root of a turn, which does not tell: a turn for a goal has the root of the Turn in which the goal was set.

const (
	// goalTries is how often a goal that is active again is paused.
	goalTries = 5
	// interruptPause is how long the interrupt of a foreign turn may take before the next: one that comes before the turn has
	// begun, or after its end, is refused, or not answered by 0.154.
	interruptPause = time.Second
)

const (
	goalPaused    = "Codex's goal of this conversation was paused, because nothing of it works on after its turn"
	turnForeign   = "Codex began a turn by itself, which nobody had asked for here, and it was interrupted"
	agentsForeign = "a sub-agent of Codex worked on after the turn, and was interrupted"
)

// news are what the next result of a conversation says, since no turn ran when it happened.
type news struct {
	mu    sync.Mutex
	words []string
}

// add keeps words, each once.
func (n *news) add(words string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !slices.Contains(n.words, words) {
		n.words = append(n.words, words)
	}
}

// all returns the words.
func (n *news) all() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.words)
}

// take returns the words, which are said then.
func (n *news) take() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	words := n.words
	n.words = nil
	return words
}

// say logs words about a thread, and has the result of its running Turn say them, or else the next one.
func (t *thread) say(words string) {
	t.child.log.Warn("codex: "+words, "thread", t.id)
	_, r := t.child.find(t.root.id)
	if r == nil || !r.report(protocol.BackgroundEvent{Message: words, Remark: true}) {
		t.root.news.add(words)
	}
}

// foreign handles the begin and the end of a turn that no Turn has. It ends one that begins.
func (c *child) foreign(method string, n *apptypes.Note) {
	t, r := c.find(n.ThreadID)
	switch {
	case t == nil:
	case method == apptypes.NoteTurnCompleted:
		c.mu.Lock()
		defer c.mu.Unlock()
		if ended := t.root.foreign[n.Turn.ID]; ended != nil {
			delete(t.root.foreign, n.Turn.ID)
			close(ended)
		}
	case t.agent == "":
		t.stop(n.Turn.ID, turnForeign)
	case r == nil || !r.owns():
		t.stop(n.Turn.ID, agentsForeign)
	}
}

// stop ends a foreign turn of a thread, and does not wait. A goal is paused before, which would begin the next turn. If the turn
// does not end in time, the app-server is killed.
func (t *thread) stop(turn, why string) {
	c, ended := t.child, make(chan struct{})
	c.mu.Lock()
	known := t.root.foreign[turn] != nil
	if !known {
		t.root.foreign[turn] = ended
	}
	c.mu.Unlock()
	if known {
		return
	}
	t.say(why)
	c.work(func() {
		ctx, stop := context.WithTimeout(context.Background(), interruptLimit)
		defer stop()
		_, _ = t.pause(ctx) // over and Stop look again
		for {
			c.work(func() {
				p := apptypes.InterruptParams{ThreadID: t.id, TurnID: turn}
				_ = c.app.Call(ctx, apptypes.CallTurnInterrupt, p, nil)
			})
			select {
			case <-ended: // Codex would keep its commands for a later turn
				p := apptypes.ThreadRef{ThreadID: t.id}
				_ = c.app.Call(ctx, apptypes.CallThreadBackgroundTerminalsClean, p, nil)
				return
			case <-c.gone:
				return
			case <-ctx.Done():
				c.kill(late(apptypes.CallTurnInterrupt, interruptLimit))
				return
			case <-time.After(interruptPause):
			}
		}
	})
}

// rests waits until no foreign turn of a conversation runs. The error is the cause of ctx, or the end of the app-server.
func (t *thread) rests(ctx context.Context) error {
	for {
		t.child.mu.Lock()
		running := slices.Collect(maps.Values(t.foreign))
		t.child.mu.Unlock()
		if len(running) == 0 {
			return nil
		}
		select {
		case <-running[0]:
		case <-t.child.gone:
			return t.child.obituary()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// pause pauses the goal of a thread, which need not be loaded, until it is not active. It reports whether it was. No error means
// that Codex begins no turn for it.
func (t *thread) pause(ctx context.Context) (paused bool, err error) {
	select {
	case t.root.pausing <- struct{}{}:
		defer func() { <-t.root.pausing }()
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
	for range goalTries {
		var r apptypes.GoalReply
		err = t.child.app.Call(ctx, apptypes.CallThreadGoalGet, apptypes.ThreadRef{ThreadID: t.id}, &r)
		if errors.As(err, new(*jsonrpc.Error)) { // it has no goals
			return paused, nil
		}
		if err != nil || r.Goal == nil || r.Goal.Status != apptypes.ThreadGoalStatusActive {
			return paused, err
		}
		p := apptypes.GoalParams{ThreadID: t.id, Status: apptypes.ThreadGoalStatusPaused}
		if err = t.child.app.Call(ctx, apptypes.CallThreadGoalSet, p, nil); err != nil {
			return paused, err
		}
		if !paused {
			t.say(goalPaused)
		}
		paused = true
	}
	return paused, fmt.Errorf("codex app-server has set the goal of conversation %s again %d times", t.root.id,
		goalTries)
}

// goalSet pauses a goal as soon as it is active, so that no turn begins for it between the end of a Turn and the answer to that.
func (t *thread) goalSet() {
	t.child.work(func() {
		ctx, stop := context.WithTimeout(context.Background(), interruptLimit)
		defer stop()
		_, _ = t.pause(ctx) // over looks again
	})
}

// owns reports whether the turns of sub-agents are in the Turn.
func (r *turn) owns() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.ended && !r.over
}

// named waits until the app-server has begun the turn, and returns its id.
func (r *turn) named(ctx context.Context) (string, error) {
	r.mu.Lock()
	app := r.app
	r.mu.Unlock()
	if app == nil {
		return "", errNobody
	}
	if err := app.Begun(ctx); err != nil {
		return "", err
	}
	return app.ID(), nil
}

// leavesNothing ends what Codex would go on with after the turn, which has ended in the app-server. It waits for that, or for
// the end of ctx.
func (r *turn) leavesNothing(ctx context.Context) {
	t, done := r.thread, make(chan struct{})
	c := t.child
	c.work(func() {
		defer close(done)
		limited, stop := context.WithTimeout(context.Background(), interruptLimit)
		defer stop()
		if _, err := t.pause(limited); err != nil {
			c.kill(err)
			return
		}
		r.mu.Lock()
		r.over = true
		agents := maps.Clone(r.agents)
		r.mu.Unlock()
		for id, turn := range agents {
			if agent, _ := c.find(id); agent != nil && turn != "" {
				agent.stop(turn, agentsForeign)
			}
		}
		_ = t.rests(context.Background()) // each ends, or the app-server
	})
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// Stop implements [engine.Stopper].
func (c *conversation) Stop(ctx context.Context) (bool, error) {
	t := c.engine.loaded(c.id)
	if t == nil {
		return false, nil
	}
	limited, stop := context.WithTimeoutCause(ctx, interruptLimit, late(apptypes.CallTurnInterrupt, interruptLimit))
	defer stop()
	t.child.mu.Lock()
	running := len(t.foreign) > 0
	t.child.mu.Unlock()
	paused, err := t.pause(limited)
	if err == nil {
		err = t.rests(limited)
	}
	return running || paused, err
}

// loaded returns a conversation's thread in the running app-server, or nil.
func (e *Engine) loaded(id string) *thread {
	e.mu.Lock()
	l := e.launch
	e.mu.Unlock()
	if l == nil || !closed(l.done) || l.err != nil {
		return nil
	}
	if t, _ := l.child.find(id); t != nil && t.agent == "" {
		return t
	}
	return nil
}

// newsOf returns what Codex did in a conversation since its last turn, "" if it did nothing.
func (e *Engine) newsOf(id string) string {
	if t := e.loaded(id); t != nil {
		return strings.Join(t.news.all(), "; ")
	}
	return ""
}

// keepGoalsOff switches Codex's goals off in a conversation, unless a configuration has the key. One that Codex does not let a
// client pause stays off, too.
func (c *child) keepGoalsOff(ctx context.Context, file *configuration, s *settings) error {
	const table, key = "features", "goals"
	on := false
	for _, layer := range append([]keys{s.own}, file.layers...) {
		if layer.text(table, key) != nil {
			on = get[bool](layer, table, key)
			break
		}
	}
	if on {
		err := c.control(ctx, apptypes.CallThreadGoalGet, apptypes.ThreadRef{ThreadID: noThread}, nil)
		if err != nil && !errors.As(err, new(*faultError)) {
			return err
		}
		on = !errors.Is(err, errNoGoals)
	}
	s.own = s.own.with(at(on, table, key))
	return nil
}

// noThread is the id of no thread.
const noThread = "00000000-0000-0000-0000-000000000000"
