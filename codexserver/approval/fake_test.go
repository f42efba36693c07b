package approval_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

const (
	accept  = `{"action":"accept"}`
	session = `{"action":"accept","content":{"decision":"approved_for_session"}}`
	decline = `{"action":"decline","content":{"feedback":"use make"}}`
	cancel  = `{"action":"cancel"}`
)

// answer is how a person at a place answers a question.
type answer func(context.Context) (string, error)

// says answers at once, even if the question is over.
func says(words string) answer {
	return func(context.Context) (string, error) { return words, nil }
}

// after answers later, unless the question is withdrawn first.
func after(d time.Duration, words string) answer {
	if d == 0 {
		return says(words) // the race detector of Go 1.26 crashes at times on time.After(0) in a bubble
	}
	return func(ctx context.Context) (string, error) {
		select {
		case <-time.After(d):
			return words, nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// waits never answers.
func waits(ctx context.Context) (string, error) {
	<-ctx.Done()
	return "", ctx.Err()
}

// fails cannot show the question.
func fails(err error) answer {
	return func(context.Context) (string, error) { return "", err }
}

func panics(context.Context) (string, error) { panic("a fault of the desk") }

var errBroken = errors.New("broken")

// client is a place that asks as the clients of a server are asked.
type client struct {
	name  approval.Decider
	asker *elicit.Asker
}

func newClient(a answer, o *elicit.Options) client {
	able := elicit.Client{Capabilities: json.RawMessage(`{"elicitation":{}}`)}
	call := func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
		words, err := a(ctx)
		return json.RawMessage(words), err
	}
	return client{approval.ByClient, elicit.NewAsker(elicit.CallFunc(call), able, o)}
}

// unable is a client that cannot be asked.
func unable(o *elicit.Options) client {
	return client{approval.ByClient, elicit.NewAsker(elicit.CallFunc(nil), elicit.Client{}, o)}
}

func (c client) Decider() approval.Decider { return c.name }

func (c client) Ask(ctx context.Context, r *approval.Request) (elicit.Outcome, error) {
	return c.asker.Ask(ctx, r.Question), nil
}

// raw is a place that returns the outcome that it is made of.
type raw struct {
	name approval.Decider
	ask  func(context.Context, *approval.Request) (elicit.Outcome, error)
}

func (p raw) Decider() approval.Decider { return p.name }

func (p raw) Ask(ctx context.Context, r *approval.Request) (elicit.Outcome, error) {
	return p.ask(ctx, r)
}

// desk answers as configured and records what it sees.
type desk struct {
	answer  answer
	invites func() string
	learn   func()

	mu      sync.Mutex
	decided []approval.Decision
}

func (d *desk) Event(approval.Thread, protocol.EventMsg) {}

func (d *desk) Ask(ctx context.Context, _ *approval.Request) (json.RawMessage, error) {
	words, err := d.answer(ctx)
	return json.RawMessage(words), err
}

func (d *desk) Decided(_ *approval.Request, made approval.Decision) {
	d.mu.Lock()
	d.decided = append(d.decided, made)
	d.mu.Unlock()
	if d.learn != nil {
		d.learn()
	}
}

// inviterDesk is a desk that is an Inviter.
type inviterDesk struct{ *desk }

func (d inviterDesk) Invite() string { return d.invites() }

// journal is a log and a record that tests read.
type journal struct {
	mu   sync.Mutex
	text strings.Builder
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(b)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

func (j *journal) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(j, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// request asks to run `git init`.
func request() *approval.Request {
	exec := protocol.ExecApprovalRequest{CallID: "c", Command: []string{"git", "init"}, Cwd: "/work"}
	return &approval.Request{
		Thread:   approval.Thread{ID: "t"},
		Event:    exec,
		Question: (&elicit.ExecQuestion{Command: exec.Command, Cwd: exec.Cwd}).Question(),
	}
}
