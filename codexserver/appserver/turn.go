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

	"github.com/codexmcp/codexmcp/codexserver/appserver/appclient"
	"github.com/codexmcp/codexmcp/codexserver/appserver/apptypes"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	// interruptGrace is how long a caller waits for the end of its interrupted turn.
	interruptGrace = 900 * time.Millisecond
	// interruptLimit is how long an interrupted turn may take to end. An app-server that
	// takes longer is killed, so that the turn does not continue.
	interruptLimit = 10 * time.Second
	// quietTime is after how long clients see that an item which has not begun may run: Codex does not say whether a patch or
	// the call of a tool runs, or waits for what decides about it. Nothing else depends on it.
	quietTime = time.Second
	// countLimit is how long the reason of a refusal waits for the end of the model's
	// response. When a message comes earlier, Codex stops reading the response and does not
	// count its tokens.
	countLimit = 2 * time.Second
)

// turn is a turn of a conversation from its start to its end. It outlives its start in the app-server, which may
// fail, and ends before the app-server's turn if that does not end in time.
type turn struct {
	host   engine.Host
	call   context.Context // ends when the caller interrupts the turn
	ctx    context.Context // ends then, and before the turn's last events: that of its questions
	cancel context.CancelFunc

	started  chan struct{} // closed when the next are set, or the start has failed
	prompt   string        // the text of its message
	form     bool          // it is for the form of an answer alone
	leaves   bool          // the turn before it, which it goes on with, has left commands running
	settings *settings     // of the thread's conversation
	thread   *thread
	app      *appclient.Turn // the turn in the app-server, which may end later; nil without one

	mu      sync.Mutex // also keeps the events in order
	letters letters
	// why an answer, or the wait for the network, ended the turn; no further question is asked
	aborted error
	ended   bool              // no further event is emitted
	over    bool              // the turn has ended in the app-server, and no sub-agent is in it any more
	counted chan struct{}     // closed when the tokens of the model's last response have been counted
	agents  map[string]string // the turns of sub-agents by thread, "" where it has ended

	questions  map[*question]bool // the open ones
	overruling int                // the open questions whether a denial is overruled
	overrules  sync.WaitGroup     // waits for who asks them
	trial      sync.WaitGroup     // waits for who says that the sandbox runs no command
	offline    *time.Timer        // runs while the turn waits for the network, see heard
	reconnect  time.Duration      // how long it may wait; if not above 0, for ever

	// What the app-server has reported.
	open    map[itemKey]*openItem // items that have started and not completed
	asked   map[itemKey]bool      // the commands and patches that were asked about
	reviews map[itemKey]itemKey   // the open ones, by their ids, and the items whose start they are about
	missing map[string]string     // why MCP servers have not started, as reported
	diff    string                // the last one emitted
	last    *string               // the model's last message
	final   *string               // the last message that the model marked as its answer
	coming  strings.Builder       // the message that is being written
	usage   *protocol.TokenUsageInfo

	interrupt func() (cleared <-chan struct{}) // calls ends, once
}

// newTurn returns a turn of a call with a context.
func newTurn(ctx context.Context, host engine.Host) *turn {
	r := &turn{
		host: host, call: ctx, started: make(chan struct{}), counted: make(chan struct{}), agents: map[string]string{},
		questions: map[*question]bool{}, open: map[itemKey]*openItem{}, asked: map[itemKey]bool{},
		reviews: map[itemKey]itemKey{},
		missing: map[string]string{},
	}
	r.ctx, r.cancel = context.WithCancel(ctx)
	r.interrupt = sync.OnceValue(r.ends)
	return r
}

