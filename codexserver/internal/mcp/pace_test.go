package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
)

// flood is an engine whose turns emit and count deltas of a size until they are interrupted.
type flood struct {
	engine.TurnFunc
	most           int
	emitted, ended atomic.Int64
}

const (
	piece  = 8 << 10
	unread = 4 << 20 // the most that may wait for a client
	inPipe = 1 << 20 // what the pipe takes in by itself
)

var unreads = &codexserver.Options{MaxUnread: unread}

func newFlood(most int) *flood {
	f := &flood{most: most}
	text := strings.Repeat("x", piece)
	f.TurnFunc = func(ctx context.Context, host engine.Host, _ []protocol.InputItem) error {
		defer f.ended.Add(1)
		for range f.most {
			if ctx.Err() != nil {
				return &engine.AbortError{Reason: protocol.AbortInterrupted, Cause: context.Cause(ctx)}
			}
			host.Emit(protocol.AgentMessageDelta{Delta: text})
			f.emitted.Add(1)
		}
		host.Emit(protocol.AgentMessage{Message: "whole"})
		return nil
	}
	return f
}

// relay is a flood that streams, so it does not wait for clients.
type relay struct{ *flood }

func (relay) Traits() engine.Traits { return engine.Traits{Streams: true} }

// listened begins a conversation on a session of its own that listens to it.
func listened(t *testing.T, end jsonrpc.Transport) (id string) {
	t.Helper()
	writeAll(t, end, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	servertest.Read(t, end, `"serverInfo"`)
	writeAll(t, end, `{"jsonrpc":"2.0","id":1,"method":"newConversation","params":{}}`)
	_, id, _ = strings.Cut(servertest.Read(t, end, `"conversationId"`), `"conversationId":"`)
	id, _, _ = strings.Cut(id, `"`)
	writeAll(t, end, fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"addConversationListener","params":{"conversationId":%q}}`, id))
	servertest.Read(t, end, `"subscriptionId"`)
	return id
}

const sends = `{"jsonrpc":"2.0","id":3,"method":"sendUserMessage","params":{"conversationId":%q,"items":[]}}`

// unreadTurn begins a turn in a conversation that a client listens to, and does not read. It returns how the session ends.
func unreadTurn(t *testing.T, e engine.Engine, o *codexserver.Options) (leave func(), served chan error) {
	t.Helper()
	ours, theirs := jsonrpc.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	served = make(chan error, 1)
	go func() { served <- codexserver.New(e, o).Serve(ctx, theirs) }()
	writeAll(t, ours, fmt.Sprintf(sends, listened(t, ours)))
	return cancel, served
}

// events reads until a message with the text. It returns the number of deltas, and the texts of background events.
func events(t *testing.T, end jsonrpc.Transport, last string) (deltas int, words []string) {
	t.Helper()
	for {
		b := must.Get(end.Read(t.Context()))(t)
		line := string(b)
		switch {
		case strings.Contains(line, `"type":"agent_message_delta"`):
			deltas++
		case strings.Contains(line, `"type":"background_event"`):
			_, m, _ := strings.Cut(line, `"message":"`)
			m, _, _ = strings.Cut(m, `"`)
			words = append(words, m)
		}
		if strings.Contains(line, last) {
			return deltas, words
		}
	}
}

