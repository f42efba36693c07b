package native_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

func steer(ctx context.Context, c engine.Conversation, words string) error {
	return c.(engine.Steerer).Steer(ctx, protocol.TextInput(words))
}

// steers returns a turn of the model that sends a message to the running turn before it answers.
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
		h := &host{exec: func(ctx context.Context, _ approval.Command) elicit.Decision {
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
		must.Equal(t, "requests", 3, len(all))
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
	must.Equal(t, "requests", 5, len(all))
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
			must.Equal(t, "requests", 1, len(b.provider.Requests()))
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

// TestSteerRefused checks that the sender of a bad message gets an error, and that the turn continues without it.
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

// TestTextArrives holds a response back after its first words, until the client has seen them.
// A response that comes at once has no pieces on the Chat wire, as in Codex.
func TestTextArrives(t *testing.T) {
	t.Parallel()
	onEachWire(t, func(t *testing.T, wire string) {
		seen := make(chan struct{})
		b := setup(t, "---\nwire_api = \""+wire+"\"", native.Limits{},
			providertest.Turn{Text: []string{"first ", "words"}, Stall: seen}, providertest.Turn{Text: []string{"at ", "once"}})
		text := ""
		h := &host{on: func(m protocol.EventMsg) {
			if m, ok := m.(protocol.AgentMessageDelta); ok {
				if text += m.Delta; text == "first words" {
					close(seen)
				}
			}
		}}
		c := b.start(t, h, protocol.Config{})
		turn(t, c, say("go"))
		h.take()
		turn(t, c, say("go"))
		want := "task_started, agent_message at once, token_count, task_complete at once"
		if wire == "responses" {
			want = "task_started, token_count, agent_message_delta at , agent_message_delta once, agent_message at once, token_count, task_complete at once"
		}
		must.Equal(t, "events", want, strings.Join(h.take(), ", "))
	})
}

// TestBrokenOffText interrupts a response, or breaks its stream off: the client has seen the
// text so far, and the next request and the rollout have it.
func TestBrokenOffText(t *testing.T) {
	t.Parallel()
	for _, wire := range []string{"chat", "responses"} {
		for _, end := range []string{"interrupt", "break"} {
			t.Run(wire+" "+end, func(t *testing.T) {
				broken := providertest.Turn{Text: []string{"half an ", "answer"}, Truncate: end == "break"}
				if end == "interrupt" {
					broken.Stall = make(chan struct{})
				}
				b := setup(t, "---\nwire_api = \""+wire+"\"", native.Limits{}, broken, providertest.Say("next"))
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				text := ""
				h := &host{on: func(m protocol.EventMsg) {
					if m, ok := m.(protocol.AgentMessageDelta); ok {
						if text += m.Delta; text == "half an answer" && end == "interrupt" {
							cancel()
						}
					}
				}}
				c := b.start(t, h, protocol.Config{})
				err := c.Turn(ctx, say("go"))
				if !as[*engine.AbortError](err) && !as[*engine.TurnError](err) || text != "half an answer" {
					t.Errorf("the turn ended with %v after %q", err, text)
				}
				turn(t, c, say("go on"))
				inOrder(t, lastRequest(b), "half an answer")
				must.Equal(t, "an item and an event of the rollout", 2, strings.Count(read(t, configured(t, h).RolloutPath), "half an answer"))
				validRequests(t, b.provider)
			})
		}
	}
}

// TestLostConnection stops a provider that has answered: the turn waits, says so once, and fails with
// the cause and what to do. One that has not answered is not waited for.
func TestLostConnection(t *testing.T) {
	t.Parallel()
	const absent = "no model server listens at "
	for _, answers := range []bool{true, false} {
		b := setup(t, "", native.Limits{}, providertest.Say("hello"))
		var said []string
		h := &host{on: func(m protocol.EventMsg) {
			switch m := m.(type) {
			case protocol.StreamError:
				said = append(said, m.Message)
			case protocol.Error:
				said = append(said, m.Message)
			}
		}}
		at := "127.0.0.1:0"
		if runtime.GOOS == "linux" {
			at = "127.8.9.1:0" // where no test that runs beside this one listens on the port afterwards
		}
		listener := must.Get(net.Listen("tcp", at))(t)
		server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: b.provider}}
		server.Start()
		c := b.start(t, h, protocol.Config{Overrides: protocol.Overrides{
			"model_providers.test.request_max_retries": 2,
			"model_providers.test.base_url":            server.URL + "/v1",
		}})
		if answers {
			must.OK(t, c.Turn(t.Context(), say("go")))
		}
		server.Close()
		began := time.Now()
		_ = c.Turn(t.Context(), say("go on")) // it says why
		hurried := answers && time.Since(began) < time.Second
		want := []string{"asking again for half a minute: ", absent}
		if !answers {
			want = want[1:]
		}
		if len(said) != len(want) || !strings.HasPrefix(said[0], want[0]) || !strings.HasPrefix(said[len(said)-1], absent) || hurried {
			t.Errorf("answers %t: it said %q after %v", answers, said, time.Since(began))
		}
	}
}
