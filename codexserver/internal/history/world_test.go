package history_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/history"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

type act struct {
	Call    string
	Command []string
	Wait    time.Duration // before it
	With    bool          // asked at once with the next one
	Refused bool          // the provider refuses before it, and another one goes on
}

type script struct {
	Turn string
	Acts []act
}

// commands are what models want, by how they are decided.
var commands = [][]string{
	{"ls"},                   // free
	{"dd", "if=x"},           // allowed by the configuration
	{"rm", "x"},              // denied by the configuration
	{"make"}, {"make", "-k"}, // asked
	{"go", "test"}, {"go", "vet"}, // asked, with lasting rules
	{"touch", "x"},
}

func newModel() *history.Model {
	begins := func(word string) func(string) bool {
		return func(command string) bool { return strings.HasPrefix(command, word) }
	}
	return &history.Model{
		Free: begins("ls"), Allowed: begins("dd"), Forbidden: begins("rm"),
		Lasting: func(command string) string { // everything that is asked may be kept; make, touch in their exact words
			if strings.HasPrefix(command, "go ") {
				return command
			}
			return "exactly " + command
		},
	}
}

var configured = approval.Rules{Allow: []approval.Rule{{Command: []string{"dd"}, Outside: true}}, Deny: [][]string{{"rm"}}}

// faulty are the places where a test can plant a fault of the server. The zero value has none.
type faulty struct {
	// host wraps what the engine talks to.
	host func(engine.Host) engine.Host
	// record changes a line of the record.
	record func(line []byte) [][]byte
	// rules are other rules than those of the configuration.
	rules *approval.Rules
	// line changes a line between a client and the server; nil loses it.
	line func(line []byte) [][]byte
	// answered is called before a client sends an answer about a call.
	answered func(w *world, call string)
}

type world struct {
	model  *history.Model
	seed   uint64
	faults faulty
	dir    string

	mu      sync.Mutex
	threads []string
}

type session struct {
	world    *world
	mu       sync.Mutex
	id       string
	approved map[string]bool
}

func (w *world) Start(ctx context.Context, cfg protocol.Config, host engine.Host) (engine.Conversation, error) {
	s := &session{world: w, approved: map[string]bool{}}
	if w.faults.host != nil {
		host = w.faults.host(host)
	}
	c, err := engine.TurnFunc(s.turn).Start(ctx, cfg, host)
	if err == nil {
		s.id = c.ID()
		w.mu.Lock()
		w.threads = append(w.threads, s.id)
		w.mu.Unlock()
	}
	return c, err
}

