package codexserver

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// conversations are those of one session, by id. The zero value is ready.
type conversations struct {
	mu     sync.Mutex
	byID   map[string]*conversation
	closed bool
}

var errSessionEnded = errors.New("the session has ended")

func (cs *conversations) add(c *conversation) error {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if cs.closed {
		return errSessionEnded
	}
	if cs.byID == nil {
		cs.byID = map[string]*conversation{}
	}
	cs.byID[c.ID()] = c
	return nil
}

func (cs *conversations) find(id string) *conversation {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return cs.byID[id]
}

// close closes every conversation once its turn has ended.
func (cs *conversations) close() error {
	cs.mu.Lock()
	cs.closed = true
	all := cs.byID
	cs.byID = nil
	cs.mu.Unlock()
	var err error
	for _, c := range all {
		c.turn <- struct{}{}
		err = errors.Join(err, c.Close())
	}
	return err
}

// conversation is an engine's conversation with its place in line.
type conversation struct {
	engine.Conversation
	host *host
	turn chan struct{} // holds one token while a turn runs
}

// run waits for its place in line, then runs one turn for the call. A turn
// that never began is an interrupted one.
func (c *conversation) run(ctx context.Context, call *call, in protocol.TurnInput) error {
	select {
	case c.turn <- struct{}{}:
	case <-ctx.Done():
		return &engine.AbortError{Reason: protocol.AbortInterrupted, Cause: context.Cause(ctx)}
	}
	defer func() { <-c.turn }()
	c.host.begin(call)
	return c.Turn(ctx, in)
}

// call is one tools/call that runs a turn.
type call struct {
	request jsonrpc.ID
	event   string // the submission id of its events; "" takes the conversation's next

	mu      sync.Mutex
	answer  string   // the turn's last message
	excuses []string // why nobody could be asked
}

// id is the request's id as a string, whatever its JSON type.
func (c *call) id() string {
	if s, ok := c.request.Str(); ok {
		return s
	}
	return c.request.String()
}

func (c *call) finish(answer string) {
	c.mu.Lock()
	c.answer = answer
	c.mu.Unlock()
}

func (c *call) excuse(reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Contains(c.excuses, reason) {
		c.excuses = append(c.excuses, reason)
	}
}

// submissions counts what a conversation was told: messages, approvals and
// interrupts, as the ids of later turns show.
type submissions struct{ n int }

func (s *submissions) next() string {
	id := strconv.Itoa(s.n)
	s.n++
	return id
}
