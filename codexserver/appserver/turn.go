package appserver

import (
	"context"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/appserver/appclient"
	"github.com/codexmcp/codexmcp/codexserver/appserver/apptypes"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/go-json-experiment/json"
)

const (
	// interruptGrace is how long a caller waits for the end of its interrupted turn.
	interruptGrace = 900 * time.Millisecond
	// interruptLimit is how long an interrupted turn may take to end. An app-server that
	// takes longer is killed, so that the turn does not continue.
	interruptLimit = 10 * time.Second
	// holdBack is how long the event that begins an item waits for a question
	// about it. The app-server asks within milliseconds.
	holdBack = 200 * time.Millisecond
	// countLimit is how long the reason of a refusal waits for the end of the model's
	// response. When a message comes earlier, Codex stops reading the response and does not
	// count its tokens.
	countLimit = 2 * time.Second
)

// turn is a turn from its start to its end.
type turn struct {
	thread *thread
	host   engine.Host
	grant  *box.Grant      // what it may do
	ctx    context.Context // ends when the turn does
	cancel context.CancelCauseFunc

	app *appclient.Turn // the turn in the app-server, which may end later

	mu       sync.Mutex    // also keeps the events in order
	prompted bool          // the model has read the turn's own input
	letters  []*letter     // messages that came while it ran
	aborted  error         // why an answer aborted the turn; no further question is asked
	ended    bool          // no further event is emitted
	counted  chan struct{} // closed when the tokens of the model's last response have been counted
	tr       *translator
	agents   map[string]string // the turns of sub-agents by thread, "" where it has ended
}

// newTurn returns a turn. Its context ends with ctx at the latest.
func newTurn(ctx context.Context, t *thread, c *conversation) *turn {
	r := &turn{
		thread: t, host: c.host, grant: &c.settings.now, counted: make(chan struct{}), tr: newTranslator(), agents: map[string]string{},
	}
	r.tr.redact = t.child.redact
	r.tr.limits = t.child.lastLimits(time.Now())
	r.ctx, r.cancel = context.WithCancelCause(ctx)
	return r
}

var errTurnEnded = errors.New("the turn has ended")

// accepted waits until the app-server has begun the turn, or for the end of ctx, after which await
// interrupts it.
func (r *turn) accepted(ctx context.Context) error {
	limit := time.NewTimer(controlLimit)
	defer limit.Stop()
	c := r.thread.child
	var err error
	select {
	case <-r.app.Begun():
		if _, err = r.app.End(); errors.Is(err, jsonrpc.ErrClosed) {
			err = c.obituary()
		}
	case <-ctx.Done():
	case <-limit.C:
		err = &timeoutError{apptypes.CallTurnStart, controlLimit}
		if !c.answers() {
			c.kill(err)
		}
		r.interrupt() // in case it begins later
	}
	if err != nil {
		r.end(nil)
	}
	return err
}

// begun waits until the app-server has begun the turn. It returns false if it never will. An app-server
// that does not answer the start is killed, unless it answers other requests.
func (r *turn) begun() bool {
	c := r.thread.child
	limit := time.NewTimer(interruptLimit)
	defer limit.Stop()
	for {
		select {
		case <-r.app.Begun():
			_, err := r.app.End()
			return err == nil
		case <-c.end.gone:
			return false
		case <-limit.C:
			if !c.answers() {
				c.kill(&timeoutError{apptypes.CallTurnStart, interruptLimit})
			}
		}
	}
}

// note handles one notification of the turn.
func (r *turn) note(method string, n *apptypes.Note) {
	if method == apptypes.NoteItemCompleted {
		r.read(n.Item)
	}
	r.translate(method, n)
}

// end emits the last events and cancels the open questions. Nothing is emitted after it returns.
func (r *turn) end(last []protocol.EventMsg) {
	r.mu.Lock()
	r.ended = true
	r.tr.letGo()
	for _, e := range append(r.missed(), last...) {
		r.host.Emit(e)
	}
	r.mu.Unlock()
	r.cancel(errTurnEnded)
}

// translate emits the events of a notification of the thread or of a sub-agent.
func (r *turn) translate(method string, n *apptypes.Note) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return
	}
	r.count(method)
	events, err := r.tr.notification(method, n)
	if err != nil {
		r.thread.child.log.Warn("codex: notification not understood", "method", method, "error", err)
		return
	}
	for _, e := range events {
		r.host.Emit(e)
	}
	if method != apptypes.NoteItemStarted {
		return
	}
	for id, o := range r.tr.open {
		if o.held && o.timer == nil {
			o.timer = time.AfterFunc(holdBack, func() { r.release(id, false) })
		}
	}
}

