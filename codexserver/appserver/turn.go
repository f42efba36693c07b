package appserver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/appserver/appclient"
	"github.com/codexmcp/codexmcp/codexserver/appserver/apptypes"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

const (
	// interruptGrace is how long a caller waits for the end of its interrupted turn.
	interruptGrace = 900 * time.Millisecond
	// interruptLimit is how long an interrupted turn may take to end. An app-server that
	// takes longer is killed, so that the turn does not continue.
	interruptLimit = 10 * time.Second
	// holdBack is how long the event that begins an item waits for a question
	// about it, if nothing else shows that the item runs. The app-server asks within milliseconds, on a busy machine
	// within some hundred.
	holdBack = time.Second
	// countLimit is how long the reason of a refusal waits for the end of the model's
	// response. When a message comes earlier, Codex stops reading the response and does not
	// count its tokens.
	countLimit = 2 * time.Second
)

// turn is a turn of a conversation from its start to its end. It outlives its start in the app-server, which may
// fail, and ends before the app-server's turn if that does not end in time.
type turn struct {
	host   engine.Host
	ctx    context.Context // ends when the turn does
	cancel context.CancelCauseFunc

	started chan struct{} // closed when the next are set, or the start has failed
	grant   *box.Grant    // what it may do
	thread  *thread
	app     *appclient.Turn // the turn in the app-server, which may end later; nil without one

	mu      sync.Mutex // also keeps the events in order
	letters letters
	aborted error             // why an answer aborted the turn; no further question is asked
	ended   bool              // no further event is emitted
	counted chan struct{}     // closed when the tokens of the model's last response have been counted
	agents  map[string]string // the turns of sub-agents by thread, "" where it has ended
	seen    reported

	interrupt func() (cleared <-chan struct{}) // calls ends, once
}

// reported is what the app-server has reported of a turn.
type reported struct {
	open      map[itemKey]*openItem // items that have started and not completed
	asked     map[itemKey]bool      // the commands and patches that were asked about
	questions map[itemKey]*question // the open ones about items, by what Codex counts an answer for
	diff      string                // the last one emitted
	last      *string               // the model's last message
	final     *string               // the last message that the model marked as its answer
	coming    strings.Builder       // the message that is being written
	usage     *protocol.TokenUsageInfo
}

var errTurnEnded = errors.New("the turn has ended")

// newTurn returns a turn. Its context ends with ctx at the latest.
func newTurn(ctx context.Context, host engine.Host) *turn {
	r := &turn{
		host: host, started: make(chan struct{}), counted: make(chan struct{}),
		agents: map[string]string{}, seen: reported{open: map[itemKey]*openItem{}, asked: map[itemKey]bool{}, questions: map[itemKey]*question{}},
	}
	r.ctx, r.cancel = context.WithCancelCause(ctx)
	r.interrupt = sync.OnceValue(r.ends)
	return r
}

// begin starts the turn in the app-server, when the thread's last one has ended there. It waits until the
// app-server has begun it, or for the end of ctx, after which await interrupts it.
func (r *turn) begin(ctx context.Context, t *thread, grant *box.Grant, p *apptypes.TurnParams) error {
	c := t.child
	if err := c.settle(ctx, t.id); err != nil {
		return err
	}
	r.mu.Lock() // a notification of the turn and a question wait for app
	c.mu.Lock()
	app, err := c.app.Begin(p, r.note)
	if err == nil {
		t.turn = r
	}
	c.mu.Unlock()
	r.thread, r.grant, r.app = t, grant, app
	r.mu.Unlock()
	if err != nil {
		return err
	}
	err = r.begun(ctx, controlLimit)
	if _, late := errors.AsType[*timeoutError](err); late {
		r.interrupt() // in case it begins later
	} else if ctx.Err() != nil {
		return nil
	}
	return err
}

// begun waits until the app-server has begun the turn.
func (r *turn) begun(ctx context.Context, limit time.Duration) error {
	return r.thread.child.within(ctx, limit, apptypes.CallTurnStart, r.app.Begun)
}

