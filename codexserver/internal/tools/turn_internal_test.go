package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"github.com/codexmcp/codexmcp/internal/plain"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/approve"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/internal/turn"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	utf8text "github.com/codexmcp/codexmcp/internal/text"
	"github.com/codexmcp/codexmcp/mcptypes"
	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

// textsOf returns the text blocks of a result.
func textsOf(r *mcptypes.CallToolResult) (texts []string) {
	for _, b := range r.Content {
		if t, ok := b.(*mcptypes.TextContent); ok {
			texts = append(texts, t.Text)
		}
	}
	return texts
}

// bench returns a call with threads and turns of its own. The engine repeats the prompt. The
// prompt "wait" waits for the end of the turn, and "fail" and "panic" do that.
func bench(t *testing.T) *Call {
	e := engine.TurnFunc(func(ctx context.Context, host engine.Host, in []protocol.InputItem) error {
		switch text := protocol.TextOf(in); text {
		case "wait":
			<-ctx.Done()
			return &engine.AbortError{Reason: protocol.AbortInterrupted, Cause: context.Cause(ctx)}
		case "fail":
			return errors.New("it failed")
		case "panic":
			panic("a fault")
		default:
			host.Emit(protocol.AgentMessage{Message: text})
			return nil
		}
	})
	ctx, stop := context.WithCancel(t.Context())
	share := thread.NewTable(e, &approve.Options{}).Share("")
	c := &Call{table: New(e, nil), Threads: share, Turns: NewTurns(ctx)}
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
func (c *Call) begin(t *testing.T, prompt string, background bool) (*begun, *mcptypes.CallToolResult) {
	t.Helper()
	th := must.Get(c.Threads.Start(t.Context(), c.table.Caller(c.Client, c.Roots), protocol.Config{}, c.Awaited))(t)
	return c.beginIn(t.Context(), th, prompt, background)
}

// beginIn begins a turn of a thread. The client has the result.
func (c *Call) beginIn(ctx context.Context, th *thread.Thread, prompt string, background bool) (*begun, *mcptypes.CallToolResult) {
	c.leave = func() {}
	b, a := c.newTurn(background)
	r := c.run(ctx, b, th, a, protocol.TurnInput{Items: protocol.TextInput(prompt)})
	if r == nil {
		r = c.Result(ctx)
		c.Answered()
	}
	return b, r
}

// TestAnsweredTurnsAreLimited keeps the last answered turns, one of each thread.
func TestAnsweredTurnsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := bench(t)
		first, _ := c.begin(t, "hello", false)
		again, _ := c.beginIn(t.Context(), first.thread, "hello", false)
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

func TestTurnsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := bench(t)
		for range maxRunning {
			c.begin(t, "wait", true)
		}
		if _, answer := c.begin(t, "hello", true); answer.IsError == nil || !strings.Contains(textsOf(answer)[0], fmt.Sprint(maxRunning)) {
			t.Errorf("one more: %q", textsOf(answer))
		}
		if _, answer := c.begin(t, "hello", false); textsOf(answer)[0] != "hello" {
			t.Errorf("in the foreground: %q", textsOf(answer))
		}
		one := &Call{table: c.table, Threads: c.Threads, Turns: c.Turns}
		go one.begin(t, "wait", false)
		synctest.Wait()
		if one.detach() || one.InBackground() {
			t.Error("a turn that a call waits for becomes one too many")
		}
		other := &Call{table: c.table, Threads: c.Threads, Turns: c.Turns.Share(t.Context(), true)}
		if _, answer := other.begin(t, "hello", true); answer.IsError != nil {
			t.Errorf("of another client: %q", textsOf(answer))
		}
		synctest.Wait()
		first := c.Turns.list[0]
		for _, j := range slices.Clone(c.Turns.list) {
			j.thread.Stop(thread.ErrInterrupted)
		}
		synctest.Wait()
		if n := len(c.Turns.list); n != maxEnded+1 { // one is of the other client
			t.Errorf("%d turns are kept after their end", n)
		}
		if c.Turns.of(first.ThreadID()) != nil {
			t.Error("the oldest is kept")
		}
		if _, answer := c.begin(t, "hello", true); answer.IsError != nil {
			t.Errorf("then: %q", textsOf(answer))
		}
		synctest.Wait()
	})
}