// begin starts the turn in the app-server, when the thread's last one has ended there, which may have been interrupted: the
// app-server would take this one for its continuation. It waits until the
// app-server has begun it, or for the end of ctx, after which await interrupts it.
func (r *turn) begin(ctx context.Context, t *thread, s *settings, p *apptypes.TurnParams) error {
	c := t.child
	settling, stop := context.WithTimeoutCause(ctx, controlLimit, errStillStarting)
	defer stop()
	err := c.app.Settle(settling, t.id)
	if err == nil {
		err = t.rests(settling)
	}
	if err = c.explain(settling, err); err != nil {
		if errors.Is(err, errStillStarting) && len(c.turns()) == 0 {
			c.kill(err) // the next turn starts a new one
		}
		return err
	}
	r.mu.Lock() // a notification of the turn and a question wait for app
	c.mu.Lock()
	app, err := c.app.Begin(p, r.note)
	if err == nil {
		t.turn = r
	}
	c.mu.Unlock()
	r.thread, r.settings, r.app = t, s, app
	r.mu.Unlock()
	if err != nil {
		return err
	}
	for _, words := range t.news.take() {
		r.report(protocol.BackgroundEvent{Message: words, Remark: true})
	}
	r.startupNoted()
	err = r.begun(ctx, controlLimit)
	if errors.Is(err, errLate) {
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
func (r *turn) end(failed error) error {
	r.mu.Lock()
	r.cancel()
	r.mu.Unlock()
	r.overrules.Wait()
	var end *apptypes.Turn
	if failed == nil {
		if end, _ = r.app.End(); end == nil && r.call.Err() == nil {
			failed = fmt.Errorf("%w; the conversation can continue in a new process", r.thread.child.obituary())
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	r.online()
	if t := r.thread; t != nil {
		t.child.mu.Lock()
		if t.turn == r {
			t.turn = nil
		}
		t.child.mu.Unlock()
	}
	for key, o := range r.open {
		if o.item.Type != apptypes.ThreadItemCommandExecution && !r.asked[key] && !r.reviewing(key) {
			r.begins(key) // Codex may have run it, and its end is not known; a command that ran has begun
		}
	}
	if r.thread != nil {
		r.misses(true)
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
	case r.call.Err() != nil:
		return r.abort(context.Cause(r.call))
	case errors.As(r.aborted, new(*offlineError)):
		return r.fail(r.aborted.Error())
	case r.aborted != nil:
		return r.abort(r.aborted)
	case failed != nil:
		return r.fail(failed.Error())
	}
	return r.finish(end)
}

// note emits the events of a notification of the thread or of a sub-agent, whose messages are not part of the conversation.
func (r *turn) note(method string, n *apptypes.Note) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return
	}
	r.heard(method, n)
	r.acted(method, n)
	r.keepsToForm(n)
	switch id := n.TurnID; {
	case n.ThreadID == "" || n.ThreadID == r.thread.id:
		r.told(method, n)
	case method == apptypes.NoteTurnCompleted:
		r.agents[n.ThreadID] = ""
	default:
		if method == apptypes.NoteTurnStarted && n.Turn != nil {
			id = n.Turn.ID
		}
		if id != "" { // it may have started before it was announced
			r.agents[n.ThreadID] = id
		}
	}
}

// whole waits for the end of the model's response, for a bounded time.
func (r *turn) whole(ctx context.Context) {
	r.mu.Lock()
	counted := r.counted
	r.mu.Unlock()
	select {
	case <-counted:
	case <-time.After(countLimit):
	case <-ctx.Done():
	}
}

// quiet tells clients that an item may run of which nothing was reported for a while.
func (r *turn) quiet(key itemKey, o *openItem) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.ended && r.open[key] == o && o.held && !r.asked[key] && !r.reviewing(key) {
		r.host.Emit(protocol.BackgroundEvent{Message: "Codex runs " + words(subject(&o.item)) +
			", or still decides about it"})
	}
}

// report emits an event that is not the app-server's, unless the turn has ended, which it reports.
func (r *turn) report(e protocol.EventMsg) (told bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.ended {
		r.host.Emit(e)
	}
	return !r.ended
}

// await waits for the end of the turn. It interrupts the turn when ctx ends, and returns soon after that.
func (r *turn) await(ctx context.Context) {
	if end, _ := r.app.Wait(ctx); end == nil && ctx.Err() == nil || end != nil &&
		end.Status != apptypes.TurnStatusInterrupted {
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
	c.work(func() {
		defer close(done)
		err := r.begun(context.Background(), interruptLimit)
		for errors.Is(err, errLate) && !closed(c.gone) { // the end of one that answers nothing is late, too
			err = r.begun(context.Background(), interruptLimit)
		}
		if err != nil {
			return
		}
		ctx, stop := context.WithTimeout(context.Background(), interruptLimit)
		defer stop()
		soon, cancel := context.WithTimeout(ctx, steerLimit)
		_, _ = r.thread.pause(soon) // or else the interrupt begins the next turn; see goalSet about a later one
		cancel()
		for thread, turn := range r.turns() {
			if turn != "" {
				p := apptypes.InterruptParams{ThreadID: thread, TurnID: turn}
				_ = c.app.Call(ctx, apptypes.CallTurnInterrupt, p, nil) // refused if the turn has just ended by itself
			}
		}
		if end, _ := r.app.Wait(ctx); end == nil && ctx.Err() != nil {
			c.kill(late(apptypes.CallTurnInterrupt, interruptLimit))
		} else if end != nil {
			for thread := range r.turns() { // Codex would keep their commands for a later turn
				_ = c.app.Call(ctx, apptypes.CallThreadBackgroundTerminalsClean, apptypes.ThreadRef{ThreadID: thread},
					nil)
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
	r.mu.Lock()
	l, over := &letter{input: input}, r.ended || r.form || r.app == nil || r.app.ID() == ""
	if !over {
		r.letters.sent = append(r.letters.sent, l)
	}
	r.mu.Unlock()
	if over {
		return engine.ErrNoTurn
	}
	ch := r.thread.child
	p := &apptypes.SteerParams{ThreadID: r.thread.id, ExpectedTurnID: r.app.ID(), Input: input}
	err = ch.control(ctx, apptypes.CallTurnSteer, p, nil)
	r.mu.Lock()
	defer r.mu.Unlock()
	l.taken = err == nil && !r.ended
	switch {
	case l.taken, err == nil && l.read:
		return nil
	case err == nil, errors.Is(err, errNoTurn), closed(ch.gone): // the next turn does not repeat the message
		return engine.ErrNoTurn
	case errors.As(err, new(*faultError)):
		return &engine.RefusedError{Err: err}
	}
	return err
}

// offlineWords are in the error that Codex reports while it waits for the network, which it does without end. It ends
// the turn itself after other errors.
const offlineWords = "waiting for network"

// offlineError is why a turn ended that waited for the network.
type offlineError struct{ error }

// heard is called with each notification of the turn and its sub-agents, under the turn's lock. A turn that waits for the
// network ends when nothing else has happened for [setting.Codex].Reconnect.
func (r *turn) heard(method string, n *apptypes.Note) {
	var said apptypes.TurnError
	if method == apptypes.NoteError {
		said = lenient[apptypes.TurnError](n.Error)
	}
	waits := n.WillRetry && strings.Contains(said.Message, offlineWords)
	switch {
	case !waits, len(r.questions) > 0, len(r.open) > 0:
		r.online()
	case r.offline == nil && r.reconnect > 0:
		var timer *time.Timer
		err := fmt.Errorf("the installed Codex has waited for the network for %v (%s): there is no network, or a "+
			"proxy is needed (set HTTPS_PROXY), or base_url is wrong; "+
			"the conversation can continue. limits.reconnect says how long a turn waits", r.reconnect, wordsOf(&said))
		timer = time.AfterFunc(r.reconnect, func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			if r.offline == timer {
				r.abandon(&offlineError{err})
			}
		})
		r.offline = timer
	}
}

// online records that something else than the wait for the network happens. The lock is held.
func (r *turn) online() {
	if r.offline != nil {
		r.offline.Stop()
		r.offline = nil
	}
}

// Writes implements [engine.Resolver].
func (c *conversation) Writes() []string { return c.settings.writes }

// leftPause is the time between two looks for programs that a turn left.
const leftPause = time.Second

// Rest implements [engine.Resolver]. Codex keeps commands that a turn left running for later turns, in which the
// model can write to them. The turn itself may not have ended in the app-server.
func (c *conversation) Rest(then func()) {
	r := c.running.Load()
	if r == nil || r.app == nil {
		then()
		return
	}
	if end, _ := r.app.End(); end != nil && !r.leavesCommands() {
		then()
		return
	}
	ch := r.thread.child
	ch.work(func() {
		defer then()
		for r.left() {
			select {
			case <-time.After(leftPause):
			case <-ch.gone:
				return
			}
		}
	})
}

// leavesCommands reports whether commands of the turn, or of those that it goes on with, have not ended. R may be nil.
func (r *turn) leavesCommands() bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.leaves || slices.ContainsFunc(slices.Collect(maps.Values(r.open)), func(o *openItem) bool {
		return o.item.Type == apptypes.ThreadItemCommandExecution
	})
}

// left reports whether the turn or one of its commands, or of its sub-agents, still runs. It does if the app-server does not say.
func (r *turn) left() bool {
	end, _ := r.app.End()
	for thread := range r.turns() {
		var list struct {
			Data []jsontext.Value `json:"data"`
		}
		if end == nil || r.thread.child.control(context.Background(), apptypes.CallThreadBackgroundTerminalsList,
			apptypes.ThreadRef{ThreadID: thread}, &list) != nil || len(list.Data) > 0 {
			return true
		}
	}
	return false
}

// unmoved interrupts the turn and returns false if the name of a folder that its commands can write leads elsewhere than when
// the conversation began. The caller holds the turn's lock. A command that began meanwhile may have written there.
func (r *turn) unmoved() bool {
	if moved := r.settings.moved(); moved != "" && r.aborted == nil {
		r.abandon(errors.New(moved + ": look at what the last of them changed"))
		r.host.Emit(protocol.BackgroundEvent{Message: "interrupted: " + r.aborted.Error()})
	}
	return r.aborted == nil
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
