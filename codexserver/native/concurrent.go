package native

import (
	"context"
	"sync"

	"github.com/codexmcp/codexmcp/codexserver/native/internal/tool"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// maxConcurrent bounds the calls that run concurrently.
const maxConcurrent = 8

// independents returns how many calls at the beginning of calls may run concurrently.
func (t *turn) independents(calls []tool.Call) int {
	n := 0
	for n < len(calls) && n < maxConcurrent && t.tools.Independent(calls[n]) {
		n++
	}
	return n
}

// callAll runs independent calls concurrently. Their events come in the order of the
// calls, as if they had run one after another: the events of a call wait until the calls
// before it have ended.
func (t *turn) callAll(ctx context.Context, calls []tool.Call) ([]tool.Result, []error) {
	results, errs := make([]tool.Result, len(calls)), make([]error, len(calls))
	if err := t.act(tool.Act{}); err != nil { // now, since concurrent calls must not write to the history
		for i := range errs {
			errs[i] = err
		}
		return results, errs
	}
	q := &eventQueue{turn: t, calls: make([]queuedCall, len(calls))}
	var running sync.WaitGroup
	for i, call := range calls {
		tools := *t.tools
		tools.Acting = t.note
		tools.Host = queuedHost{t.toolHost(), q, i}
		running.Go(func() {
			defer q.done(i)
			results[i], errs[i] = tools.Call(ctx, call)
		})
	}
	running.Wait()
	return results, errs
}

// eventQueue puts the events of concurrent calls in the order of the calls.
type eventQueue struct {
	turn *turn // whose lock guards the rest

	first int // the first call that has not ended; its events are emitted at once
	calls []queuedCall
}

type queuedCall struct {
	events []protocol.EventMsg
	done   bool
}

func (q *eventQueue) add(call int, m protocol.EventMsg) {
	q.turn.mu.Lock()
	defer q.turn.mu.Unlock()
	if call == q.first {
		q.turn.conv.emit(m)
		return
	}
	q.calls[call].events = append(q.calls[call].events, m)
}

// done ends a call and emits the waiting events of the calls after it.
func (q *eventQueue) done(call int) {
	q.turn.mu.Lock()
	defer q.turn.mu.Unlock()
	q.calls[call].done = true
	for q.first < len(q.calls) && q.calls[q.first].done {
		q.first++
		if q.first == len(q.calls) {
			return
		}
		for _, m := range q.calls[q.first].events {
			q.turn.conv.emit(m)
		}
		q.calls[q.first].events = nil
	}
}

// queuedHost is the host of one of several concurrent calls.
type queuedHost struct {
	toolHost
	queue *eventQueue
	call  int
}

func (h queuedHost) Emit(m protocol.EventMsg) { h.queue.add(h.call, m) }