// TestAnswered checks that every call receives the result of a turn until one of them was answered with it.
func TestAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := bench(t)
		j, _ := c.begin(t, "hello", true)
		synctest.Wait()
		for _, tt := range []struct {
			answered bool
			want     string
		}{{false, "hello"}, {true, "hello"}, {true, ""}} {
			one := *c
			one.read = nil
			var out struct {
				Threads []row `json:"threads"`
			}
			r, err := new(waitArguments).run(t.Context(), &one)
			if err == nil {
				err = jsonv2.Unmarshal(r.StructuredContent, &out)
			}
			must.OK(t, err)
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
		a, err := waitTool.read([]byte(arguments), nil)
		if err != nil || a.(*waitArguments).wait() != want {
			t.Errorf("%s: %+v, %v, want %v", arguments, a, err, want)
		}
	}
	a := waitArguments{ThreadIDs: []string{"x", "F47AC10B-58CC-4372-A567-0E02B2C3D479", "x", "f47ac10b58cc4372a5670e02b2c3d479"}}
	text := textsOf(must.Get(a.run(t.Context(), bench(t)))(t))[0]
	if strings.Count(text, "x (unknown)") != 1 || strings.Count(text, "f47ac10b-58cc-4372-a567-0e02b2c3d479 (unknown)") != 1 || strings.Count(text, "unknown") != 2 {
		t.Errorf("each thread once: %s", text)
	}
}

func TestCut(t *testing.T) {
	did := &turn.Result{}
	for _, text := range []string{
		"", "short", strings.Repeat("x", 1000), strings.Repeat("é", 1000), strings.Repeat("\U0001F600", 1000),
		strings.Repeat("\"\n\x00", 1000), strings.Repeat("\xff", 1000), strings.Repeat("x", 300) + strings.Repeat("\x80", 1000),
	} {
		for _, most := range []int{100, 299, 300, 301, 2000, 10_000} {
			got := did.Cut(text, most)
			whole := utf8text.SizeJSON(text) <= most
			switch {
			case whole && got != text:
				t.Errorf("%.20q within %d was cut", text, most)
			case !whole && (utf8text.SizeJSON(got) > most || !strings.HasSuffix(got, "]") || !strings.Contains(got, "[cut: ")):
				t.Errorf("%.20q within %d: %d bytes, %q", text, most, utf8text.SizeJSON(got), got)
			case !whole && utf8.ValidString(text) && !utf8.ValidString(got):
				t.Errorf("%.20q within %d: cut inside a letter", text, most)
			}
		}
	}
	for words, want := range map[string]string{
		"": "", "one": "one", "  one \n two": "one", "é\xff": `é\xff`, strings.Repeat("é", 201): strings.Repeat("é", 200) + "…",
	} {
		if got := plain.Brief(words); got != want {
			t.Errorf("%q: %q, want %q", words, got, want)
		}
	}
}

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
		c = &Call{table: c.table, Threads: client, Turns: first.Share(ctx, false)}
		other := first.Share(ctx, true)
		if first.Working() != nil || !first.Stays() || NewTurns(ctx).Stays() {
			t.Error("before the first turn")
		}
		j, _ := c.begin(t, "wait", true)
		synctest.Wait()
		working := []string{j.ThreadID() + " in : thinking"} // this engine names no folder
		if !slices.Equal(other.Working(), working) || !slices.Equal(first.Working(), working) || other.of(j.ThreadID()) != j {
			t.Error("the turn of one client")
		}
		must.OK(t, client.Close())
		if keeper.Find(j.ThreadID()) == nil || j.over() {
			t.Error("the thread is not kept")
		}
		if first.Rekeep(next) != keeper || other.Rekeep(keeper) != next {
			t.Error("another keeper")
		}
		other.Wait() // it has none
		waited := make(chan bool)
		go func() {
			first.Wait()
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
		if other.Working() != nil {
			t.Error("after the turn")
		}
		if c.Turns.Leave() || !other.Leave() {
			t.Error("the last client")
		}
		must.OK(t, keeper.Close(), next.Close())
	})
}

