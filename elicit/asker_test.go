package elicit_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/google/go-cmp/cmp"
)

// able is a client that can be asked.
var able = elicit.Client{Capabilities: json.RawMessage(`{"elicitation":{}}`), ProtocolVersion: "2025-06-18"}

// A desk is a client with many open questions. It is a Caller and, like a peer, returns when the context of a call ends.
type desk struct {
	mu      sync.Mutex
	asked   []string // messages, in order of arrival
	revoked []string // messages of calls whose context ended
	answers map[string]chan any
}

func newDesk() *desk { return &desk{answers: make(map[string]chan any)} }

func (d *desk) Call(ctx context.Context, method string, params, result any) error {
	var p struct{ Message string }
	if err := json.Unmarshal(params.(json.RawMessage), &p); err != nil || method != "elicitation/create" {
		return fmt.Errorf("bad request %s %s", method, params)
	}
	d.mu.Lock()
	d.asked = append(d.asked, p.Message)
	d.mu.Unlock()
	select {
	case answer := <-d.slot(p.Message):
		if err, ok := answer.(error); ok {
			return err
		}
		*result.(*json.RawMessage) = json.RawMessage(answer.(string))
		return nil
	case <-ctx.Done():
		d.mu.Lock()
		d.revoked = append(d.revoked, p.Message)
		d.mu.Unlock()
		return ctx.Err()
	}
}

// slot returns where the answer to a question goes: a raw result, or an error.
func (d *desk) slot(message string) chan any {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.answers[message] == nil {
		d.answers[message] = make(chan any, 1)
	}
	return d.answers[message]
}

func (d *desk) answer(message string, answer any) { d.slot(message) <- answer }

func (d *desk) seen() (asked, revoked []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.asked), slices.Clone(d.revoked)
}

// ask asks in the background and returns a channel for the outcome.
func ask(ctx context.Context, a *elicit.Asker, message string) <-chan elicit.Outcome {
	return begin(ctx, a, &elicit.Question{Message: message})
}

func TestAskUnsupported(t *testing.T) {
	for _, capabilities := range []string{``, `{}`, `{"elicitation":null}`, `{"elicitation":{"url":{}}}`} {
		d := newDesk()
		a := elicit.NewAsker(d, elicit.Client{Capabilities: json.RawMessage(capabilities)}, nil)
		for i, level := range []any{warn, debug, debug} {
			out := a.Ask(t.Context(), &elicit.Question{Message: "?"})
			if out.Decision != denied || out.Reason != "unsupported" || out.ForCaller() == "" || any(out.Level) != level {
				t.Errorf("%s, question %d: %+v", capabilities, i, out)
			}
		}
		if asked, _ := d.seen(); len(asked) > 0 {
			t.Errorf("%s: asked %q", capabilities, asked)
		}
	}
}

func TestAskFlatLoggedOnce(t *testing.T) {
	d := newDesk()
	a := elicit.NewAsker(d, able, nil)
	for i, level := range []any{info, debug, debug} {
		d.answer("?", `{"decision":"approved"}`)
		if out := a.Ask(t.Context(), &elicit.Question{Message: "?"}); out.Decision != approved || any(out.Level) != level {
			t.Errorf("answer %d: %+v", i, out)
		}
	}
	d.answer("?", `{"decision":"approved","content":{"decision":"denied"}}`)
	if out := a.Ask(t.Context(), &elicit.Question{Message: "?"}); out.Level != warn {
		t.Errorf("contradiction: %+v", out)
	}
}

func TestAskTimeout(t *testing.T) {
	for _, tt := range []struct{ timeout, want time.Duration }{
		{0, 10 * time.Minute},
		{90 * time.Second, 90 * time.Second},
		{-1, 1000 * time.Hour}, // when it is answered
	} {
		synctest.Test(t, func(t *testing.T) {
			d := newDesk()
			start := time.Now()
			time.AfterFunc(1000*time.Hour, func() { d.answer("?", `{"action":"accept"}`) })
			out := elicit.NewAsker(d, able, &elicit.Options{Timeout: tt.timeout}).Ask(t.Context(), &elicit.Question{Message: "?"})
			answered := tt.timeout < 0
			if took := time.Since(start); answered != (out.Decision == approved) || answered != (out.Reason != "timeout") || !answered && out.Decision != denied || took != tt.want {
				t.Errorf("after %v: %+v", took, out)
			}
			if _, revoked := d.seen(); !answered && !slices.Equal(revoked, []string{"?"}) {
				t.Errorf("revoked %q", revoked)
			}
		})
	}
}

func TestAskInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk()
		a := elicit.NewAsker(d, able, &elicit.Options{OnTimeout: "deny"})
		ctx, cancel := context.WithCancel(t.Context())
		out := ask(ctx, a, "?")
		other := ask(t.Context(), a, "other")
		synctest.Wait()
		cancel()
		if got := <-out; got.Decision != abort || got.Reason != "interrupted" {
			t.Errorf("%+v", got)
		}
		synctest.Wait()
		if _, revoked := d.seen(); !slices.Equal(revoked, []string{"?"}) {
			t.Errorf("revoked %q", revoked)
		}
		// A turn that has ended asks no further questions.
		if got := a.Ask(ctx, &elicit.Question{Message: "late"}); got.Decision != abort {
			t.Errorf("%+v", got)
		}
		if asked, _ := d.seen(); slices.Contains(asked, "late") {
			t.Errorf("asked %q", asked)
		}
		// The other question is not affected.
		d.answer("other", `{"action":"accept"}`)
		if got := <-other; got.Decision != approved {
			t.Errorf("%+v", got)
		}
	})
}

// An approval does not count if the turn ended before it was read. A deadline of the turn does not count as the question's
// own. After that of the question, the time-out is the reason whatever a caller returns.
func TestAskTurnEndBeatsAnswer(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	racing := elicit.CallFunc(func(context.Context, json.RawMessage) (json.RawMessage, error) {
		cancel()
		return json.RawMessage(`{"action":"accept"}`), nil
	})
	if out := elicit.NewAsker(racing, able, nil).Ask(ctx, &elicit.Question{Message: "?"}); out.Decision != abort || out.Reason != "interrupted" {
		t.Errorf("%+v", out)
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if out := elicit.NewAsker(newDesk(), able, nil).Ask(ctx, &elicit.Question{Message: "?"}); out.Decision != abort || out.Reason != "interrupted" {
			t.Errorf("%+v", out)
		}
		odd := elicit.CallFunc(func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
			<-ctx.Done()
			return nil, errors.New("odd")
		})
		if out := elicit.NewAsker(odd, able, &elicit.Options{Timeout: time.Second}).Ask(t.Context(), &elicit.Question{Message: "?"}); out.Reason != "timeout" {
			t.Errorf("%+v", out)
		}
	})
}

func TestAskQueue(t *testing.T) {
	for _, tt := range []struct{ max, open int }{{2, 2}, {0, 32}, {-1, 40}} {
		synctest.Test(t, func(t *testing.T) {
			d := newDesk()
			a := elicit.NewAsker(d, able, &elicit.Options{MaxPending: tt.max})
			names := make([]string, 40)
			outs := make([]<-chan elicit.Outcome, len(names))
			ctxs, cancels := make([]context.Context, len(names)), make([]context.CancelFunc, len(names))
			for i := range names {
				names[i] = fmt.Sprint("q", i)
				ctxs[i], cancels[i] = context.WithCancel(t.Context())
				defer cancels[i]()
				outs[i] = ask(ctxs[i], a, names[i])
				synctest.Wait()
			}
			if asked, _ := d.seen(); len(asked) != tt.open {
				t.Fatalf("max %d: %d open", tt.max, len(asked))
			}
			// The turn of a waiting question may end before it is asked.
			gone := -1
			if tt.open < len(names) {
				gone = tt.open
				cancels[gone]()
				if out := <-outs[gone]; out.Decision != abort || out.Reason != "interrupted" {
					t.Errorf("waiting: %+v", out)
				}
			}
			for i := range names {
				if i == gone {
					continue
				}
				d.answer(names[i], `{"action":"accept"}`)
				if out := <-outs[i]; out.Decision != approved {
					t.Errorf("%s: %+v", names[i], out)
				}
				synctest.Wait()
			}
			asked, _ := d.seen()
			want := slices.Clone(names)
			if gone >= 0 {
				want = slices.Delete(want, gone, gone+1)
			}
			if diff := cmp.Diff(want, asked); diff != "" {
				t.Errorf("max %d: order (-want +got):\n%s", tt.max, diff)
			}
		})
	}
}

func TestCallFunc(t *testing.T) {
	f := elicit.CallFunc(func(_ context.Context, params json.RawMessage) (json.RawMessage, error) { return params, nil })
	var raw json.RawMessage
	if err := f.Call(t.Context(), "elicitation/create", json.RawMessage(`{}`), &raw); err != nil || string(raw) != `{}` {
		t.Errorf("%s, %v", raw, err)
	}
	if err := f.Call(t.Context(), "elicitation/create", json.RawMessage(`{}`), new(string)); err == nil {
		t.Error("a result that is not raw was taken")
	}
}