// count records whether the tokens of the model's last response have been counted. They are
// once the response has ended; what is read of a response, or a result that the next one is
// for, comes before that.
func (r *turn) count(method string) {
	over := false
	select {
	case <-r.counted:
		over = true
	default:
	}
	switch method {
	case apptypes.NoteThreadTokenUsageUpdated:
		if !over {
			close(r.counted)
		}
	case apptypes.NoteItemCompleted, apptypes.NoteItemAgentMessageDelta, apptypes.NoteItemReasoningSummaryTextDelta, apptypes.NoteItemReasoningTextDelta:
		if over {
			r.counted = make(chan struct{})
		}
	}
}

// whole waits for the end of the model's response, for a bounded time.
func (r *turn) whole(ctx context.Context) {
	r.mu.Lock()
	counted := r.counted
	r.mu.Unlock()
	limit := time.NewTimer(countLimit)
	defer limit.Stop()
	select {
	case <-counted:
	case <-limit.C:
	case <-ctx.Done():
	}
}

// release emits the event that begins an item, if it is still held back. An
// item that was asked about waits for the decision.
func (r *turn) release(itemID string, decided bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if o := r.tr.open[itemID]; r.ended || o == nil || o.asked && !decided {
		return
	}
	for _, e := range r.tr.release(itemID) {
		r.host.Emit(e)
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

// agentTurn records a turn of a sub-agent, "" when it has ended.
func (r *turn) agentTurn(threadID, turnID string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.agents[threadID] = turnID
}

// await waits for the end of the turn, and returns the last events. It interrupts the turn
// when ctx ends, and returns soon after that.
func (r *turn) await(ctx context.Context) ([]protocol.EventMsg, error) {
	gone := r.thread.child.end.gone
	select {
	case <-r.app.Ended():
		if r.cutShort() {
			clearing, stop := context.WithTimeout(context.Background(), interruptGrace)
			defer stop()
			r.clear(clearing)
		}
		return r.outcome(nil)
	case <-gone:
		return r.outcome(nil)
	case <-ctx.Done():
	}
	cleared := r.interrupt()
	grace := time.NewTimer(interruptGrace)
	defer grace.Stop()
	select {
	case <-cleared:
	case <-gone:
	case <-grace.C:
	}
	return r.outcome(context.Cause(ctx))
}

// cutShort reports whether the app-server reported the turn as interrupted.
func (r *turn) cutShort() bool {
	end, _ := r.app.End()
	return end != nil && end.Status == apptypes.TurnStatusInterrupted
}

// clear ends the commands that an interrupted turn and its sub-agents left running. Codex
// would keep them for a later turn. Versions without the method answer with an error.
func (r *turn) clear(ctx context.Context) {
	for thread := range r.turns() {
		_ = r.thread.child.app.Call(ctx, apptypes.CallThreadBackgroundTerminalsClean, apptypes.ThreadRef{ThreadID: thread}, nil)
	}
}

// outcome returns the last events of the turn and its error. interrupted is why the
// caller ended the turn, nil when it did not.
func (r *turn) outcome(interrupted error) ([]protocol.EventMsg, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch end, _ := r.app.End(); {
	case end != nil && end.Status == apptypes.TurnStatusCompleted:
		return r.tr.end(end)
	case interrupted != nil:
		return r.tr.abort(interrupted)
	case r.aborted != nil:
		return r.tr.abort(r.aborted)
	case end != nil:
		return r.tr.end(end)
	}
	return r.tr.fail(r.thread.child.obituary().Error() + "; the conversation can continue in a new process")
}

// interrupt ends the turn, its sub-agents' turns and their commands. It does not wait; cleared is
// closed when they have ended.
func (r *turn) interrupt() (cleared <-chan struct{}) {
	c := r.thread.child
	done := make(chan struct{})
	c.run.Go(func() {
		defer close(done)
		if !r.begun() {
			return
		}
		ctx, stop := context.WithTimeout(context.Background(), interruptLimit)
		defer stop()
		r.cut(ctx)
		select {
		case <-r.app.Ended():
			r.clear(ctx)
		case <-c.end.gone:
		case <-ctx.Done():
			c.kill(&timeoutError{apptypes.CallTurnInterrupt, interruptLimit})
		}
	})
	return done
}

// cut interrupts the turn and its sub-agents' turns.
func (r *turn) cut(ctx context.Context) {
	for thread, turn := range r.turns() {
		if turn != "" {
			// Refused if the turn has just ended by itself; completed is closed then.
			_ = r.thread.child.app.Interrupt(ctx, thread, turn)
		}
	}
}

// turns returns the ids of the turn and of its sub-agents' turns by thread.
func (r *turn) turns() map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := maps.Clone(r.agents)
	all[r.thread.id] = r.app.ID()
	return all
}

// promise is a turn that the app-server may not have started yet.
type promise struct {
	begun chan struct{} // closed when turn is set, or when the start has failed
	turn  *turn
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
	now := c.running.Load()
	if now == nil {
		return engine.ErrNoTurn
	}
	select {
	case <-now.begun:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if now.turn == nil {
		return engine.ErrNoTurn
	}
	return now.turn.steer(ctx, &letter{input: input})
}

// steer sends a message to the turn. It also returns [engine.ErrNoTurn] if the turn ended
// while the app-server's answer was on its way.
func (r *turn) steer(ctx context.Context, l *letter) error {
	c := r.thread.child
	select {
	case <-r.app.Begun():
	case <-r.app.Ended():
		return engine.ErrNoTurn
	case <-c.end.gone:
		return engine.ErrNoTurn
	case <-r.ctx.Done():
		return engine.ErrNoTurn
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if !r.send(l) {
		return engine.ErrNoTurn
	}
	err := c.steer(ctx, &apptypes.SteerParams{ThreadID: r.thread.id, ExpectedTurnID: r.app.ID(), Input: l.input})
	return c.steered(err, r.sent(l, err == nil))
}

// steer sends a message to a running turn.
func (c *child) steer(ctx context.Context, p *apptypes.SteerParams) error {
	return within(ctx, controlLimit, apptypes.CallTurnSteer, func(ctx context.Context) error { return c.app.Steer(ctx, p) })
}

// steered returns the error of Steer for the result of turn/steer. InTime is the result of
// [turn.sent].
func (c *child) steered(err error, inTime bool) error {
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

// send records a message that is about to be sent. It returns false if the turn has ended.
func (r *turn) send(l *letter) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.ended {
		r.letters = append(r.letters, l)
	}
	return !r.ended
}

// sent records whether the app-server took a message. It returns false if the turn ended
// first: the next turn then does not repeat the message.
func (r *turn) sent(l *letter, taken bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.ended {
		l.taken = taken
	}
	return l.taken || l.read
}

// read reports that the model has read a message of the user. The first one is the turn's own input.
func (r *turn) read(raw stdjson.RawMessage) {
	m, ok := userMessage(raw)
	if !ok {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.prompted {
		r.prompted = true
		return
	}
	for _, l := range r.letters {
		if !r.ended && !l.read && l.event().Message == m.Message {
			l.read = true
			r.host.Emit(m)
			return
		}
	}
}

// unread returns the messages for the next turn: those that the model did not read. They follow left,
// those of earlier turns, unless the model has read the turn's input, which began with these.
func (r *turn) unread(left []apptypes.Input) []apptypes.Input {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.prompted {
		left = nil
	}
	for _, l := range r.letters {
		if l.taken && !l.read {
			left = append(left, l.input...)
		}
	}
	return left
}

// missed returns the events about messages that the model did not read before the turn's end. The lock is held.
func (r *turn) missed() (events []protocol.EventMsg) {
	for _, l := range r.letters {
		if l.taken && !l.read {
			events = append(events, l.event())
		}
	}
	if len(events) > 0 {
		events = append(events, protocol.BackgroundEvent{Message: fmt.Sprintf(
			"the turn ended before the model read all messages to it; it will read %d in the next turn", len(events))})
	}
	return events
}

// letter is a message to a running turn. When the turn is interrupted, the app-server
// drops messages that the model has not read.
type letter struct {
	input []apptypes.Input
	taken bool // by the app-server
	read  bool // by the model
}

// event returns the message in the form in which the app-server reports that the model has
// read it. Only the text identifies it: some versions do not report the client's id.
func (l *letter) event() protocol.UserMessage {
	m := protocol.UserMessage{Kind: protocol.UserPlain}
	for _, it := range l.input {
		if it.Text != nil {
			m.Message += *it.Text
		}
		if it.URL != nil {
			m.Images = append(m.Images, *it.URL)
		}
	}
	return m
}

// clientOf returns the id that a client gave its message.
func clientOf(raw stdjson.RawMessage) string {
	var it apptypes.UserMessage
	if json.Unmarshal(raw, &it) != nil {
		return ""
	}
	return it.ClientID
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
