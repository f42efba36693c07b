package mcp_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// flood is an engine whose turns emit and count deltas of a size until they are
// interrupted.
type flood struct {
	engine.TurnFunc
	most    int
	emitted atomic.Int64
	ended   atomic.Int64
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

// events reads until a message with the text. It returns the number of deltas, and the
// texts of background events.
func events(t *testing.T, end jsonrpc.Transport, last string) (deltas int, words []string) {
	t.Helper()
	for {
		b, err := end.Read(t.Context())
		must(t, err)
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

// TestDeltasAreDropped floods a client that does not read, with an engine that does not
// wait, and then reads.
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

// TestDeskAnswersWithoutReader asks at the desk while the client of the turn does not read.
// The desk's answer counts.
func TestDeskAnswersWithoutReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		decided := make(chan string, 1)
		full := newFlood(1 << 14)
		e := engine.TurnFunc(func(ctx context.Context, host engine.Host, in []protocol.InputItem) error {
			go full.TurnFunc(ctx, host, in)
			synctest.Wait() // it waits for the client
			out := host.ApproveExec(ctx, protocol.ExecApprovalRequest{CallID: "c", Command: []string{"make"}, Cwd: "/"})
			decided <- string(out.Decision)
			<-ctx.Done()
			return &engine.AbortError{Reason: protocol.AbortInterrupted, Cause: context.Cause(ctx)}
		})
		d := &servertest.Desk{Answer: servertest.Say(`{"action":"accept","content":{"decision":"approved"}}`)}
		leave, served := unreadTurn(t, e, &codexserver.Options{Desk: d, MaxUnread: unread})
		if got := <-decided; got != "approved" {
			t.Errorf("decided %s", got)
		}
		leave()
		must(t, <-served)
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
		must(t, <-served)
	})
}
