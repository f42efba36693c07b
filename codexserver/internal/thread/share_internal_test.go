package thread

import (
	"context"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/admit"
	"github.com/codexmcp/codexmcp/codexserver/internal/approve"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// singleEngine is an engine with one conversation. It records the host of the last attempt to open it.
type singleEngine struct{ host engine.Host }

func (o *singleEngine) Start(_ context.Context, _ protocol.Config, h engine.Host) (engine.Conversation, error) {
	o.host = h
	return o, nil
}

func (o *singleEngine) Resume(_ context.Context, _ engine.Saved, _ protocol.Config, h engine.Host) (engine.Conversation, error) {
	o.host = h
	h.Emit(protocol.AgentMessage{Message: "said before"})
	return o, nil
}

func (o *singleEngine) Find(context.Context, string) (engine.Saved, error) {
	return engine.Saved{ID: "1"}, nil
}
func (o *singleEngine) ID() string                                     { return "1" }
func (o *singleEngine) Turn(context.Context, protocol.TurnInput) error { return nil }
func (o *singleEngine) Close() error                                   { return nil }

// TestForeignLog closes the log of a thread that another principal holds open.
func TestForeignLog(t *testing.T) {
	e := &singleEngine{}
	table := NewTable(e, &approve.Options{})
	if _, err := table.Share("alice").Start(t.Context(), admit.Trusted(), protocol.Config{}, Attend{}); err != nil {
		t.Fatal(err)
	}
	if _, err := table.Share("bob").Revive(t.Context(), admit.Trusted(), "another name of it", protocol.Config{}, Attend{}); err == nil {
		t.Fatal("a foreign thread was resumed")
	}
	if page, err := e.host.(*Thread).kept.Transcript(0, 100); err == nil && page.Text != "" {
		t.Errorf("the log still holds %q", page.Text)
	}
}

// TestOpenOnly: only who started the server sees threads that nobody has open, since their rollouts
// do not say whose they are.
func TestOpenOnly(t *testing.T) {
	table := NewTable(&singleEngine{}, &approve.Options{})
	if table.Share("").OpenOnly() || !table.Share("alice").OpenOnly() {
		t.Error("a principal is shown rollouts, or who started the server is not")
	}
}