// end emits the last events, cancels the open questions, and returns the error of the turn. Nothing is emitted
// after it returns. Failed is why the turn was not started.
func (r *turn) end(ctx context.Context, failed error) error {
	defer r.cancel(errTurnEnded)
	var end *apptypes.Turn
	var died error
	if failed == nil {
		if end, _ = r.app.End(); end == nil && ctx.Err() == nil {
			died = r.thread.child.obituary() // without the lock, because open questions end before
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	if r.thread != nil {
		r.thread.leave(r)
	}
	for _, o := range r.seen.open {
		o.timer.Stop()
	}
	missed := r.letters.missed()
	for _, l := range missed {
		r.host.Emit(userMessage(l.input))
	}
	if len(missed) > 0 {
		r.host.Emit(protocol.BackgroundEvent{Message: fmt.Sprintf(
			"the turn ended before the model read all messages to it; it will read %d in the next turn", len(missed))})
	}
	switch {
	case end != nil && end.Status == apptypes.TurnStatusCompleted:
		return r.finish(end)
	case ctx.Err() != nil:
		return r.abort(context.Cause(ctx))
	case failed != nil:
		return r.fail(failed.Error())
	case r.aborted != nil:
		return r.abort(r.aborted)
	case end != nil:
		return r.finish(end)
	}
	return r.fail(died.Error() + "; the conversation can continue in a new process")
}

// note emits the events of a notification of the thread or of a sub-agent.
func (r *turn) note(method string, n *apptypes.Note) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return
	}
	r.count(method)
	r.notification(method, n)
}

// count records whether the tokens of the model's last response have been counted. They are
// once the response has ended; what is read of a response, or a result that the next one is
// for, comes before that.
func (r *turn) count(method string) {
	switch method {
	case apptypes.NoteThreadTokenUsageUpdated:
		if !closed(r.counted) {
			close(r.counted)
		}
	case apptypes.NoteItemCompleted, apptypes.NoteItemAgentMessageDelta, apptypes.NoteItemReasoningSummaryTextDelta, apptypes.NoteItemReasoningTextDelta:
		if closed(r.counted) {
			r.counted = make(chan struct{})
		}
	}
}

// whole waits for the end of the model's response, for a bounded time.
func (r *turn) whole(ctx context.Context) {
	r.mu.Lock()
	counted := r.counted
	r.mu.Unlock()
	limited, stop := context.WithTimeout(ctx, countLimit)
	defer stop()
	select {
	case <-counted:
	case <-limited.Done():
	}
}

// release emits the event that begins an item, if it is still held back. An
// item that was asked about waits for the decision.
func (r *turn) release(key itemKey, decided bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.ended && (decided || !r.seen.asked[key]) {
		r.begins(key)
	}
}

// report emits an event that is not the app-server's, unless the turn has ended.
func (r *turn) report(e protocol.EventMsg) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.ended {
		r.host.Emit(e)
	}
}

// await waits for the end of the turn. It interrupts the turn when ctx ends, and returns soon after that.
func (r *turn) await(ctx context.Context) {
	if end, _ := r.app.Wait(ctx); end == nil && ctx.Err() == nil || end != nil && end.Status != apptypes.TurnStatusInterrupted {
		return
	}
	select {
	case <-r.interrupt():
	case <-r.thread.child.gone:
	case <-time.After(interruptGrace):
	}
}

// ends ends the turn, its sub-agents' turns and their commands. It does not wait; cleared is
// closed when they have ended.
func (r *turn) ends() (cleared <-chan struct{}) {
	c := r.thread.child
	done := make(chan struct{})
	c.run.Go(func() {
		defer close(done)
		err := r.begun(context.Background(), interruptLimit)
		for late := new(timeoutError); errors.As(err, &late); {
			err = r.begun(context.Background(), interruptLimit)
		}
		if err != nil {
			return
		}
		ctx, stop := context.WithTimeout(context.Background(), interruptLimit)
		defer stop()
		for thread, turn := range r.turns() {
			if turn != "" {
				p := apptypes.InterruptParams{ThreadID: thread, TurnID: turn}
				_ = c.app.Call(ctx, apptypes.CallTurnInterrupt, p, nil) // refused if the turn has just ended by itself
			}
		}
		if end, _ := r.app.Wait(ctx); end == nil && ctx.Err() != nil {
			c.kill(&timeoutError{apptypes.CallTurnInterrupt, interruptLimit})
		} else if end != nil {
			for thread := range r.turns() { // Codex would keep their commands for a later turn
				_ = c.app.Call(ctx, apptypes.CallThreadBackgroundTerminalsClean, apptypes.ThreadRef{ThreadID: thread}, nil)
			}
		}
	})
	return done
}

