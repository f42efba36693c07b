package native

import (
	"context"
	"sync"

	"github.com/codexmcp/codexmcp/codexserver/internal/tool"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// maxBeside bounds the calls that run side by side.
const maxBeside = 8

// independents is how many of the calls, from the first on, may run side by side.
func (t *turn) independents(calls []tool.Call) int {
	n := 0
	for n < len(calls) && n < maxBeside && t.tools.Independent(calls[n]) {
		n++
	}
	return n
}

// callAll runs calls that depend on nothing side by side. Their events come in
// the order of the calls, as if they had run one after another; those of a
// call wait for the end of the calls before it.
func (t *turn) callAll(ctx context.Context, calls []tool.Call) ([]tool.Result, []error) {
	t.commit() // now, since calls side by side must not
	results, errs := make([]tool.Result, len(calls)), make([]error, len(calls))
	q := &eventQueue{emit: t.emit, calls: make([]queuedCall, len(calls))}
	var running sync.WaitGroup
	for i, call := range calls {
		beside := *t.tools
		beside.Acting = nil
		beside.Host = queuedHost{t.toolHost(), q, i}
		running.Go(func() {
			defer q.done(i)
			results[i], errs[i] = beside.Call(ctx, call)
		})
	}
	running.Wait()
	return results, errs
}

// eventQueue puts the events of calls that run side by side in the order of
// the calls.
type eventQueue struct {
	emit func(protocol.EventMsg)

	mu    sync.Mutex
	first int // the call whose events go out at once
	calls []queuedCall
}

type queuedCall struct {
	events []protocol.EventMsg
	done   bool
}

func (q *eventQueue) add(call int, m protocol.EventMsg) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if call == q.first {
		q.emit(m)
		return
	}
	q.calls[call].events = append(q.calls[call].events, m)
}

// done lets the calls after an ended one come forward.
func (q *eventQueue) done(call int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.calls[call].done = true
	for q.first < len(q.calls) && q.calls[q.first].done {
		q.first++
		if q.first == len(q.calls) {
			return
		}
		for _, m := range q.calls[q.first].events {
			q.emit(m)
		}
		q.calls[q.first].events = nil
	}
}

// queuedHost is the host of one call among others.
type queuedHost struct {
	toolHost
	queue *eventQueue
	call  int
}

func (h queuedHost) Emit(m protocol.EventMsg) { h.queue.add(h.call, m) }
