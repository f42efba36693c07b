package appserver

import (
	"context"
	"errors"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/appserver/apptypes"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// start is how a turn begins in the app-server: by an answer and a notification, in any order. The
// turn's lock guards it.
type start struct {
	call   *jsonrpc.Call // which starts the turn; nil before it is sent
	id     string        // of the turn
	known  chan struct{} // closed when id is set
	active chan struct{} // closed when the app-server takes messages to the turn
}

// name sets the id, once.
func (s *start) name(id string) {
	if s.id == "" && id != "" {
		s.id = id
		close(s.known)
	}
}

// activate records that the app-server takes messages to the turn.
func (s *start) activate() {
	select {
	case <-s.active:
	default:
		close(s.active)
	}
}

// answer returns the id in the answer to the call, which has come.
func (s *start) answer() (id string, err error) {
	var reply apptypes.TurnReply
	err = s.call.Result(&reply)
	if err == nil && reply.Turn.ID == "" {
		err = errors.New("codex answered turn/start without the id of a turn")
	}
	return reply.Turn.ID, err
}

// named records the turn's id, from the answer or from turn/started, whichever
// comes first.
func (r *turn) named(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.start.name(id)
}

// name returns the turn's id, "" before it is known.
func (r *turn) name() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.start.id
}

// activate records that the app-server takes messages to the turn.
func (r *turn) activate() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.start.activate()
}

// request asks the app-server to start the turn. If that fails, it releases the claim of
// the thread.
func (r *turn) request(ctx context.Context, method string, params any) (*turn, error) {
	t := r.thread
	r.mu.Lock() // so that a notification of the turn finds the call
	r.start.call = t.child.app.Begin(context.WithoutCancel(ctx), method, params)
	r.mu.Unlock()
	if err := r.answered(ctx); err != nil {
		var late *timeoutError
		if errors.As(err, &late) {
			r.interrupt() // in case it begins later
		} else {
			r.complete(nil)
		}
		r.finish(nil)
		t.free()
		return nil, err
	}
	return r, nil
}

// answered waits until the app-server has accepted the turn.
func (r *turn) answered(ctx context.Context) error {
	limit := time.NewTimer(controlLimit)
	defer limit.Stop()
	c := r.thread.child
	select {
	case <-r.start.call.Done():
	case <-r.start.known: // turn/started came before the answer
		return nil
	case <-ctx.Done():
		return nil // await interrupts the turn
	case <-limit.C:
		late := &timeoutError{apptypes.CallTurnStart, controlLimit}
		if !c.answers() {
			c.kill(late)
		}
		return late
	}
	id, err := r.start.answer()
	if errors.Is(err, jsonrpc.ErrClosed) {
		return c.obituary()
	}
	if err != nil {
		return err
	}
	r.named(id)
	return nil
}

// begun waits until the app-server has begun the turn. It returns false if it never will.
// An app-server that does not answer the start is killed, unless it answers other
// requests.
func (r *turn) begun() bool {
	c := r.thread.child
	limit := time.NewTimer(interruptLimit)
	defer limit.Stop()
	for {
		select {
		case <-r.start.call.Done():
			id, err := r.start.answer()
			if err != nil {
				r.complete(nil) // it never began
				return false
			}
			r.named(id)
			return true
		case <-r.completed:
			return true
		case <-r.start.known:
			return true
		case <-c.end.gone:
			return false
		case <-limit.C:
			if !c.answers() {
				c.kill(&timeoutError{apptypes.CallTurnStart, interruptLimit})
			}
		}
	}
}