// turns returns the ids of the turn and of its sub-agents' turns by thread.
func (r *turn) turns() map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := maps.Clone(r.agents)
	all[r.thread.id] = r.app.ID()
	return all
}

// Steer implements [engine.Steerer].
func (c *conversation) Steer(ctx context.Context, items []protocol.InputItem) error {
	input, err := inputItems(items)
	if err == nil && len(input) == 0 {
		err = errors.New("the message is empty")
	}
	if err != nil {
		return &engine.RefusedError{Err: err}
	}
	r := c.running.Load()
	if r == nil {
		return engine.ErrNoTurn
	}
	select {
	case <-r.started:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return r.steer(ctx, &letter{input: input})
}

// steer sends a message to the turn, whose start is over. It also returns [engine.ErrNoTurn] if the turn ended
// while the app-server's answer was on its way: the next turn then does not repeat the message.
func (r *turn) steer(ctx context.Context, l *letter) error {
	r.mu.Lock()
	over := r.ended || r.app == nil || r.app.ID() == ""
	if !over {
		r.letters.sent = append(r.letters.sent, l)
	}
	r.mu.Unlock()
	if over {
		return engine.ErrNoTurn
	}
	c := r.thread.child
	p := &apptypes.SteerParams{ThreadID: r.thread.id, ExpectedTurnID: r.app.ID(), Input: l.input}
	err := limited(ctx, controlLimit, apptypes.CallTurnSteer, func(ctx context.Context) error {
		return c.app.Call(ctx, apptypes.CallTurnSteer, p, nil)
	})
	r.mu.Lock()
	if !r.ended {
		l.taken = err == nil
	}
	inTime := l.taken || l.read
	r.mu.Unlock()
	var answer *jsonrpc.Error
	switch {
	case err == nil && inTime:
		return nil
	case err == nil, errors.Is(err, jsonrpc.ErrClosed):
		return engine.ErrNoTurn
	case !errors.As(err, &answer):
		return err
	}
	if err = c.explain(err); errors.Is(err, errNoTurn) {
		return engine.ErrNoTurn
	}
	return &engine.RefusedError{Err: err}
}

// letters are the messages of a turn. When it is interrupted, the app-server drops those that the model has not
// read. The turn's lock guards them.
type letters struct {
	again    []apptypes.Input // messages to earlier turns, which began this turn's input
	prompted bool             // the model has read the turn's own input
	sent     []*letter        // while the turn ran
}

// letter is a message to a running turn.
type letter struct {
	input []apptypes.Input
	taken bool // by the app-server
	read  bool // by the model
}

// read notes that the model has read a message of the user. The first one is the turn's own input. It reports
// whether it is a message that came while the turn ran. Only the text tells: some versions do not report the
// client's id.
func (l *letters) read(m *protocol.UserMessage) bool {
	if !l.prompted {
		l.prompted = true
		return false
	}
	for _, one := range l.sent {
		if !one.read && userMessage(one.input).Message == m.Message {
			one.read = true
			return true
		}
	}
	return false
}

// missed returns the messages that the model did not read.
func (l *letters) missed() (left []*letter) {
	for _, one := range l.sent {
		if one.taken && !one.read {
			left = append(left, one)
		}
	}
	return left
}

// userMessage returns a message of the user with its texts and images.
func userMessage(input []apptypes.Input) protocol.UserMessage {
	m := protocol.UserMessage{Kind: protocol.UserPlain}
	for _, it := range input {
		if it.Text != nil {
			m.Message += *it.Text
		}
		if it.URL != nil {
			m.Images = append(m.Images, *it.URL)
		}
	}
	return m
}

// inputItems returns the parts of a message as Codex takes them.
func inputItems(items []protocol.InputItem) ([]apptypes.Input, error) {
	out := make([]apptypes.Input, 0, len(items))
	for i, it := range items {
		var w apptypes.Input
		switch it.Type {
		case protocol.InputText:
			w.Type, w.Text = apptypes.UserInputText, &it.Text
		case protocol.InputImage:
			w.Type, w.URL = apptypes.UserInputImage, &it.ImageURL
		case protocol.InputLocalImage:
			w.Type, w.Path = apptypes.UserInputLocalImage, &it.Path
		default:
			return nil, fmt.Errorf("input item %d has the unknown type %q", i, it.Type)
		}
		out = append(out, w)
	}
	return out, nil
}
