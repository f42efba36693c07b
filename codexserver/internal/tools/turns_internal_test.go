package tools

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/approve"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/go-json-experiment/json/jsontext"
)

// TestSharedTurns runs turns of two clients that share them: whose are running, who waits for which,
// and who holds the threads of a client that has gone.
func TestSharedTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := bench(t)
		table := thread.NewTable(c.table.engine, &approve.Options{})
		keeper, next := table.Share(""), table.Share("")
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		first := NewSharedTurns(ctx, keeper)
		client := table.Share("")
		c.Call = &Call{Threads: client, Turns: first.Share(ctx)}
		other := first.Share(ctx)
		if first.Works() || c.Turns.Busy() || !first.Stays() || NewTurns(ctx).Stays() {
			t.Error("before the first turn")
		}
		j, _ := c.begin(t, "wait", true)
		synctest.Wait()
		if !c.Turns.Busy() || other.Busy() || !other.Works() || !first.Works() || other.of(j.ThreadID()) != j {
			t.Error("the turn of one client")
		}
		if err := client.Close(); err != nil {
			t.Error(err)
		}
		if keeper.Find(j.ThreadID()) == nil || j.over() {
			t.Error("the thread is not kept")
		}
		if first.Rekeep(next) != keeper || other.Rekeep(keeper) != next {
			t.Error("another keeper")
		}
		other.Wait() // it has none
		waited := make(chan bool)
		go func() {
			first.WaitForAll()
			c.Turns.Wait()
			close(waited)
		}()
		synctest.Wait()
		select {
		case <-waited:
			t.Error("nobody waited for the turn")
		default:
		}
		stop()
		<-waited
		if c.Turns.Busy() || other.Works() {
			t.Error("after the turn")
		}
		if err := errors.Join(keeper.Close(), next.Close()); err != nil {
			t.Error(err)
		}
	})
}

// TestManyRunning begins as many turns in the background as may run, and one more.
func TestManyRunning(t *testing.T) {
	c := bench(t)
	for range 1024 - 1 {
		c.Turns.list = append(c.Turns.list, &Turn{owner: c.Turns, background: true, done: make(chan struct{})})
	}
	ended := make(chan struct{})
	close(ended)
	free := []*Turn{ // these do not count
		{owner: c.Turns, background: true, done: ended},
		{owner: c.Turns, done: make(chan struct{})},
		{owner: c.Turns.Share(t.Context()), background: true, done: make(chan struct{})},
	}
	c.Turns.list = append(c.Turns.list, free...)
	last := &Turn{owner: c.Turns, background: true, done: make(chan struct{})}
	if !c.Turns.add(last) || c.Turns.add(&Turn{owner: c.Turns, background: true, done: make(chan struct{})}) {
		t.Error("not 1,024 turns may run in the background")
	}
	if !c.Turns.add(&Turn{owner: c.Turns, done: make(chan struct{})}) || c.Turns.detach(free[1]) || free[1].InBackground() {
		t.Error("a turn that a call waits for may not run, or becomes one too many")
	}
	_, answer := c.begin(t, "hello", true)
	if !strings.Contains(string(answer.StructuredContent), "1024 turns run in the background") {
		t.Errorf("%s", answer.StructuredContent)
	}
	c.Turns.list = slices.DeleteFunc(c.Turns.list, func(j *Turn) bool { return j.thread == nil })
}

