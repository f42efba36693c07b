package approve

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/elicit"
)

// Instant is how long after its question an answer is at least that a person can have given. The
// fastest answer of a person in the recorded conversations came after 806 ms, the slowest of a
// program after 7 ms.
const Instant = 300 * time.Millisecond

// Clients are the clients of a session, by the names that they have in their clientInfo. They are
// safe for concurrent use.
type Clients struct {
	asking setting.Asking
	here   context.Context

	mu  sync.Mutex
	all map[string]*Client
}

// NewClients returns the clients of a session. At the end of here they have gone: nobody answers there any more.
func NewClients(here context.Context, a setting.Asking) *Clients {
	return &Clients{asking: a, here: here, all: map[string]*Client{}}
}

// maxClients is how many clients of a session are remembered.
const maxClients = 64

// Client returns the client with a name.
func (s *Clients) Client(name string) *Client {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.all[name]
	if c == nil {
		c = &Client{name: name, asking: s.asking, here: s.here}
		if len(s.all) < maxClients {
			s.all[name] = c
		}
	}
	return c
}

// Client is a client that places ask: whether it is asked at all, and whether a person answers
// there. Many clients declare that they can show questions, and then answer by themselves. It is
// safe for concurrent use.
type Client struct {
	name   string
	asking setting.Asking
	here   context.Context        // until it has gone
	row    atomic.Int32           // answers in a row that no person gave
	found  atomic.Pointer[string] // what it answered by itself, and so is not asked again
}

// errOnlyPage is why a client is not asked.
var errOnlyPage = errors.New("approvals.where says that only the page asks")

// by names the client in decisions.
func (c *Client) by() approval.Decider {
	if c != nil && c.asking.Terminal {
		return approval.ByTerminal
	}
	return approval.ByClient
}

// called names the client in sentences.
func (c *Client) called() string {
	if c.name == "" {
		return "The client"
	}
	return "The client " + elicit.ShowName(c.name)
}

// skip returns why the client is not asked when the question can be answered elsewhere, "" if it is asked.
func (c *Client) skip() string {
	if c == nil || c.found.Load() == nil {
		return ""
	}
	return c.called() + " was not asked, because it " + *c.found.Load()
}

// answers reports whether a person may answer there.
func (c *Client) answers() bool { return c.skip() == "" && !c.never() && c.here.Err() == nil }

// never reports whether the client is never asked.
func (c *Client) never() bool { return c != nil && c.asking.Of(c.name) == setting.WherePage }

// verdict says what an answer of a client is worth.
type verdict struct {
	automatic string // what no person answered; "" for a person's answer
	void      bool   // it counts as not given
}

// judge says what an answer is worth. Elsewhere reports whether another place could answer.
//
// If another place could, a refusal or an error that came at once, or is the second in a row that no person gave, is
// void. After the second, or a refusal at once, the client is not asked again. If no other place could, the answer
// counts as it was given. An approval that came at once counts if the settings say so and the client has not answered
// by itself before.
func (c *Client) judge(out elicit.Outcome, elsewhere func() bool) (v verdict) {
	if c == nil || !isAnswer(out) {
		return v
	}
	quick := out.Took > 0 && out.Took < Instant
	if !quick && out.Reason != elicit.ReasonClientError {
		c.row.Store(0)
		return v
	}
	answered := fmt.Sprintf("%s %d ms after the question", answers[out.Reason], max(out.Took.Milliseconds(), 1))
	v.automatic = c.called() + " " + answered
	approves := out.Decision.Approves()
	byItself := c.row.Add(1) > 1 || quick && !approves && out.Reason != elicit.ReasonNotUnderstood
	if approves {
		v.void = !c.asking.CountsInstant(c.name) || c.found.Load() != nil
	} else {
		v.void = (quick || byItself) && elsewhere()
	}
	if v.void && byItself && elsewhere() {
		c.found.CompareAndSwap(nil, &answered)
	}
	return v
}

// answers has the reasons of an outcome that a client gave, perhaps by an error, and what it did.
var answers = map[elicit.Reason]string{
	"": "accepted", elicit.ReasonDeclined: "declined", elicit.ReasonCancelled: "cancelled",
	elicit.ReasonClientError: "answered with an error", elicit.ReasonNotUnderstood: "answered what was not understood",
}

// isAnswer reports whether a client has answered a question.
func isAnswer(out elicit.Outcome) bool { return answers[out.Reason] != "" }