func (s *session) turn(ctx context.Context, host engine.Host, in []protocol.InputItem) error {
	w := s.world
	var p script
	if err := json.Unmarshal([]byte(protocol.TextOf(in)), &p); err != nil {
		return err
	}
	w.model.Begun(p.Turn, s.id)
	defer w.model.Ended(p.Turn)
	said := []string{"turn " + p.Turn}
	for i := 0; i < len(p.Acts); i++ {
		together := p.Acts[i : i+1]
		for ; p.Acts[i].With && i+1 < len(p.Acts); i++ {
			together = p.Acts[i+1-len(together) : i+2]
		}
		select {
		case <-time.After(together[0].Wait + time.Nanosecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if together[0].Refused {
			s.elsewhere(host)
		}
		did := make([]string, len(together))
		outs := make([]elicit.Decision, len(together))
		var all sync.WaitGroup
		for i, a := range together {
			all.Go(func() { outs[i] = s.ask(ctx, host, p.Turn, a) })
		}
		all.Wait()
		if slices.Contains(outs, elicit.Abort) {
			return &engine.AbortError{Reason: protocol.AbortInterrupted, Cause: errors.New("aborted")}
		}
		for i, a := range together {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			did[i] = s.do(host, p.Turn, a, outs[i])
		}
		said = append(said, did...)
	}
	host.Emit(protocol.AgentMessage{Message: strings.Join(said, " ")})
	return nil
}

// elsewhere has another provider go on with a turn. Its engine reads what was done, and does not know what
// the first one remembered for the session.
func (s *session) elsewhere(host engine.Host) {
	host.Emit(protocol.ModelReroute{FromModel: "m", ToModel: "n", ToProvider: "other", Reason: "no more"})
	s.mu.Lock()
	clear(s.approved)
	s.mu.Unlock()
}

// ask returns the decision about a command, "" if it needs none.
func (s *session) ask(ctx context.Context, host engine.Host, turn string, a act) elicit.Decision {
	w, command := s.world, strings.Join(a.Command, " ")
	s.mu.Lock()
	unasked := command == "ls" || s.approved[command]
	s.mu.Unlock()
	if unasked {
		return ""
	}
	w.model.Asks(a.Call, turn, command)
	out := host.Ask(ctx, approval.Command{
		CallID: a.Call, Command: a.Command, Cwd: w.dir, Confinable: true, LeavesSandbox: true,
	})
	w.model.Told(a.Call, string(out.Decision))
	if out.Decision == elicit.ApprovedForSession {
		s.mu.Lock()
		s.approved[command] = true
		s.mu.Unlock()
	}
	return out.Decision
}

func (s *session) do(host engine.Host, turn string, a act, d elicit.Decision) string {
	w := s.world
	if d != "" && !d.Approves() {
		return a.Call + "=not"
	}
	host.Emit(protocol.ExecCommandBegin{CallID: a.Call, Command: a.Command, Cwd: w.dir})
	w.model.Ran(a.Call, s.id, turn, strings.Join(a.Command, " "), d == "")
	if !strings.HasSuffix(a.Call, ".1") { // an engine need not report each end
		host.Emit(protocol.ExecCommandEnd{CallID: a.Call})
	}
	return a.Call + "=ran"
}

// Write reads the record as it is written.
func (w *world) Write(line []byte) (int, error) {
	if w.faults.record == nil {
		return len(line), w.read(line)
	}
	for _, changed := range w.faults.record(line) {
		if err := w.read(changed); err != nil {
			return 0, err
		}
	}
	return len(line), nil
}

func (w *world) read(line []byte) error {
	var d struct {
		Event, CallID, DecisionID, Decision, By, Reason string
		Command                                         []string
	}
	if err := json.Unmarshal(line, &d); err != nil {
		return err
	}
	switch d.Event {
	case "begins":
		w.model.Begins(d.CallID, strings.Join(d.Command, " "), d.DecisionID != "")
	case "ends":
		w.model.Ends(d.CallID)
	default:
		w.model.Decided(d.CallID, d.Decision, d.By, d.Reason)
	}
	return nil
}

// choose returns what a person says about a call, and when: never so soon that only a program could have answered. The same
// seed gives the same. A lasting rule that the question does not show is not accepted.
func (w *world) choose(call, who string, lasting bool) (say history.Say, answer string, after time.Duration, ok bool) {
	h := fnv.New64a()
	fmt.Fprint(h, w.seed, call, who)
	r := rand.New(rand.NewPCG(h.Sum64(), 1))
	after = []time.Duration{400 * time.Millisecond, time.Second, time.Second, 30 * time.Second, 20 * time.Minute}[r.IntN(5)]
	answers := []struct {
		say  history.Say
		text string
	}{
		{history.Yes, `{"action":"accept"}`},
		{history.Yes, `{"action":"accept"}`},
		{history.Yes, `{"action":"accept","content":{"decision":"approved"}}`},
		{history.ForSession, `{"action":"accept","content":{"decision":"approved_for_session"}}`},
		{history.Always, `{"action":"accept","content":{"decision":"approved_always"}}`},
		{history.No, `{"action":"decline"}`},
		{history.No, `{"action":"accept","content":{"decision":"denied"}}`},
		{history.Stop, `{"action":"cancel"}`},
		{history.Unclear, `{"action":"decline","Action":"accept"}`},
		{history.Unclear, `{"action":"yes"}`},
	}
	a := answers[r.IntN(len(answers))]
	switch {
	case lasting && r.IntN(4) == 0: // few questions show a rule
		a = answers[4]
	case a.say == history.Always && !lasting:
		a.say = history.Unclear
	}
	return a.say, a.text, after, r.IntN(8) > 0
}

func (w *world) Name() approval.Decider { return "desk" }

func (*world) Event(approval.Thread, protocol.EventMsg) {}

func (*world) Decided(*approval.Request, approval.Decision) {}

// Ask implements [approval.Desk]. Its person answers every third question.
func (w *world) Ask(ctx context.Context, r *approval.Request) (json.RawMessage, error) {
	exec, _ := r.Subject.(approval.Command)
	say, answer, after, ok := w.choose(exec.CallID, "desk", r.Question.Always != nil)
	if !ok || exec.CallID[len(exec.CallID)-1]%3 > 0 {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	select {
	case <-time.After(after):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	w.model.Answered(exec.CallID, "desk", "desk", say)
	return json.RawMessage(answer), nil
}
