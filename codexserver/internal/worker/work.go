package worker

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/tools"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
	"github.com/go-json-experiment/json"
)

// Work are the turns of a worker's server. It is a [codexserver.Observer]. The zero value has none.
type Work struct {
	mu            sync.Mutex
	running, busy int       // how many turns there are, and how many must not be interrupted
	begun         int       // how many calls have begun
	answers       int       // how many answers are being taken
	answered      time.Time // when the last one was taken
}

// settling is how long an answer that was taken may need to reach its turn, which waits until then.
const settling = time.Second

var _ codexserver.Observer = (*Work)(nil)

// turns returns how many turns run, how many of them must not be interrupted, and how many calls have begun so far.
func (w *Work) turns() (running, busy, begun int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if busy = w.busy; w.answers > 0 || time.Since(w.answered) < settling {
		busy++
	}
	return w.running, busy, w.begun
}

// Begin implements [codexserver.Observer]. It observes only tools/call, the turns of such calls that
// continue, and answers to the questions of a task: clients poll with the other methods.
func (w *Work) Begin(_ context.Context, r *codexserver.Request) codexserver.CallObserver {
	if r.RPC != nil && r.RPC.Method == modern.TasksUpdate.Name() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.begun++
		w.answers++
		return &answer{w}
	}
	if r.Continues == "" && (r.RPC == nil || r.RPC.Method != mcptypes.ToolsCall.Name()) {
		return nil
	}
	c := &call{work: w, turns: map[*turn]bool{}}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begun++
	if r.RPC != nil && beginsTurn(r.RPC) {
		c.begins = true
		w.busy++
	}
	return c
}

// answer is an answer that is being taken.
type answer struct{ work *Work }

// End implements [codexserver.CallObserver].
func (a *answer) End(error) {
	a.work.mu.Lock()
	defer a.work.mu.Unlock()
	a.work.answers--
	a.work.answered = time.Now()
}

// Turn implements [codexserver.CallObserver]. An answer has none.
func (a *answer) Turn(string, protocol.TokenUsage) codexserver.TurnObserver { return nil }

// MakesBusy reports whether a request with these headers begins a turn or answers a question of a task. Clients of
// 2026-07-28 send them, and the worker refuses a message that they do not describe.
func MakesBusy(h http.Header) bool {
	switch h.Get("Mcp-Method") {
	case modern.TasksUpdate.Name():
		return true
	case mcptypes.ToolsCall.Name():
		return tools.IsTurn(h.Get("Mcp-Name"))
	}
	return false
}

// beginsTurn reports whether a tools/call is one of a tool that runs a turn.
func beginsTurn(r *jsonrpc.Request) bool {
	var p struct {
		Name string `json:"name"`
	}
	return json.Unmarshal(r.Params, &p) == nil && tools.IsTurn(p.Name)
}

// call is a tools/call. Its turns may end later.
type call struct {
	work   *Work
	turns  map[*turn]bool
	begins bool // it counts as busy until it has a turn
	ended  bool
}

// begun ends the time before the first turn. The caller holds the lock.
func (c *call) begun() {
	if c.begins {
		c.begins = false
		c.work.busy--
	}
}

// End implements [codexserver.CallObserver].
func (c *call) End(error) {
	c.work.mu.Lock()
	defer c.work.mu.Unlock()
	c.ended = true
	c.begun()
	for t := range c.turns {
		t.judge()
	}
}

// Turn implements [codexserver.CallObserver].
func (c *call) Turn(string, protocol.TokenUsage) codexserver.TurnObserver {
	t := &turn{call: c, questions: map[*approval.Request]bool{}, effects: map[string]bool{}}
	c.work.mu.Lock()
	defer c.work.mu.Unlock()
	c.turns[t] = true
	c.work.running++
	t.judge()
	c.begun()
	return t
}

// turn is a turn that has not ended.
type turn struct {
	call      *call
	questions map[*approval.Request]bool // the open ones
	effects   map[string]bool            // the commands, tools and patches that run
	busy      bool
}

// judge says whether the turn must not be interrupted: it does not wait for an answer, something of it runs,
// or its call waits for it, which no other worker could answer. The caller holds the lock.
func (t *turn) judge() {
	busy := len(t.questions) == 0 || len(t.effects) > 0 || !t.call.ended
	if busy == t.busy {
		return
	}
	t.busy = busy
	if busy {
		t.call.work.busy++
	} else {
		t.call.work.busy--
	}
}

// note changes what the turn does.
func (t *turn) note(change func()) {
	t.call.work.mu.Lock()
	defer t.call.work.mu.Unlock()
	change()
	t.judge()
}

// Event implements [codexserver.TurnObserver].
func (t *turn) Event(m protocol.EventMsg) {
	var begun, ended string
	switch m := m.(type) {
	case protocol.ExecCommandBegin:
		begun = m.CallID
	case protocol.MCPToolCallBegin:
		begun = m.CallID
	case protocol.PatchApplyBegin:
		begun = m.CallID
	case protocol.ExecCommandEnd:
		ended = m.CallID
	case protocol.MCPToolCallEnd:
		ended = m.CallID
	case protocol.PatchApplyEnd:
		ended = m.CallID
	default:
		return
	}
	t.note(func() {
		delete(t.effects, ended)
		if begun != "" {
			t.effects[begun] = true
		}
	})
}

// Asked implements [codexserver.TurnObserver].
func (t *turn) Asked(r *approval.Request) { t.note(func() { t.questions[r] = true }) }

// Decided implements [codexserver.TurnObserver].
func (t *turn) Decided(r *approval.Request, _ approval.Decision) {
	t.note(func() { delete(t.questions, r) })
}

// End implements [codexserver.TurnObserver].
func (t *turn) End(error) {
	w := t.call.work
	w.mu.Lock()
	defer w.mu.Unlock()
	if !t.call.turns[t] {
		return
	}
	delete(t.call.turns, t)
	w.running--
	if t.busy {
		w.busy--
	}
}