// TestQuestionThatCannotBeSent checks that a question that has no JSON is not asked: its answer would be about nothing.
func TestQuestionThatCannotBeSent(t *testing.T) {
	q := &elicit.Question{Message: "?", Extra: map[string]any{"codex_command": func() {}}}
	asked := false
	asker := elicit.NewAsker(elicit.CallFunc(func(context.Context, json.RawMessage) (json.RawMessage, error) {
		asked = true
		return json.RawMessage(`{"action":"accept"}`), nil
	}), able, nil)
	if out := asker.Ask(t.Context(), q); out.Decision != denied || out.Reason != "client_error" || asked {
		t.Errorf("%s %s, asked %v", out.Decision, out.Reason, asked)
	}
	if raw, err := q.InputRequest(able, nil); err == nil {
		t.Errorf("input request %s", raw)
	}
}

// TestNilOptions checks the time for an answer without options, and the words of an outcome that another package made.
func TestNilOptions(t *testing.T) {
	ctx, cancel := (*elicit.Options)(nil).WithTimeout(t.Context())
	defer cancel()
	if end, ok := ctx.Deadline(); !ok || time.Until(end) > elicit.DefaultTimeout {
		t.Errorf("ends at %v, %v", end, ok)
	}
	for want, out := range map[string]elicit.Outcome{
		"declined": {Decision: denied}, "declined: use make": {Decision: denied, Feedback: "use make"}, "": {Decision: approved, Feedback: "x"},
	} {
		if got := out.ForModel(); got != want {
			t.Errorf("%+v: %q, want %q", out, got, want)
		}
	}
}

// A line is one message as the client gets it.
type line struct {
	ID     json.RawMessage
	Method string
	Params json.RawMessage
}

// connect runs a peer over a pipe within a synctest bubble and returns an Asker on it with the client's end.
func connect(t *testing.T, o *elicit.Options) (*elicit.Asker, jsonrpc.Transport) {
	ours, client := jsonrpc.Pipe()
	peer := jsonrpc.NewPeer(ours, nil, &jsonrpc.Options{Cancellation: jsonrpc.MCPCancel})
	var wg sync.WaitGroup
	wg.Go(func() {
		_ = peer.Run(context.Background()) // the error of the client's hanging up does not matter here
	})
	t.Cleanup(func() {
		_ = client.Close()
		wg.Wait()
	})
	return elicit.NewAsker(peer, able, o), client
}

func receive(t *testing.T, client jsonrpc.Transport) line {
	t.Helper()
	raw := must.Get(client.Read(t.Context()))(t)
	var l line
	must.OK(t, json.Unmarshal(raw, &l))
	return l
}

// answer writes an answer; members is what follows the id.
func answer(t *testing.T, client jsonrpc.Transport, id, members string) {
	t.Helper()
	must.OK(t, client.Write(t.Context(), [][]byte{[]byte(`{"jsonrpc":"2.0","id":` + id + `,` + members + `}`)}))
}

// begin asks in the background and returns a channel for the outcome.
func begin(ctx context.Context, a *elicit.Asker, q *elicit.Question) <-chan elicit.Outcome {
	out := make(chan elicit.Outcome, 1)
	go func() { out <- a.Ask(ctx, q) }()
	return out
}

// Nothing that is not an answer to the question may approve it. An error says why, if it has a code.
func TestWire(t *testing.T) {
	const yes = `"result":{"action":"accept"}`
	const unshown = "the client could not show the approval request"
	for _, tt := range []struct {
		name, id, members string
		want              elicit.Decision
		model             string // "" for any words
	}{
		{"an approval", `0`, yes, approved, ""},
		{"a refusal", `0`, `"result":{"action":"decline","content":{"feedback":"use make"}}`, denied, "declined: use make"},
		{"a result that is none", `0`, `"result":[]`, denied, "the approval answer was not understood"},
		{"the id as a string", `"0"`, yes, denied, ""},
		{"another id", `1`, yes, denied, ""},
		{"no id", `null`, yes, denied, ""},
		{"both a result and an error", `0`, yes + `,"error":{"code":1,"message":"x"}`, denied, ""},
		{"two results", `0`, yes + `,` + yes, denied, ""},
		{"two ids", `1,"id":0`, yes, denied, ""},
		{"a request of theirs", `0`, `"method":"elicitation/create",` + yes, denied, ""},
		{"no such method", `0`, `"error":{"code":-32601,"message":"Method not found"}`, denied, unshown + " (-32601)"},
		{"no handler", `0`, `"error":{"code":-32602,"message":"no handler"}`, denied, unshown + " (-32602)"},
		{"code 0", `0`, `"error":{"code":0,"message":"thrown"}`, denied, unshown},
		{"no code", `0`, `"error":{"message":"no code"}`, denied, unshown},
		{"an error of text", `0`, `"error":"Method not found"`, denied, unshown},
	} {
		synctest.Test(t, func(t *testing.T) {
			a, client := connect(t, nil)
			out := begin(t.Context(), a, &elicit.Question{Message: "Sure?"})
			asked := receive(t, client)
			if asked.Method != "elicitation/create" || !strings.Contains(string(asked.Params), `"message":"Sure?"`) {
				t.Errorf("asked %s %s", asked.Method, asked.Params)
			}
			answer(t, client, tt.id, tt.members)
			got := <-out
			if got.Decision != tt.want || tt.model != "" && got.ForModel() != tt.model || strings.HasPrefix(tt.model, unshown) && got.ForCaller() == "" {
				t.Errorf("%s: %+v", tt.name, got)
			}
		})
	}
}