// TestPanic panics in a turn. The call has a result, and the thread is free for another.
func TestPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := bench(t)
		for _, background := range []bool{false, true} {
			j, answer := c.begin(t, "panic", background)
			c.Turns.Wait()
			if background {
				answer = j.answer()
			}
			if got := textsOf(answer); len(got) == 0 || got[0] != "internal error: the turn panicked" || answer.IsError == nil || !j.over() || j.State().Status != protocol.StatusFailed {
				t.Errorf("background %t: %q, %+v", background, got, j.State())
			}
			if j.thread.Stop(nil) != nil {
				t.Errorf("background %t: the thread has a turn after the panic", background)
			}
			_, answer = c.beginIn(t.Context(), j.thread, "hello", false)
			if got := textsOf(answer); got[0] != "hello" {
				t.Errorf("the next turn: %q", got)
			}
		}
	})
}

// TestEnded checks what the caller of a task learns whose server ended.
func TestEnded(t *testing.T) {
	for did, want := range map[string]string{
		`{}`: "0 commands ran and 0 files changed", `{"changes":[{"path":"a"}],"commands":[{},{}],"truncated":{"changes":3,"commands":0}}`: "2 commands ran and 4 files changed",
		`{"changes":[{}],"commands":[{}]}`: "1 command ran and 1 file changed",
	} {
		before := protocol.TurnResult{ThreadID: "7"}
		must.OK(t, jsonv2.Unmarshal([]byte(did), &before))
		r, line := Ended(before)
		if text := textsOf(r)[0]; line != want || !strings.Contains(text, "threadId 7") || !strings.Contains(text, want) || r.IsError == nil {
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
		err       error
	}{{resumable{}, true, true, nil}, {resumable{can: missing}, true, true, missing}, {resumable{}, false, false, nil}, {engine.TurnFunc(nil), true, false, nil}} {
		table := New(tt.e, &Options{Continues: tt.continues})
		if continues := table.Continues(); continues != tt.want || continues && table.CanContinue(t.Context()) != tt.err {
			t.Errorf("%+v: %t", tt, continues)
		}
	}
	c := bench(t)
	if r, err := c.table.Continue(t.Context(), c, turn.Resume{Key: "k"}, &protocol.TurnResult{ThreadID: "7"}, false); r != nil || err == nil || !strings.Contains(err.Error(), "no conversation") {
		t.Error(err)
	}
}

// TestUnknownNames checks which tools refuse unknown arguments.
func TestUnknownNames(t *testing.T) {
	table, turns := New(engine.TurnFunc(nil), nil), NewSharedTurns(t.Context(), nil)
	for arguments, want := range map[string]string{
		`{"second":1}`: "did you mean seconds?", `{"Seconds":1}`: "did you mean seconds?", `{"seconds":1,"x/y":[]}`: "/x~1y: the arguments are",
	} {
		text := textsOf(table.Call(t.Context(), &Call{Turns: turns}, "codex-wait", json.RawMessage(arguments)))[0]
		if !strings.HasPrefix(text, "codex-wait: unknown argument /") || !strings.Contains(text, want) || strings.HasSuffix(want, "are") && !strings.Contains(text, "threadIds") {
			t.Errorf("%s: %s", arguments, text)
		}
	}
	if text := textsOf(table.Call(t.Context(), &Call{Turns: turns}, "codex-wait", json.RawMessage(`{"seconds":0,"more":null}`)))[0]; !strings.Contains(text, "argument /threadIds is missing: several clients share") {
		t.Errorf("null: %s", text)
	}
	for _, one := range all {
		in := one.input()
		refused := slices.Contains([]string{"codex", "codex-list", "codex-review", "codex-show", "codex-wait"}, one.name)
		if err := in.unknown("", "nosuch"); (err != nil) != refused {
			t.Errorf("%s with an unknown argument: %v", one.name, err)
		}
		for name := range in.Properties {
			misspelt := strings.ToUpper(name)
			if err := in.unknown("", misspelt); err == nil || !strings.Contains(err.Error(), "did you mean "+name+"?") {
				t.Errorf("%s with %s: %v", one.name, misspelt, err)
			}
		}
	}
}

// manyArguments has arguments of each type.
type manyArguments struct {
	modelsArguments
	Text    string          `json:"text"`
	List    []string        `json:"list"`
	Numbers []int           `json:"numbers"`
	Object  json.RawMessage `json:"object"`
	Known   struct {
		N float64 `json:"n"`
		S string  `json:"s"`
	} `json:"known"`
	Number float64 `json:"number" max:"50"`
	Flag   bool    `json:"flag"`
	Any    string  `json:"any" enum:"a"`
}

// TestArgumentsAsTexts has calls of hosts that send lists, objects, numbers and booleans as texts. They
// are read where the schema wants them, before locks and bounds are compared.
func TestArgumentsAsTexts(t *testing.T) {
	one := &tool{arguments: func() arguments { return new(manyArguments) }}
	for given, want := range map[string]string{
		`{"list":"[\"a\",\"b\"]"}`: `{"list":["a","b"]}`,
		`{"list":" [ ] "}`:         `{"list":[ ]}`,
		`{"object":"{\"model\":\"m\",\"n\":12345678901234567890}"}`: `{"object":{"model":"m","n":12345678901234567890}}`,
		`{"number":"7"}`: `{"number":7}`, `{"number":"99"}`: `{"number":50}`,
		`{"flag":"true","text":"true"}`: `{"flag":true,"text":"true"}`, `{"known":"{\"n\":\"2\"}"}`: `{"known":{"n":2}}`,
		`{"known":{"n":"2","s":"3"}}`: `{"known":{"n":2,"s":"3"}}`, `{"numbers":["1",2]}`: `{"numbers":[1,2]}`,
		`{"text":"[1]","object":"null"}`: `{"text":"[1]"}`, `{"list":["[1]"]}`: `{"list":["[1]"]}`, `{}`: `{}`,

		`{"list":"\"[\\\"a\\\"]\"","number":"\"5\"","known":"\"{\\\"n\\\":2}\""}`: `{"list":["a"],"number":5,"known":{"n":2}}`,
		`"{\"number\":\"5\"}"`: `{"number":5}`, `"\"{\\\"number\\\":5}\""`: `{"number":5}`, `{"list":"a b.png"}`: `{"list":["a b.png"]}`,
		`{"list":"\"a\""}`: `{"list":["a"]}`, `{"list":"5"}`: `{"list":["5"]}`,
		`{"list":"","object":" ","number":"","flag":"","known":"\"\""}`: `{}`,
		`{"text":""}`: `{"text":""}`,

		`{"list":"{}"}`: "argument /list", `{"list":"[a"}`: "argument /list", `{"numbers":"1,2"}`: "argument /numbers",
		`{"flag":"yes"}`: "argument /flag", `{"flag":"1"}`: "argument /flag", `{"number":"seven"}`: "argument /number",
		`{"number":"[7]"}`: "argument /number", `{"object":"[1]"}`: "argument /object",
		`{"known":"{\"x\":1}"}`: "unknown argument /known/x", `{"any":"b"}`: "argument /any", `{"object":"{\"a\":1,}"}`: "argument /object",
		`{"unknown":"[1]"}`: "unknown argument /unknown",
	} {
		got, err := one.input().read("", jsontext.Value(given), nil)
		if !strings.HasPrefix(want, "{") {
			if err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%s: %s, %v, want %s", given, got, err, want)
			}
			continue
		}
		var a, b any
		if err != nil || json.Unmarshal(got, &a) != nil || json.Unmarshal([]byte(want), &b) != nil || !cmp.Equal(a, b) {
			t.Errorf("%s: %s, %v, want %s", given, got, err, want)
		}
		if strings.Contains(want, "12345678901234567890") && !strings.Contains(string(got), "12345678901234567890") {
			t.Errorf("%s: %s has another number", given, got)
		}
	}
	if _, err := one.input().read("", jsontext.Value(`{"object":"{}"}`), []string{"object"}); err == nil {
		t.Error("a locked argument was read")
	}
}

// TestMirrored asks clients that mirror arguments for a header exactly if the tool has the argument threadId.
func TestMirrored(t *testing.T) {
	for _, mirror := range []bool{false, true} {
		for _, one := range New(engine.TurnFunc(nil), nil).List(mirror) {
			want := mirror && strings.Contains(string(one.InputSchema), `"threadId":{`)
			if got := strings.Count(string(one.InputSchema), `"threadId":{"x-mcp-header":"Thread-Id","type":"string"`); got == 1 != want {
				t.Errorf("%t: %s", mirror, one.InputSchema)
			}
		}
	}
}
