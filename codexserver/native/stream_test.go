package native_test

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

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
		diff(t, "events", want, strings.Join(h.take(), ", "))
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
				diff(t, "an item and an event of the rollout", 2, strings.Count(read(t, configured(t, h).RolloutPath), "half an answer"))
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
		listener, err := net.Listen("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: b.provider}}
		server.Start()
		c := b.start(t, h, protocol.Config{Overrides: map[string]json.RawMessage{
			"model_providers.test.request_max_retries": json.RawMessage("2"),
			"model_providers.test.base_url":            json.RawMessage(strconv.Quote(server.URL + "/v1")),
		}})
		if answers {
			if err := c.Turn(t.Context(), say("go")); err != nil {
				t.Fatal(err)
			}
		}
		server.Close()
		began := time.Now()
		_ = c.Turn(t.Context(), say("go on")) // it says why
		waited := time.Since(began) > time.Second
		want := []string{"asking again for half a minute: ", absent}
		if !answers {
			want = want[1:]
		}
		if len(said) != len(want) || !strings.HasPrefix(said[0], want[0]) || !strings.HasPrefix(said[len(said)-1], absent) || waited != answers {
			t.Errorf("answers %t: it said %q after %v", answers, said, time.Since(began))
		}
	}
}
