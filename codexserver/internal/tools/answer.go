package tools

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
)

// answer makes the result of a turn from what it sees of it. It is a
// [thread.Watcher] in front of the caller's own.
type answer struct {
	thread.Watcher
	attendance thread.Attendance // the caller's, with the answer as its watcher

	mu      sync.Mutex
	text    string   // the turn's last message
	remarks []string // why questions could not be answered, and what was left out
}

func newAnswer(a thread.Attendance) *answer {
	w := &answer{Watcher: a.Watcher}
	w.attendance = a
	w.attendance.Watcher = w
	return w
}

// Event implements [thread.Watcher].
func (a *answer) Event(thread string, e protocol.Event) {
	if m, ok := e.Msg.(protocol.TaskComplete); ok && m.LastAgentMessage != nil {
		a.mu.Lock()
		a.text = *m.LastAgentMessage
		a.mu.Unlock()
	}
	a.Watcher.Event(thread, e)
}

// Decided implements [thread.Watcher].
func (a *answer) Decided(d approval.Decision) {
	for _, words := range d.Remarks {
		a.remark(words)
	}
	a.Watcher.Decided(d)
}

// remark adds a block to the result, unless it is there already.
func (a *answer) remark(words string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !slices.Contains(a.remarks, words) {
		a.remarks = append(a.remarks, words)
	}
}

// run runs a turn and returns its result: the answer, and in further blocks why
// questions could not be answered and what was left out of the call. A turn that fails or is aborted is an error
// result with the reason; the thread stays usable.
func (a *answer) run(ctx context.Context, t *thread.Thread, prompt string) *mcptypes.CallToolResult {
	err := t.Turn(ctx, t.Queue(), a.attendance, protocol.TurnInput{Items: protocol.TextInput(prompt)})
	a.mu.Lock()
	defer a.mu.Unlock()
	text := a.text
	var abort *engine.AbortError
	switch {
	case errors.As(err, &abort):
		text = "Turn aborted: " + abortCause(abort)
	case err != nil:
		text = err.Error()
	}
	r := result(t.ID(), append([]string{text}, a.remarks...)...)
	if err != nil {
		r.IsError = new(true)
	}
	return r
}

func abortCause(e *engine.AbortError) string {
	switch {
	case e.Cause == nil:
		return string(e.Reason)
	case errors.Is(e.Cause, jsonrpc.ErrClosed):
		return clientGone
	}
	return e.Cause.Error()
}

const clientGone = "the client closed the connection"

// notBegun is the result of a call whose conversation could not be had. Where
// the client has gone meanwhile, err is a consequence of that.
func notBegun(ctx context.Context, tool, thread string, err error) *mcptypes.CallToolResult {
	if errors.Is(context.Cause(ctx), jsonrpc.ErrClosed) {
		return failure(thread, "Turn aborted: "+clientGone)
	}
	return failure(thread, tool+": "+err.Error())
}