// TestPanic panics in a turn. The call has a result, and the thread is free for another.
func TestPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := bench(t)
		e := engine.TurnFunc(func(_ context.Context, host engine.Host, in []protocol.InputItem) error {
			if protocol.TextOf(in) == "panic" {
				panic("a fault")
			}
			host.Emit(protocol.AgentMessage{Message: "hello"})
			return nil
		})
		share := thread.NewTable(e, &approve.Options{}).Share("")
		c.Call = &Call{Threads: share, Turns: NewTurns(t.Context())}
		for _, background := range []bool{false, true} {
			j, answer := c.begin(t, "panic", background)
			c.Turns.Wait()
			if background {
				answer = j.outcome.call
			}
			if got := Texts(answer); len(got) == 0 || got[0] != "internal error: the turn panicked" || answer.IsError == nil || !j.over() || j.State().Status != protocol.StatusFailed {
				t.Errorf("background %t: %q, %+v", background, got, j.State())
			}
			if j.thread.Busy() {
				t.Errorf("background %t: the thread has a turn after the panic", background)
			}
			again := c.newTurn(false)
			again.thread = j.thread
			if got := Texts(c.run(t.Context(), again)); got[0] != "hello" {
				t.Errorf("the next turn: %q", got)
			}
		}
		if err := share.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestEnded checks what the caller of a task learns whose server ended.
func TestEnded(t *testing.T) {
	for did, want := range map[string]string{
		"": "", "x": "", `{"changes":[1]}`: "", `{}`: "0 commands ran and 0 files changed", `{"changes":[{"path":"a"}],"commands":[{},{}],"truncated":{"changes":3,"commands":0}}`: "2 commands ran and 4 files changed",
		`{"changes":[{}],"commands":[{}]}`: "1 command ran and 1 file changed",
	} {
		r, line := Ended("7", jsontext.Value(did))
		if text := Texts(r)[0]; line != want || !strings.Contains(text, "threadId 7") || !strings.Contains(text, want) || r.IsError == nil {
			t.Errorf("%s: %q, %s", did, line, text)
		}
	}
}

// TestProjectFolder takes the folder of the program that a client is, not of the server.
func TestProjectFolder(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	t.Setenv("CLAUDE_PROJECT_DIR", other)
	if got := ProjectFolder(t.Context()); got != other {
		t.Errorf("of this process: %q", got)
	}
	for environ, want := range map[string]string{
		"": "/client", "CLAUDE_PROJECT_DIR=" + dir: dir, "CLAUDE_PROJECT_DIR=relative": "/client", "CLAUDE_PROJECT_DIR=" + filepath.Join(dir, "none"): "/client", "XCLAUDE_PROJECT_DIR=" + dir: "/client",
	} {
		ctx := engine.WithOrigin(t.Context(), engine.Origin{Folder: "/client", Environ: []string{"CLAUDE_PROJECT_DIR=" + dir + "x", "A=b", environ}[min(len(environ), 1):]})
		if got := ProjectFolder(ctx); got != want && environ != "" {
			t.Errorf("%q: %q, want %q", environ, got, want)
		}
	}
}

// resumable is an engine that may continue turns.
type resumable struct {
	engine.TurnFunc
	can error
}

func (r resumable) Traits() engine.Traits {
	return engine.Traits{CanContinue: func(context.Context) error { return r.can }}
}

// TestCanContinue checks whether turns are continued here, and which are not.
func TestCanContinue(t *testing.T) {
	missing := errors.New("no key")
	for _, tt := range []struct {
		e         engine.Engine
		continues bool
		want      bool // it continues turns
		err       bool
	}{{resumable{}, true, true, false}, {resumable{can: missing}, true, true, true}, {resumable{}, false, false, true}, {engine.TurnFunc(nil), true, false, true}} {
		table := New(tt.e, &Options{Continues: tt.continues})
		if err := table.CanContinue(t.Context()); table.Continues() != tt.want || (err != nil) != tt.err || tt.want && tt.err && !errors.Is(err, missing) {
			t.Errorf("%+v: %t, %v", tt, table.Continues(), err)
		}
	}
	c := bench(t)
	for resume, want := range map[string]string{``: "continuing a turn", `{}`: "it has no key", `{"key":"k"}`: "no conversation", `{"key":"k","schema":{"type":7}}`: "type"} {
		if run, err := c.table.Continue(t.Context(), c.Call, Unfinished{Thread: "7", Resume: jsontext.Value(resume)}, false); run != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", resume, err)
		}
	}
}
