package approve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/elicit"
)

// Instant is how long after its question an answer is at least that a person can have given. The
// fastest answer of a person in the recorded conversations came after 806 ms, the slowest of a
// program after 7 ms.
const Instant = 300 * time.Millisecond

// Hosts are the clients of a session, by the names that they have in their clientInfo. They are
// safe for concurrent use.
type Hosts struct {
	asking setting.Asking
	here   context.Context

	mu  sync.Mutex
	all map[string]*Host
}

// NewHosts returns the hosts of a session. At the end of here they have gone: nobody answers there any more.
func NewHosts(here context.Context, a setting.Asking) *Hosts {
	return &Hosts{asking: a, here: here, all: map[string]*Host{}}
}

// maxHosts is how many clients of a session are remembered.
const maxHosts = 64

// Host returns the client with a name.
func (s *Hosts) Host(name string) *Host {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.all[name]
	if h == nil {
		h = &Host{name: name, asking: s.asking, here: s.here}
		if len(s.all) < maxHosts {
			s.all[name] = h
		}
	}
	return h
}

// Host is a client that places ask: whether it is asked at all, and whether a person answers
// there. Many clients declare that they can show questions, and then answer by themselves. It is
// safe for concurrent use.
type Host struct {
	name   string
	asking setting.Asking
	here   context.Context        // until it has gone
	row    atomic.Int32           // answers in a row that no person gave
	found  atomic.Pointer[string] // what it answered by itself, and so is not asked again
}

// errOnlyPage is why a client is not asked.
var errOnlyPage = errors.New("approvals.where says that only the page asks")

// by names the host in decisions.
func (h *Host) by() approval.Decider {
	if h != nil && h.asking.Terminal {
		return approval.ByTerminal
	}
	return approval.ByClient
}

// called names the host in sentences.
func (h *Host) called() string {
	if h.name == "" {
		return "The client"
	}
	return "The client " + elicit.ShowName(h.name)
}

// skip returns why the host is not asked, "" if it is, when the question can be answered
// elsewhere.
func (h *Host) skip() string {
	if h == nil || h.found.Load() == nil {
		return ""
	}
	return h.called() + " was not asked, because it " + *h.found.Load()
}

// answers reports whether a person may answer there.
func (h *Host) answers() bool { return h.skip() == "" && !h.never() && h.here.Err() == nil }

// never reports whether the host is never asked.
func (h *Host) never() bool { return h != nil && h.asking.Of(h.name) == setting.WherePage }

// verdict is what an answer of a host is.
type verdict struct {
	automatic string // what no person answered; "" for a person's answer
	void      bool   // it counts as not given
}

// judge says what an answer is. Elsewhere reports whether another place could answer. An answer
// that no person gave, or an error, is void there if it came at once or is the second in a row. After
// the second, or a refusal at once, the host is not asked again. Without another place it counts as it was given. An
// approval that no person gave is what the settings say, but void if the host has lied before.
func (h *Host) judge(out elicit.Outcome, elsewhere func() bool) (v verdict) {
	if h == nil || !isAnswer(out) {
		return v
	}
	quick := out.Took > 0 && out.Took < Instant
	if !quick && out.Reason != elicit.ReasonClientError {
		h.row.Store(0)
		return v
	}
	did := fmt.Sprintf("%s %d ms after the question", answers[out.Reason], max(out.Took.Milliseconds(), 1))
	v.automatic = h.called() + " " + did
	approves := out.Decision.Approves()
	lies := h.row.Add(1) > 1 || quick && !approves && out.Reason != elicit.ReasonNotUnderstood
	if approves {
		v.void = !h.asking.CountsInstant(h.name) || h.found.Load() != nil
	} else {
		v.void = (quick || lies) && elsewhere()
	}
	if v.void && lies && elsewhere() {
		h.found.CompareAndSwap(nil, &did)
	}
	return v
}

// human reports whether only a decision that a person makes now counts.
func human(r *approval.Request) bool {
	exec, _ := r.Event.(protocol.ExecApprovalRequest)
	return exec.Human || unruled(r)
}

// unruled reports whether no rule decides about a request: one for more than the configuration gives, or to overrule a denial.
func unruled(r *approval.Request) bool {
	switch r.Event.(type) {
	case protocol.AccessRequest, protocol.OverruleRequest:
		return true
	}
	return false
}

// onlyPerson voids an approval of a question that only a person may approve, if no person can have given it: at any
// place, even one that is no client. Waited is how long the place took; the outcome may know better.
func (e *end) onlyPerson(waited time.Duration) {
	if !e.out.Decision.Approves() {
		return
	}
	if took := cmp.Or(e.out.Took, waited); e.automatic == "" && took < Instant {
		e.automatic = fmt.Sprintf("The %s %s %d ms after the question", e.by, cmp.Or(answers[e.out.Reason], "accepted"), max(took.Milliseconds(), 1))
	}
	e.void = e.automatic != ""
}

// answers has the reasons of an outcome that a client gave, perhaps by an error, and what it did.
var answers = map[elicit.Reason]string{
	"": "accepted", elicit.ReasonDeclined: "declined", elicit.ReasonCancelled: "cancelled",
	elicit.ReasonClientError: "answered with an error", elicit.ReasonNotUnderstood: "answered what was not understood",
}

// isAnswer reports whether a client has answered a question.
func isAnswer(out elicit.Outcome) bool { return answers[out.Reason] != "" }

// notCounted is the outcome of an approval that no person gave, and that does not count.
func notCounted(r *approval.Request, out elicit.Outcome) elicit.Outcome {
	words := "the approval came faster than a person can read, and so it does not count"
	if human(r) {
		words = "the approval came faster than a person can read, and only a person may approve this"
	}
	return denied(words, "denied: "+words, out.Level)
}