// A question that times out is cancelled, and a late answer to it is ignored.
func TestWireTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, client := connect(t, &elicit.Options{Timeout: 2 * time.Second})
		out := begin(t.Context(), a, new(elicit.Question))
		asked := receive(t, client)
		if got := <-out; got.Decision != denied || got.ForModel() != "no answer within 2 s" {
			t.Errorf("%+v", got)
		}
		told := receive(t, client)
		var params struct{ RequestID json.RawMessage }
		if err := json.Unmarshal(told.Params, &params); err != nil || told.Method != "notifications/cancelled" || string(params.RequestID) != string(asked.ID) {
			t.Errorf("%s %s for the question %s", told.Method, told.Params, asked.ID)
		}
		out = begin(t.Context(), a, new(elicit.Question))
		next := receive(t, client)
		answer(t, client, string(asked.ID), `"result":{"action":"accept"}`)
		synctest.Wait()
		answer(t, client, string(next.ID), `"result":{"action":"decline"}`)
		if got := <-out; got.Decision != denied || got.Reason != "declined" {
			t.Errorf("%+v", got)
		}
	})
}

func TestWireClientGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, client := connect(t, nil)
		out := begin(t.Context(), a, new(elicit.Question))
		receive(t, client)
		must.OK(t, client.Close())
		for _, got := range []elicit.Outcome{<-out, a.Ask(t.Context(), new(elicit.Question))} {
			if got.Decision != abort || got.Reason != "peer_gone" {
				t.Errorf("%+v", got)
			}
		}
	})
}

// TestForward passes a question of another party on: how it ends, and that it takes the place of a
// question only as long as it is open.
func TestForward(t *testing.T) {
	q := &elicit.Question{Message: "Name?", Schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"string"}}}`)}
	broken := errors.New("broken")
	for name, tt := range map[string]struct {
		client elicit.Client
		answer func(context.Context) (string, error)
		want   string
		err    error
	}{
		"an answer":       {able, func(context.Context) (string, error) { return `{"action":"accept","content":{"n":"ann"}}`, nil }, `{"action":"accept","content":{"n":"ann"}}`, nil},
		"no form":         {able, func(context.Context) (string, error) { return `[]`, nil }, `[]`, nil},
		"an error":        {able, func(context.Context) (string, error) { return "", broken }, "", broken},
		"silence":         {able, func(ctx context.Context) (string, error) { <-ctx.Done(); return "", ctx.Err() }, "", context.DeadlineExceeded},
		"no capabilities": {elicit.Client{}, func(context.Context) (string, error) { t.Error("asked"); return "", nil }, "", elicit.ErrUnsupported},
	} {
		synctest.Test(t, func(t *testing.T) {
			a := elicit.NewAsker(elicit.CallFunc(func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
				text, err := tt.answer(ctx)
				return json.RawMessage(text), err
			}), tt.client, &elicit.Options{MaxPending: 1})
			start := time.Now()
			for range 2 { // the second one gets the place of the first
				got, err := a.Forward(t.Context(), q)
				if string(got) != tt.want || !errors.Is(err, tt.err) || (err == nil) != (tt.err == nil) {
					t.Errorf("%s: %s, %v", name, got, err)
				}
			}
			if took := time.Since(start); name == "silence" && took != 20*time.Minute || name != "silence" && took != 0 {
				t.Errorf("%s: after %v", name, took)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) { // a question waits for the one before it, until it is no longer asked
		release := make(chan struct{})
		a := elicit.NewAsker(elicit.CallFunc(func(context.Context, json.RawMessage) (json.RawMessage, error) {
			<-release
			return json.RawMessage(`{"action":"cancel"}`), nil
		}), able, &elicit.Options{MaxPending: 1})
		first := make(chan string)
		go func() {
			got, err := a.Forward(context.Background(), q)
			first <- fmt.Sprint(string(got), err)
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if got, err := a.Forward(ctx, q); got != nil || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the second question: %s, %v", got, err)
		}
		close(release)
		if got := <-first; got != `{"action":"cancel"}<nil>` {
			t.Error(got)
		}
	})
}
