package worker

import (
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

// Work is what a worker's server does. It is a [codexserver.Observer]. The zero value does nothing.
type Work struct {
	mu            sync.Mutex
	running, busy int       // how many turns there are, and how many turns and requests must not be interrupted
	begun         int       // how many calls and turns have begun
	answered      time.Time // when the last answer was taken
}

// settling is how long an answer that was taken may need to reach its turn, which waits until then.
const settling = time.Second

var _ codexserver.Observer = (*Work)(nil)

// turns returns how many turns run, how many turns and requests must not be interrupted, and how many have begun so far.
func (w *Work) turns() (running, busy, begun int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if busy = w.busy; time.Since(w.answered) < settling {
		busy++
	}
	return w.running, busy, w.begun
}

// Request implements [codexserver.Observer]. A call that waits for its turn must not be interrupted, because no other
// worker could answer it, and neither must an answer to a question of a task. Clients poll with the other methods.
func (w *Work) Request(r *jsonrpc.Request) (end func()) {
	answers := r.Method == modern.TasksUpdate.Name()
	if !answers && r.Method != mcptypes.ToolsCall.Name() {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begun++
	if !answers && !beginsTurn(r) {
		return nil
	}
	w.busy++
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.busy--
		if answers {
			w.answered = time.Now()
		}
	}
}

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

// Turn implements [codexserver.Observer].
func (w *Work) Turn(string) codexserver.TurnObserver {
	t := &turn{work: w, questions: map[*approval.Request]bool{}, effects: map[string]bool{}}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begun++
	w.running++
	t.judge()
	return t
}

// turn is a turn.
type turn struct {
	work      *Work
	questions map[*approval.Request]bool // the open ones
	effects   map[string]bool            // the commands, tools and patches that run
	busy      bool
	ended     bool
}

// judge says whether the turn must not be interrupted: it does not wait for an answer, or something of it runs. The
// caller holds the lock.
func (t *turn) judge() {
	busy := !t.ended && (len(t.questions) == 0 || len(t.effects) > 0)
	if busy == t.busy {
		return
	}
	t.busy = busy
	if busy {
		t.work.busy++
	} else {
		t.work.busy--
	}
}

// note changes what the turn does.
func (t *turn) note(change func()) {
	t.work.mu.Lock()
	defer t.work.mu.Unlock()
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
	t.note(func() {
		if !t.ended {
			t.ended = true
			t.work.running--
		}
	})
}
