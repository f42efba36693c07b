package appserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

func steer(ctx context.Context, c engine.Conversation, words string) error {
	return c.(engine.Steerer).Steer(ctx, protocol.TextInput(words))
}

// TestSteerRefused checks that the sender of a message gets the app-server's error, and that
// the turn continues.
func TestSteerRefused(t *testing.T) {
	for _, test := range []struct {
		name   string
		answer handler
		items  []protocol.InputItem
		want   string // "" for engine.ErrNoTurn
	}{
		{"ended over there", refusal("no active turn to steer"), protocol.TextInput("x"), ""},
		{"another turn over there", refusal("expected active turn id `turn-1` but found `turn-2`"), protocol.TextInput("x"), ""},
		{"not of this turn", refusal("cannot steer a review turn"), protocol.TextInput("x"), "cannot steer a review turn"},
		{"empty", nil, nil, "the message is empty"},
		{"of no type", nil, []protocol.InputItem{{Type: "scent"}}, `input item 0 has the unknown type "scent"`},
	} {
		inBubble(t, test.name, func(t *testing.T, f *fake) {
			f.version = "0.154.0"
			f.on["turn/steer"] = test.answer
			sent := make(chan struct{})
			f.turn = func(r *run) { <-sent; answered(r) }
			h := &recorder{}
			conv := start(t, f.engine(appserver.Options{}), h)
			done := begin(t.Context(), conv, text("go"))
			synctest.Wait()
			err := conv.(engine.Steerer).Steer(t.Context(), test.items)
			close(sent)
			var refused *engine.RefusedError
			if test.want == "" && !errors.Is(err, engine.ErrNoTurn) || test.want != "" && (!errors.As(err, &refused) || err.Error() != test.want) {
				t.Errorf("error %v", err)
			}
			if err := <-done; err != nil || h.count("background_event")+h.count("user_message") != 0 {
				t.Errorf("turn: %v, events %v", err, h.types())
			}
		})
	}
}

// TestUnreadSteerIsSentAgain checks that a message that the app-server took and dropped is
// sent again in the next turn, before its input, and in no later one.
func TestUnreadSteerIsSentAgain(t *testing.T) {
	for _, end := range []string{"interrupted", "failed", "death"} {
		inBubble(t, end, func(t *testing.T, f *fake) {
			var inputs []string
			f.on["turn/start"] = func(_ *run, req *jsonrpc.Request) (any, error) {
				var p struct {
					Input []struct{ Text string }
				}
				err := json.Unmarshal(req.Params, &p)
				inputs = append(inputs, fmt.Sprint(p.Input))
				return nil, err
			}
			sent := make(chan struct{})
			f.turn = func(r *run) {
				r.read("go")
				<-sent
				switch end {
				case "death":
					r.cancel()
				case "failed":
					r.complete("failed")
				}
			}
			h := &recorder{}
			conv := start(t, f.engine(appserver.Options{}), h)
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			done := begin(ctx, conv, text("go"))
			synctest.Wait()
			for _, words := range []string{"one", "two", "three"} {
				if err := steer(t.Context(), conv, words); err != nil {
					t.Errorf("Steer: %v", err)
				}
			}
			f.runs[0].read("two") // the model has this one
			synctest.Wait()
			close(sent)
			if end == "interrupted" {
				interrupt()
			}
			if err := <-done; err == nil {
				t.Error("the turn did not fail")
			}
			if n, m := h.count("user_message"), h.count("background_event"); n != 3 || m != 1 {
				t.Errorf("%d messages emitted, %d remarks: %v", n, m, h.types())
			}
			f.mu.Lock()
			f.turn = func(r *run) { r.read("onethreeon"); answered(r) }
			f.mu.Unlock()
			for _, words := range []string{"on", "and on"} {
				if err := conv.Turn(t.Context(), text(words)); err != nil {
					t.Error(err)
				}
			}
			if want := []string{"[{go}]", "[{one} {three} {on}]", "[{and on}]"}; !slices.Equal(inputs, want) {
				t.Errorf("inputs %q, want %q", inputs, want)
			}
		})
	}
}

// TestSteerWaitsForTheTurn checks that a message waits until the app-server has begun the
// turn, or until its sender gives up.
func TestSteerWaitsForTheTurn(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		begins := make(chan struct{})
		f.on["turn/start"] = func(*run, *jsonrpc.Request) (any, error) { <-begins; return nil, nil }
		h := &recorder{}
		conv := start(t, f.engine(appserver.Options{}), h)
		if err := steer(t.Context(), conv, "early"); !errors.Is(err, engine.ErrNoTurn) {
			t.Errorf("before the first turn: %v", err)
		}
		done := begin(t.Context(), conv, text("same words"))
		h.wait(t, "task_started")
		hasty, stop := context.WithCancel(t.Context())
		stop()
		if err := steer(hasty, conv, "hasty"); !errors.Is(err, context.Canceled) {
			t.Errorf("a sender in haste: %v", err)
		}
		taken := make(chan error, 1)
		go func() { taken <- steer(t.Context(), conv, "same words") }()
		synctest.Wait()
		if slices.Contains(f.methods(), "turn/steer") {
			t.Error("the message was sent before the turn began")
		}
		r := f.runs[0]
		close(begins)
		if err := <-taken; err != nil {
			t.Errorf("a patient sender: %v", err)
		}
		r.read("same words")
		synctest.Wait()
		if h.count("user_message") != 0 {
			t.Error("the turn's own input was taken for the message")
		}
		r.read("same words")
		answered(r)
		if err := <-done; err != nil || h.count("user_message") != 1 || h.count("background_event") != 0 {
			t.Errorf("turn: %v, events %v", err, h.types())
		}
		if err := steer(t.Context(), conv, "late"); !errors.Is(err, engine.ErrNoTurn) {
			t.Errorf("after the turn: %v", err)
		}
	})
}

// TestSteerAnsweredLate ends a turn before the app-server has taken a message. The message
// is not kept, and its sender gets an error.
func TestSteerAnsweredLate(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		ended := make(chan struct{})
		f.on["turn/steer"] = func(r *run, _ *jsonrpc.Request) (any, error) {
			r.complete("interrupted")
			<-ended
			return json.RawMessage(`{"turnId":"turn-1"}`), nil
		}
		h := &recorder{}
		conv := start(t, f.engine(appserver.Options{}), h)
		done := begin(t.Context(), conv, text("go"))
		synctest.Wait()
		taken := make(chan error, 1)
		go func() { taken <- steer(t.Context(), conv, "late") }()
		if err := <-done; err == nil {
			t.Error("the turn did not end as interrupted")
		}
		close(ended)
		if err := <-taken; !errors.Is(err, engine.ErrNoTurn) {
			t.Errorf("error %v", err)
		}
		var input string
		f.mu.Lock()
		f.turn = answered
		f.on["turn/start"] = func(_ *run, req *jsonrpc.Request) (any, error) { input = string(req.Params); return nil, nil }
		f.mu.Unlock()
		if err := conv.Turn(t.Context(), text("on")); err != nil || strings.Contains(input, "late") || h.count("user_message") != 0 {
			t.Errorf("turn: %v, input %s, events %v", err, input, h.types())
		}
	})
}
