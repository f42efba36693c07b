package mcp

import (
	"context"
	"log/slog"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/board"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/elicit"
)

// TestAudience checks who is asked. A client that may not approve is never asked, and only a client
// of the approver gets the questions of others.
func TestAudience(t *testing.T) {
	relay := board.NewRelay(&board.Options{})
	for _, tt := range []struct {
		name      string
		relay     *board.Relay
		principal string
		able      bool // the client can be asked
		unasked   bool
		asked     string // about the turn that the call waits for, and about others
		caller    bool
		relayed   bool // it is asked the questions of others
	}{
		{"no approver", nil, "", true, false, "turn background", true, false},
		{"no approver, no forms", nil, "", false, false, "turn background", false, false},
		{"no approver, may not approve", nil, "", false, true, "turn background", false, false},
		{"another user", relay, "ann", true, false, "turn background", true, false},
		{"another user, may not approve", relay, "ann", false, true, "relay relay", false, false},
		{"the approver", relay, "bob", true, false, "turn background", true, true},
		{"the approver, no forms", relay, "bob", false, false, "turn background", false, false},
		{"the approver, may not approve", relay, "bob", false, true, "relay relay", false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &Server{Relay: tt.relay, Logger: slog.New(slog.DiscardHandler)}
			if tt.relay != nil {
				s.Approver = "bob"
			}
			c := s.NewClient(t.Context(), thread.NewTable(nil, &board.Options{}).Share(tt.principal), nil)
			says := func(name string) board.Ask {
				return func(context.Context, *approval.Request) (elicit.Outcome, error) {
					return elicit.Outcome{Detail: name}, nil
				}
			}
			w := way{turn: nobody(says("turn")), background: nobody(says("background")), unasked: tt.unasked}
			if tt.able {
				w.caller = nobody(says("caller"))
			}
			a := c.audience(t.Context(), w, nil)
			name := func(p board.Place) string {
				if p == board.Place(relay) {
					return "relay"
				}
				out, _ := p.Ask(t.Context(), nil)
				return out.Detail
			}
			if got := name(a.Turn.Place) + " " + name(a.Background.Place); got != tt.asked {
				t.Errorf("asked: %s, want %s", got, tt.asked)
			}
			if got := a.Caller != nil; got != tt.caller {
				t.Errorf("a caller: %v, want %v", got, tt.caller)
			}
			if got := a.Relay != nil; got != tt.relayed {
				t.Errorf("the relay: %v, want %v", got, tt.relayed)
			}
		})
	}
}
