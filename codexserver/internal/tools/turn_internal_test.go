package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/approve"
	"github.com/codexmcp/codexmcp/codexserver/internal/show"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/mcptypes"
)

// bench returns a call with threads and turns of its own. The engine repeats the prompt. The
// prompt "wait" waits for the end of the turn, and "fail" fails.
func bench(t *testing.T) *call {
	e := engine.TurnFunc(func(ctx context.Context, host engine.Host, in []protocol.InputItem) error {
		switch text := protocol.TextOf(in); text {
		case "wait":
			<-ctx.Done()
			return &engine.AbortError{Reason: protocol.AbortInterrupted, Cause: context.Cause(ctx)}
		case "fail":
			return errors.New("it failed")
		default:
			host.Emit(protocol.AgentMessage{Message: text})
			return nil
		}
	})
	ctx, stop := context.WithCancel(t.Context())
	share := thread.NewTable(e, &approve.Options{}).Share("")
	c := &call{table: New(e, nil), Call: &Call{Threads: share, Turns: NewTurns(ctx)}}
	t.Cleanup(func() {
		stop()
		c.Turns.Wait()
		if err := share.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// begin begins a turn of a new thread.
func (c *call) begin(t *testing.T, prompt string, background bool) (*Turn, *mcptypes.CallToolResult) {
	t.Helper()
	j := c.prepare(t, prompt, background)
	return j, c.run(t.Context(), j)
}

// prepare returns a turn of a new thread.
func (c *call) prepare(t *testing.T, prompt string, background bool) *Turn {
	t.Helper()
	j := c.newTurn(background)
	var err error
	if j.thread, err = c.Threads.Start(t.Context(), protocol.Config{}, j.attend); err != nil {
		t.Fatal(err)
	}
	j.in.Items = protocol.TextInput(prompt)
	return j
}

func TestJob(t *testing.T) {
	for _, tt := range []struct {
		prompt string
		status protocol.TurnStatus
		text   string
		failed bool
	}{
		{"hello", protocol.StatusCompleted, "hello", false},
		{"", protocol.StatusCompleted, "", false},
		{"fail", protocol.StatusFailed, "it failed", true},
		{"wait", protocol.StatusAborted, "Turn aborted: interrupted by the client", true},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := bench(t)
			j, answer := c.begin(t, tt.prompt, true)
			if !strings.Contains(string(answer.StructuredContent), `"status":"running"`) {
				t.Errorf("%s", answer.StructuredContent)
			}
			synctest.Wait()
			if tt.prompt == "wait" {
				if s := j.State(); s.Status != protocol.StatusRunning || j.over() {
					t.Errorf("%+v", s)
				}
				pass(time.Minute)
				if s := j.State().Words(); s != "thinking, 1m0s" {
					t.Errorf("%q", s)
				}
				if _, err := j.thread.Interrupt(t.Context()); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
			}
			if got := Texts(j.outcome.call); j.State().Status != tt.status || got[0] != tt.text || (j.outcome.call.IsError != nil) != tt.failed || !j.over() {
				t.Errorf("%q: %q %q", tt.prompt, j.State().Status, got)
			}
		})
	}
}

// TestDetach detaches a turn while it runs, and after its end.
func TestDetach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := bench(t)
		j := c.prepare(t, "wait", false)
		go c.run(t.Context(), j)
		synctest.Wait()
		if len(c.Turns.unread()) != 0 || c.Turns.of(j.ThreadID()) != j {
			t.Error("a turn counts as a background turn while a call waits for it")
		}
		if !j.Detach() || !slices.Equal(c.Turns.unread(), []*Turn{j}) {
			t.Error("not detached")
		}
		j.thread.Stop(thread.ErrInterrupted)
		synctest.Wait()
		if !slices.Equal(c.Turns.unread(), []*Turn{j}) || !j.Detach() {
			t.Error("its result is not kept")
		}
		late, _ := c.begin(t, "hello", false)
		if late.Detach() || c.Turns.of(late.ThreadID()) != late || !late.answered {
			t.Error("detached after its end")
		}
	})
}

// TestAnsweredJobsAreLimited keeps the last answered turns, one of each thread.
func TestAnsweredJobsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := bench(t)
		first, _ := c.begin(t, "hello", false)
		again := c.newTurn(false)
		again.thread, again.in.Items = first.thread, protocol.TextInput("hello")
		c.run(t.Context(), again)
		synctest.Wait() // the turn's goroutine still holds the list when its call returns
		if len(c.Turns.list) != 1 || c.Turns.of(first.ThreadID()) != again {
			t.Errorf("%d turns of one thread are kept", len(c.Turns.list))
		}
		for range maxAnswered {
			c.begin(t, "hello", false)
		}
		synctest.Wait()
		if len(c.Turns.list) != maxAnswered || c.Turns.of(first.ThreadID()) != nil || len(c.Turns.unread()) != 0 {
			t.Errorf("%d turns are kept, %d are unread", len(c.Turns.list), len(c.Turns.unread()))
		}
	})
}

func TestJobsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := bench(t)
		for range maxRunning {
			c.begin(t, "wait", true)
		}
		if _, answer := c.begin(t, "hello", true); answer.IsError == nil || !strings.Contains(Texts(answer)[0], fmt.Sprint(maxRunning)) {
			t.Errorf("one more: %q", Texts(answer))
		}
		if _, answer := c.begin(t, "hello", false); Texts(answer)[0] != "hello" {
			t.Errorf("in the foreground: %q", Texts(answer))
		}
		synctest.Wait()
		first := c.Turns.list[0]
		for _, j := range slices.Clone(c.Turns.list) {
			j.thread.Stop(thread.ErrInterrupted)
		}
		synctest.Wait()
		if n := len(c.Turns.list); n != maxEnded {
			t.Errorf("%d turns are kept after their end", n)
		}
		if c.Turns.of(first.ThreadID()) != nil {
			t.Error("the oldest is kept")
		}
		if _, answer := c.begin(t, "hello", true); answer.IsError != nil {
			t.Errorf("then: %q", Texts(answer))
		}
		synctest.Wait()
	})
}

// TestAnswered checks that every call receives the result of a turn until one of them was
// answered with it.
func TestAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := bench(t)
		j, _ := c.begin(t, "hello", true)
		synctest.Wait()
		for _, tt := range []struct {
			answered bool
			want     string
		}{{false, "hello"}, {true, "hello"}, {true, ""}} {
			one := *c.Call
			var out struct{ Threads []row }
			r, err := new(waitArguments).run(t.Context(), &call{Call: &one, table: c.table})
			if err == nil {
				err = json.Unmarshal(r.StructuredContent, &out)
			}
			if err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			for _, r := range out.Threads {
				got.WriteString(r.Content)
			}
			if got.String() != tt.want {
				t.Errorf("%q, want %q", got.String(), tt.want)
			}
			if tt.answered {
				one.Answered()
			}
		}
		if c.Turns.of(j.ThreadID()) != j {
			t.Error("not found by its thread")
		}
	})
}

func TestWait(t *testing.T) {
	for arguments, want := range map[string]time.Duration{
		`{}`: 45 * time.Second, `{"seconds":null}`: 45 * time.Second, `{"seconds":0}`: 0, `{"seconds":-1}`: 0,
		`{"seconds":0.5}`: 500 * time.Millisecond, `{"seconds":50}`: 50 * time.Second, `{"seconds":1e300}`: 50 * time.Second,
	} {
		a, err := waitTool.read(json.RawMessage(arguments), nil)
		if err != nil || a.(*waitArguments).wait() != want {
			t.Errorf("%s: %+v, %v, want %v", arguments, a, err, want)
		}
	}
	a := waitArguments{ThreadIDs: []string{"x", "F47AC10B-58CC-4372-A567-0E02B2C3D479", "x", "f47ac10b58cc4372a5670e02b2c3d479"}}
	if a.canonicalize(); !slices.Equal(a.ThreadIDs, []string{"x", "f47ac10b-58cc-4372-a567-0e02b2c3d479"}) {
		t.Errorf("%q", a.ThreadIDs)
	}
}

func TestCut(t *testing.T) {
	c := bench(t)
	j, _ := c.begin(t, "hello", false)
	for _, text := range []string{
		"", "short", strings.Repeat("x", 1000), strings.Repeat("é", 1000), strings.Repeat("\U0001F600", 1000),
		strings.Repeat("\"\n\x00", 1000), strings.Repeat("\xff", 1000), strings.Repeat("x", 300) + strings.Repeat("\x80", 1000),
	} {
		for _, most := range []int{100, 299, 300, 301, 2000, 10_000} {
			got := j.cut(text, most)
			whole := quoted(text) <= most
			switch {
			case whole && got != text:
				t.Errorf("%.20q within %d was cut", text, most)
			case !whole && (quoted(got) > most || !strings.HasSuffix(got, "]") || !strings.Contains(got, "[cut: ")):
				t.Errorf("%.20q within %d: %d bytes, %q", text, most, quoted(got), got)
			case !whole && utf8.ValidString(text) && !utf8.ValidString(got):
				t.Errorf("%.20q within %d: cut inside a letter", text, most)
			}
		}
	}
	for words, want := range map[string]string{
		"": "", "one": "one", "  one \n two": "one", "é\xff": `é\xff`, strings.Repeat("é", 201): strings.Repeat("é", 200) + "…",
	} {
		if got := show.Brief(words); got != want {
			t.Errorf("%q: %q, want %q", words, got, want)
		}
	}
}

// pass advances the clock of a bubble.
func pass(d time.Duration) { <-time.After(d) }

// TestAbortWithoutReason: the error of an engine need not say why the turn was aborted.
func TestAbortWithoutReason(t *testing.T) {
	if got := abortCause(&engine.AbortError{}); got != "interrupted" {
		t.Errorf("the cause is %q", got)
	}
}
