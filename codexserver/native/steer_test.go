package native_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

func steer(ctx context.Context, c engine.Conversation, words string) error {
	return c.(engine.Steerer).Steer(ctx, protocol.TextInput(words))
}

// steers returns a turn of the model that sends a message to the running turn before it
// answers.
func steers(t *testing.T, c *engine.Conversation, words string, then providertest.Turn) providertest.Turn {
	return providertest.Turn{Func: func(providertest.Request) providertest.Turn {
		if err := steer(context.Background(), *c, words); err != nil {
			t.Errorf("Steer: %v", err)
		}
		return then
	}}
}

// TestSteer sends messages while a question is open and with the last answer. They are where
// the model read them: in its requests, in the rollout and after a resume.
func TestSteer(t *testing.T) {
	onEachWire(t, func(t *testing.T, wire string) {
		var c engine.Conversation
		b := setup(t, "---\nwire_api = \""+wire+"\"", native.Limits{},
			providertest.Call(providertest.Shell("c1", "sh", "-c", "echo one")),
			steers(t, &c, "fourth wish", providertest.Say("first answer")),
			providertest.Say("second answer"))
		h := &host{exec: func(ctx context.Context, _ protocol.ExecApprovalRequest) elicit.Decision {
			for _, words := range []string{"second wish", "third wish"} {
				if err := steer(ctx, c, words); err != nil {
					t.Errorf("Steer: %v", err)
				}
			}
			return elicit.Approved
		}}
		c = b.start(t, h, protocol.Config{})
		path := configured(t, h).RolloutPath
		h.take()
		turn(t, c, say("first wish"))
		order := []string{"first wish", `"c1"`, `one\\n`, "second wish", "third wish", "first answer", "fourth wish"}
		all := b.provider.Requests()
		diff(t, "requests", 3, len(all))
		inOrder(t, string(all[1].Body), order[:5]...)
		inOrder(t, string(all[2].Body), order...)
		inOrder(t, read(t, path), append(order, "second answer")...)
		events := strings.Join(h.take(), "\n")
		inOrder(t, events, "exec_approval_request sh -c echo one", "exec_command_end 0", "user_message", "user_message",
			"agent_message first answer", "user_message", "agent_message second answer", "task_complete second answer")

		closed(t, c)
		b.reopen(t)
		b.provider.Add(providertest.Say("resumed"))
		h = &host{}
		r := b.resume(t, path, protocol.Config{}, h)
		inOrder(t, fmt.Sprintf("%s", configured(t, h).InitialMessages), "first wish", "second wish", "third wish", "first answer", "fourth wish", "second answer")
		turn(t, r, say("fifth wish"))
		inOrder(t, lastRequest(b), append(order, "second answer", "fifth wish")...)
	})
}

// TestSteerWhileSummarised sends a message while the history is summarised: it follows the
// summary word for word, and the next summary quotes it.
func TestSteerWhileSummarised(t *testing.T) {
	var c engine.Conversation
	b := setup(t, "model_auto_compact_token_limit = 1000\n", native.Limits{},
		providertest.Turn{Usage: filling, Text: []string{"full"}},
		steers(t, &c, "second wish", providertest.Say("THE NOTE")),
		providertest.Turn{Usage: filling, Text: []string{"full again"}},
		providertest.Say("SECOND NOTE"),
		providertest.Say("end"))
	h := &host{}
	c = b.start(t, h, protocol.Config{})
	says(t, c, "zeroth wish", "first wish", "third wish")
	all := b.provider.Requests()
	diff(t, "requests", 5, len(all))
	inOrder(t, string(all[2].Body), "zeroth wish", "THE NOTE", "first wish", "second wish")
	inOrder(t, string(all[4].Body), "zeroth wish", "first wish", "second wish", "SECOND NOTE", "third wish")
	path := configured(t, h).RolloutPath
	closed(t, c)
	b.provider.Add(providertest.Say("resumed"))
	says(t, b.resume(t, path, protocol.Config{}, &host{}), "fourth wish")
	inOrder(t, lastRequest(b), "first wish", "second wish", "SECOND NOTE", "third wish", "end", "fourth wish")
}

// TestSteerUnread checks that a message which the model did not read before the turn failed is
// kept for the next turn, also in the rollout, and that the client is informed.
func TestSteerUnread(t *testing.T) {
	for _, test := range []struct {
		name     string
		limits   native.Limits
		first    func(t *testing.T, c *engine.Conversation) providertest.Turn
		last     string
		informed bool
	}{
		{"failure", native.Limits{}, func(t *testing.T, c *engine.Conversation) providertest.Turn {
			return steers(t, c, "second wish", providertest.Turn{Status: 400, Body: `{"error":{"message":"no"}}`})
		}, "task_complete null", true},
		{"limit", native.Limits{ModelRequests: 1}, func(t *testing.T, c *engine.Conversation) providertest.Turn {
			return steers(t, c, "second wish", providertest.Say("one"))
		}, "task_complete null", false}, // the model learns that the turn was stopped
	} {
		t.Run(test.name, func(t *testing.T) {
			var c engine.Conversation
			b := setup(t, "", test.limits, test.first(t, &c))
			h := &host{}
			c = b.start(t, h, protocol.Config{})
			path := configured(t, h).RolloutPath
			if err := c.Turn(t.Context(), say("first wish")); err == nil {
				t.Error("the turn did not fail")
			}
			diff(t, "requests", 1, len(b.provider.Requests()))
			events := h.take()
			informed := strings.Contains(strings.Join(events, "\n"), "background_event")
			if last := events[len(events)-1]; last != test.last || informed != test.informed {
				t.Errorf("informed: %v, the events: %q", informed, events)
			}
			inOrder(t, read(t, path), "first wish", "second wish")
			b.provider.Add(providertest.Say("well"))
			turn(t, c, say("third wish"))
			inOrder(t, lastRequest(b), "first wish", "second wish", "third wish")
		})
	}
}

// TestSteerRefused checks that the sender of a bad message gets an error, and that the
// turn continues without it.
func TestSteerRefused(t *testing.T) {
	var c engine.Conversation
	refused := make(chan error, 1)
	b := setup(t, "", native.Limits{}, providertest.Turn{Func: func(providertest.Request) providertest.Turn {
		refused <- c.(engine.Steerer).Steer(context.Background(), []protocol.InputItem{
			{Type: protocol.InputText, Text: "look"}, {Type: protocol.InputLocalImage, Path: "none.png"},
		})
		return providertest.Say("well")
	}})
	c = b.start(t, &host{}, protocol.Config{})
	turn(t, c, say("go"))
	err := <-refused
	if !as[*engine.RefusedError](err) || !strings.Contains(err.Error(), "items[1]") || !strings.Contains(err.Error(), filepath.Join(b.cwd, "none.png")) {
		t.Errorf("error %v", err)
	}
	// A turn that fails before its first request accepts no message.
	h := &host{on: func(m protocol.EventMsg) {
		if _, ok := m.(protocol.TaskStarted); ok {
			go func() { refused <- steer(context.Background(), c, "more") }()
		}
	}}
	c = b.start(t, h, protocol.Config{})
	if err := c.Turn(t.Context(), protocol.TurnInput{Items: []protocol.InputItem{{Type: "scent"}}}); !as[*engine.TurnError](err) {
		t.Errorf("turn: %v", err)
	}
	if err := <-refused; !errors.Is(err, engine.ErrNoTurn) {
		t.Errorf("error %v", err)
	}
}
