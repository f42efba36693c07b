package servertest

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// Desk is a desk that answers as configured and records what it sees.
type Desk struct {
	// Answer answers questions. Nil is [Never].
	Answer Answer
	// Invitation is what Invite returns.
	Invitation string
	// Called is what Name returns; "" is "desk".
	Called approval.Decider
	// OnDecided, unless nil, is called with each decision.
	OnDecided func()

	seen    record[string]
	threads record[approval.Thread]
	decided record[approval.Decision]
}

func (d *Desk) Name() approval.Decider { return cmp.Or(d.Called, "desk") }

func (d *Desk) Event(t approval.Thread, m protocol.EventMsg) {
	words := m.EventType()
	if u, ok := m.(protocol.UserMessage); ok {
		words += " " + u.Message
	}
	d.seen.add(words)
	d.threads.add(t)
}

func (d *Desk) Ask(ctx context.Context, _ *approval.Request) (json.RawMessage, error) {
	answer := d.Answer
	if answer == nil {
		answer = Never
	}
	words, err := answer(ctx)
	return json.RawMessage(words), err
}

func (d *Desk) Decided(_ *approval.Request, made approval.Decision) {
	d.decided.add(made)
	if d.OnDecided != nil {
		d.OnDecided()
	}
}

func (d *Desk) Invite() string { return d.Invitation }

// Seen returns the types of the events, and the texts of the user's messages.
func (d *Desk) Seen() []string { return d.seen.list() }

// Threads returns the thread of each event.
func (d *Desk) Threads() []approval.Thread { return d.threads.list() }

// Decisions returns the decisions as "approved by desk".
func (d *Desk) Decisions() []string {
	var words []string
	for _, made := range d.decided.list() {
		words = append(words, string(made.Decision)+" by "+string(made.By))
	}
	return words
}

// Journal is a log or a record that a test reads. It is safe for concurrent use.
type Journal struct{ text record[byte] }

func (j *Journal) Write(b []byte) (int, error) {
	j.text.add(b...)
	return len(b), nil
}

func (j *Journal) String() string { return string(j.text.list()) }

// Logger returns a logger of every level that writes to the journal.
func (j *Journal) Logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(j, &slog.HandlerOptions{Level: slog.LevelDebug}))
}