// TestTurnWaitsForSlowClient floods clients that do not read.
func TestTurnWaitsForSlowClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlood(1 << 14) // 128 MiB
		end := servertest.Lines(t, codexserver.New(f, unreads))
		id := listened(t, end)
		writeAll(t, end, fmt.Sprintf(sends, id))
		const calls = 20 // more turns do not get further ahead
		for i := range calls {
			writeAll(t, end, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"codex","arguments":{"prompt":"go"}}}`, 100+i))
		}
		synctest.Wait()
		if ahead := f.emitted.Load() * piece; ahead < unread/8 || ahead > unread/8+inPipe+unread/8 {
			t.Errorf("the turns are %d bytes ahead", ahead)
		}
		before := f.ended.Load()
		writeAll(t, end, fmt.Sprintf(`{"jsonrpc":"2.0","id":4,"method":"interruptConversation","params":{"conversationId":%q}}`, id))
		for i := range calls {
			writeAll(t, end, fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, 100+i))
		}
		synctest.Wait()
		if got := f.ended.Load(); before != 0 || got != calls+1 {
			t.Errorf("%d turns ended before, %d after the interrupts", before, got)
		}
		// Reading on, the client gets everything that was emitted.
		writeAll(t, end, `{"jsonrpc":"2.0","id":5,"method":"ping"}`)
		came, words := events(t, end, `"id":5,`)
		if len(words) != 0 || int64(came) != f.emitted.Load() {
			t.Errorf("%d deltas came of %d: %q", came, f.emitted.Load(), words)
		}
	})
}

// TestSessionEndsWithoutReader closes the client's end while a turn waits for the client.
// The cleanup waits for the end of the session.
func TestSessionEndsWithoutReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlood(1 << 14)
		leave, served := unreadTurn(t, f, unreads)
		synctest.Wait()
		leave()
		if err := <-served; err != nil || f.ended.Load() != 1 {
			t.Errorf("%v, %d turns ended", err, f.ended.Load())
		}
	})
}

// TestDeltasAreDropped floods a client that does not read, with an engine that does not wait, and then reads.
func TestDeltasAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 3000
		f := newFlood(most)
		end := servertest.Lines(t, codexserver.New(relay{f}, unreads))
		listened(t, end)
		writeAll(t, end, `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"codex","arguments":{"prompt":"go"}}}`)
		synctest.Wait()
		if got := f.emitted.Load(); got != most {
			t.Errorf("%d deltas were emitted", got)
		}
		came, words := events(t, end, `"task_complete"`)
		if queued := came * piece; queued < unread*9/10 || queued > unread+inPipe+unread/8 {
			t.Errorf("%d bytes had queued up", queued)
		}
		missed := 0 // one gap, or more when the pipe took a piece meanwhile
		for _, w := range words {
			var n int
			if _, err := fmt.Sscanf(w, "%d deltas were left out: the client did not read.", &n); err != nil {
				t.Errorf("%q: %v", w, err)
			}
			missed += n
		}
		if missed != most-came {
			t.Errorf("got %q, want %d deltas", words, most-came)
		}
		servertest.Read(t, end, `"text":"whole"`)
	})
}

// TestDeskAnswersWithoutReader asks at the desk while the client of the turn does not read. The desk's answer counts.
func TestDeskAnswersWithoutReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		decided := make(chan string, 1)
		full := newFlood(1 << 14)
		e := engine.TurnFunc(func(ctx context.Context, host engine.Host, in []protocol.InputItem) error {
			go full.TurnFunc(ctx, host, in)
			synctest.Wait() // it waits for the client
			out := host.Ask(ctx, approval.Command{CallID: "c", Command: []string{"make"}, Cwd: "/"})
			decided <- string(out.Decision)
			<-ctx.Done()
			return &engine.AbortError{Reason: protocol.AbortInterrupted, Cause: context.Cause(ctx)}
		})
		d := &servertest.Desk{Answer: servertest.Say(`{"action":"accept","content":{"decision":"approved"}}`)}
		leave, served := unreadTurn(t, e, &codexserver.Options{Desk: d, MaxUnread: unread})
		must.Equal(t, "decided", "approved", <-decided)
		leave()
		must.OK(t, <-served)
	})
}

// TestOtherEventsAreNotDropped floods a client that does not read with events other than
// deltas, from an engine that does not wait. The session ends.
func TestOtherEventsAreNotDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		text := strings.Repeat("x", 1<<16)
		f := &flood{TurnFunc: func(ctx context.Context, host engine.Host, _ []protocol.InputItem) error {
			for range 200 {
				host.Emit(protocol.AgentMessage{Message: text})
			}
			<-ctx.Done()
			return &engine.AbortError{Reason: protocol.AbortInterrupted, Cause: context.Cause(ctx)}
		}}
		leave, served := unreadTurn(t, relay{f}, unreads)
		defer leave()
		must.OK(t, <-served)
	})
}

// oneListed is an engine that lists one conversation, however many it has.
type oneListed struct{ *servertest.Engine }

func (oneListed) List(context.Context, protocol.ListConversationsParams) (*protocol.ListConversationsResult, error) {
	return &protocol.ListConversationsResult{Items: []protocol.ConversationSummary{{ConversationID: "past", Preview: "before"}}}, nil
}

// TestStalledCalls lets as many calls hang as the server takes. Short requests are still answered.
func TestStalledCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := servertest.Connect(t, codexserver.New(oneListed{&servertest.Engine{}}, &codexserver.Options{Changes: codexserver.ChangeOptions{Read: new(false)}}), nil)
		id := c.NewConversation(t)
		c.Ask(t, "sendUserMessage", fmt.Sprintf(`{"conversationId":%q,"items":[{"type":"text","data":{"text":"wait:9h"}}]}`, id))
		running := servertest.ThreadOf(t, c.CallTool(t, "codex", `{"prompt":"wait:9h","background":true}`))
		call := fmt.Sprintf(`{"name":"codex-wait","arguments":{"threadIds":[%q]}}`, running)
		const most = 4096
		var calls []*jsonrpc.Call
		for range most {
			calls = append(calls, c.Start(t.Context(), "tools/call", json.RawMessage(call)))
		}
		synctest.Wait()
		const refused = "4096 requests are under way"
		for _, tt := range []struct{ method, params, want string }{
			{"ping", `{}`, `{}`}, {"tools/list", `{}`, `"codex-reply"`}, {"getAuthStatus", `{}`, `apikey`},
			{"tools/call", `{"name":"codex-list","arguments":{"cwd":"*"}}`, `past`},
			{"interruptConversation", fmt.Sprintf(`{"conversationId":%q}`, id), `interrupted`},
			{"tools/call", fmt.Sprintf(`{"name":"codex-interrupt","arguments":{"threadId":%q}}`, id), `Nothing was running.`},
			{"tools/call", call, refused},
			{"tools/call", `{"name":"codex","arguments":{"prompt":"p"}}`, refused},
			{"newConversation", `{}`, refused},
			{"logoutChatGpt", `{}`, refused},
		} {
			has(t, fmt.Sprintf("%s %s", tt.method, tt.params), c.Ask(t, tt.method, tt.params), tt.want)
			synctest.Wait() // what was interrupted ends after the answer
		}
		must.OK(t, c.Notify(t.Context(), "notifications/cancelled", json.RawMessage(fmt.Sprintf(`{"requestId":%v}`, calls[0].ID()))))
		synctest.Wait()
		must.Equal(t, "with a free place", `{}`, c.Ask(t, "logoutChatGpt", `{}`))
	})
}

// loud is the answer of a client that cannot show a question, and says so.
func loud(context.Context) (string, error) { return "", &jsonrpc.Error{Code: -32000, Message: "no"} }

// progressOf returns the distinct messages of the progress in order.
func progressOf(t *testing.T, c *servertest.Client) (messages []string) {
	t.Helper()
	for _, raw := range c.Received("notifications/progress") {
		var p struct{ Message string }
		must.OK(t, json.Unmarshal(raw, &p))
		if len(messages) == 0 || messages[len(messages)-1] != p.Message {
			messages = append(messages, p.Message)
		}
	}
	return messages
}

// TestProgressOfAQuestion checks that progress says what is asked if somebody is, and only then; and that a
// call that becomes a task sends none at once with its answer, where clients drop it.
func TestProgressOfAQuestion(t *testing.T) {
	const waiting = "waiting for approval of `touch`"
	slow := servertest.After(2*time.Second, servertest.Decline)
	denies := approval.Rules{Deny: [][]string{{"touch"}}}
	desk := &servertest.Desk{Answer: slow}
	for _, tt := range []struct {
		name    string
		era     servertest.Era
		answer  servertest.Answer
		options codexserver.Options
		want    bool
		silent  bool // no progress at all
	}{
		{name: "asked", era: servertest.Handshake, answer: slow, want: true},
		{name: "cannot be asked", era: servertest.Handshake},
		{name: "cannot be asked, but a desk", era: servertest.Handshake, options: codexserver.Options{Desk: desk}, want: true},
		{name: "ruled", era: servertest.Handshake, answer: loud, options: codexserver.Options{Rules: denies}},
		{name: "2026-07-28, asked", era: servertest.Rounds, answer: slow, want: true},
		{name: "2026-07-28, cannot be asked", era: servertest.Rounds},
		{name: "2026-07-28, ruled", era: servertest.Rounds, answer: loud, options: codexserver.Options{Rules: denies}},
		{name: "a task", era: servertest.Polls, answer: loud, silent: true},
	} {
		bubble(t, tt.name, func(t *testing.T) {
			o := tt.options
			o.Home, o.Changes.Read = testenv.Home(t), new(false)
			c := servertest.Join(t, codexserver.New(&servertest.Engine{}, &o), servertest.Host{Era: tt.era, Answer: tt.answer, Meta: `"progressToken":"t"`})
			result := must.Get(c.Send(t.Context(), "tools/call", `"name":"codex","arguments":{"prompt":"touch say:done"}`))(t)
			synctest.Wait()
			messages := progressOf(t, c)
			if got := slices.ContainsFunc(messages, func(m string) bool { return strings.HasPrefix(m, waiting) }); got != tt.want || tt.silent && len(messages) > 0 {
				t.Errorf("progress %q before %s", messages, result)
			}
			if tt.silent && !strings.Contains(string(result), `"resultType":"task"`) {
				t.Errorf("no task: %s", result)
			}
		})
	}
}

// TestLogLevels sets each level in both eras. A warning is sent to clients that want warnings
// or more, but not to those that want only what is worse.
func TestLogLevels(t *testing.T) {
	for level, want := range map[mcptypes.LoggingLevel]bool{
		"debug": true, "info": true, "notice": true, "warning": true,
		"error": false, "critical": false, "alert": false, "emergency": false,
	} {
		for _, era := range []servertest.Era{servertest.Handshake, servertest.Rounds} {
			bubble(t, string(era)+"/"+string(level), func(t *testing.T) { // who cannot be asked is warned
				h := servertest.Host{Era: era}
				if era == servertest.Rounds {
					h.Meta = fmt.Sprintf(`"io.modelcontextprotocol/logLevel":%q`, level)
				}
				c := servertest.Join(t, codexserver.New(engine.TurnFunc(servertest.AskExec), nil), h)
				if era == servertest.Handshake {
					c.Ask(t, "logging/setLevel", fmt.Sprintf(`{"level":%q}`, level))
				}
				c.Use(t.Context(), "codex", `{"prompt":"p"}`)
				synctest.Wait()
				must.Equal(t, "warned", want, len(c.Received("notifications/message")) > 0)
			})
		}
	}
}

// TestProgressOfACommand has a silent command, and one that prints: progress comes at once and every 15 seconds, and says what a
// command has printed.
func TestProgressOfACommand(t *testing.T) {
	for _, tt := range []struct {
		name string
		run  func(h engine.Host)
		want []string // the messages, with the second in which each comes
	}{
		{"silent", func(engine.Host) { time.Sleep(40 * time.Second) }, []string{
			"0 thinking", "0 running go test", "15 running go test · 15s · no output seen", "30 running go test · 30s · no output seen",
		}},
		{"chatty", func(h engine.Host) {
			time.Sleep(time.Second / 2)
			for i := range 20 {
				h.Emit(protocol.ExecCommandOutputDelta{CallID: "c", Chunk: fmt.Appendf(nil, "line %d\r\n", i)})
				time.Sleep(time.Second)
			}
		}, []string{"0 thinking", "0 running go test", `15 running go test · 15s · 15 lines · "line 14"`}},
	} {
		bubble(t, tt.name, func(t *testing.T) {
			e := engine.TurnFunc(func(_ context.Context, h engine.Host, _ []protocol.InputItem) error {
				h.Emit(protocol.ExecCommandBegin{CallID: "c", Command: []string{"bash", "-lc", "go test"}, Cwd: "/work"})
				tt.run(h)
				return nil
			})
			c := servertest.Join(t, codexserver.New(e, nil), servertest.Host{Era: servertest.Handshake, Meta: `"progressToken":"t"`})
			began, done := time.Now(), make(chan struct{})
			go func() {
				defer close(done)
				must.Get(c.Send(t.Context(), "tools/call", `"name":"codex","arguments":{"prompt":"go"}`))(t)
			}()
			var got []string
			for seen, running := 0, true; running; {
				synctest.Wait()
				for all := c.Received("notifications/progress"); seen < len(all); seen++ {
					var p struct{ Message string }
					must.OK(t, json.Unmarshal(all[seen], &p))
					got = append(got, fmt.Sprint(int(time.Since(began).Seconds()), " ", p.Message))
				}
				select {
				case <-done:
					running = false
				case <-time.After(10 * time.Millisecond):
				}
			}
			must.Equal(t, "progress", tt.want, got)
		})
	}
}

// TestProgressBeforeTheAnswer checks that the answer of a fast turn comes a moment after the last progress, and at once without
// progress.
func TestProgressBeforeTheAnswer(t *testing.T) {
	for _, era := range []servertest.Era{servertest.Handshake, servertest.Rounds} {
		for _, meta := range []string{"", `"progressToken":"t"`} {
			bubble(t, fmt.Sprint(era, meta), func(t *testing.T) {
				o := codexserver.Options{Home: testenv.Home(t)}
				o.Changes.Read = new(false)
				c := servertest.Join(t, codexserver.New(&servertest.Engine{}, &o), servertest.Host{Era: era, Meta: meta})
				began, want := time.Now(), time.Duration(0)
				must.Get(c.Send(t.Context(), "tools/call", `"name":"codex","arguments":{"prompt":"say:done"}`))(t)
				if meta != "" {
					want = 30 * time.Millisecond
				}
				must.Equal(t, "the turn takes", want, time.Since(began))
			})
		}
	}
}
