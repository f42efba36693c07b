package jsonrpc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"

	"github.com/codexmcp/codexmcp/mcptypes"
	"github.com/google/go-cmp/cmp"
)

// Stats is what tests see of a peer: what waits and runs, and how many messages were handed to the transport.
type Stats struct {
	Pending, Running, Waiting int
	Sent                      uint64
}

// Stats returns the figures of now.
func (p *Peer) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.out.mu.Lock()
	defer p.out.mu.Unlock()
	return Stats{len(p.calls.pending), p.in.running, p.in.queue.len() + p.in.waiting.len(), p.out.amount.sent}
}

// TestIntern checks that the name of the last method is kept, but not a long one that the other side invents.
func TestIntern(t *testing.T) {
	x, _ := Pipe()
	p := NewPeer(x, nil, nil)
	short, long := strings.Repeat("x", maxMethod), strings.Repeat("y", maxMethod+1)
	for _, name := range []string{"ping", short, long, short, long} {
		must.Equal(t, "the method", name, p.intern([]byte(name)))
	}
	must.Equal(t, "what is kept", short, p.method)
}

// TestNotificationContext checks that the context of a notification makes no child of the peer's, which would hold it until
// the end.
func TestNotificationContext(t *testing.T) {
	x, _ := Pipe()
	p := NewPeer(x, nil, nil)
	p.ctx.base = t.Context()
	must.Equal(t, "it is the peer's", t.Context().Done(), (*requestContext)(&Request{peer: p}).Done())
}

// TestPipePrompts checks that a full pipe does not block who only tries.
func TestPipePrompts(t *testing.T) {
	x, _ := Pipe()
	for i := range pipeDepth + 1 {
		if sent, err := x.(*pipe).prompt([][]byte{[]byte("x")}); (sent == 1) != (i < pipeDepth) || err != nil {
			t.Errorf("message %d: %d, %v", i, sent, err)
		}
	}
}

// TestPending checks that a call fails if too many wait for an answer.
func TestPending(t *testing.T) {
	x, _ := Pipe()
	p := NewPeer(x, nil, nil)
	for i := range maxPending {
		p.calls.pending[int64(i)] = nil
	}
	if err := p.Start(t.Context(), "x", nil).Result(nil); !errors.Is(err, ErrFull) {
		t.Errorf("got %v", err)
	}
}

// picky fails to decode, with an error that has a JSON pointer.
type picky struct{}

type pickyError struct{}

func (pickyError) Error() string       { return "picky: /b/0: not this one" }
func (pickyError) JSONPointer() string { return "/b/0" }

func (*picky) UnmarshalJSON([]byte) error { return pickyError{} }

func TestBindJoinsPaths(t *testing.T) {
	for _, tt := range []struct {
		into any
		path string
	}{
		{&picky{}, "/b/0"},
		{&struct {
			A picky `json:"a"`
		}{}, "/a/b/0"},
	} {
		err := (&Request{Params: []byte(`{"a":1}`)}).Bind(tt.into)
		var e *Error
		if !errors.As(err, &e) || e.Code != CodeInvalidParams {
			t.Fatalf("%T: %v", tt.into, err)
		}
		if want := `{"path":"` + tt.path + `"}`; string(e.Data) != want || e.Message != "invalid params at "+tt.path+": not this one" {
			t.Errorf("%T: %s, data %s", tt.into, e.Message, e.Data)
		}
	}
}

// TestEncode compares the bytes of whole messages. None has a line feed, and all are JSON.
func TestEncode(t *testing.T) {
	x, _ := Pipe()
	p := NewPeer(x, nil, nil)
	one, err := mcptypes.ParseRequestID([]byte("1"))
	must.OK(t, err)
	raw := json.RawMessage("[1,\n2]")
	var none *json.RawMessage
	call := func(method string, params any) func() (string, error) {
		return func() (string, error) {
			b := getBuffer()
			err := p.writeCall(b, one, method, params)
			return b.String(), err
		}
	}
	result := func(v any) func() (string, error) {
		return func() (string, error) {
			b := getBuffer()
			err := p.writeResult(b, one, v)
			return b.String(), err
		}
	}
	fault := func(id ID, e *Error) func() (string, error) {
		return func() (string, error) {
			b := getBuffer()
			p.writeError(b, id, e)
			return b.String(), nil
		}
	}
	for name, tt := range map[string]struct {
		write func() (string, error)
		want  string // without the version; "" for an error
	}{
		"plain": {call("a ~!#[]", nil), `"id":1,"method":"a ~!#[]"}`}, "empty": {call("", nil), `"id":1,"method":""}`},
		"quote": {call(`a"`, nil), `"id":1,"method":"a\""}`}, "backslash": {call(`a\`, nil), `"id":1,"method":"a\\"}`},
		"control": {call("a\x1f", nil), `"id":1,"method":"a\u001f"}`}, "line feed": {call("a\n", nil), `"id":1,"method":"a\n"}`},
		"not UTF-8":       {call("a\xff", nil), `"id":1,"method":"a` + "\ufffd" + `"}`},
		"beyond ASCII":    {call("é", nil), `"id":1,"method":"é"}`},
		"params":          {call("a", struct{}{}), `"id":1,"method":"a","params":{}}`},
		"list":            {call("a", []int{1}), `"id":1,"method":"a","params":[1]}`},
		"raw":             {call("a", json.RawMessage(" \t\r{} ")), `"id":1,"method":"a","params":{} }`},
		"raw, line feed":  {call("a", raw), `"id":1,"method":"a","params":[1,2]}`},
		"raw, feed first": {call("a", json.RawMessage("\n[1]")), `"id":1,"method":"a","params":[1]}`},
		"raw by pointer":  {call("a", &raw), `"id":1,"method":"a","params":[1,2]}`},
		"null":            {call("a", json.RawMessage("null")), `"id":1,"method":"a"}`},
		"nil pointer":     {call("a", none), `"id":1,"method":"a"}`},
		"nil map":         {call("a", map[string]int(nil)), `"id":1,"method":"a","params":{}}`},
		"a string":        {call("a", "x"), ""}, "a number": {call("a", 1), ""}, "raw, unclosed": {call("a", json.RawMessage("{")), ""},
		"raw, two values": {call("a", json.RawMessage("{},{}")), ""}, "raw, closes more": {call("a", json.RawMessage("{}}")), ""},
		"result": {result([]int{1}), `"id":1,"result":[1]}`}, "result, nil": {result(nil), `"id":1,"result":null}`},
		"result, raw":      {result(raw), `"id":1,"result":[1,2]}`},
		"result, no raw":   {result(json.RawMessage{}), `"id":1,"result":null}`},
		"result, nonsense": {result(json.RawMessage("x")), ""},
		"error":            {fault(one, &Error{Code: 5, Message: "no\n"}), `"id":1,"error":{"code":5,"message":"no\n"}}`},
		"error, data":      {fault(ID{}, &Error{Code: 5, Message: "no", Data: raw}), `"id":null,"error":{"code":5,"message":"no","data":[1,2]}}`},
		"error, digit":     {fault(one, &Error{Code: 5, Message: "no", Data: json.RawMessage("7")}), `"id":1,"error":{"code":5,"message":"no","data":7}}`},
		"error, nonsense":  {fault(one, &Error{Code: 5, Message: "no", Data: json.RawMessage("}")}), `"id":1,"error":{"code":5,"message":"no"}}`},
		"error, code only": {fault(one, &Error{Code: CodeParseError}), `"id":1,"error":{"code":-32700,"message":"parse error"}}`},
	} {
		got, err := tt.write()
		if tt.want == "" {
			if err == nil {
				t.Errorf("%s: written %s", name, got)
			}
			continue
		}
		if diff := cmp.Diff(`{"jsonrpc":"2.0",`+tt.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
		if !json.Valid([]byte(got)) || strings.Contains(got, "\n") {
			t.Errorf("%s: %q is no line of JSON", name, got)
		}
	}
	deep := json.RawMessage(strings.Repeat("[", 10001) + strings.Repeat("]", 10001))
	if _, err := call("a", deep)(); !errors.Is(err, errRaw) {
		t.Errorf("raw params that are too deep: %v", err)
	}
}

// slowWire is a transport that writes only when the test lets it.
type slowWire struct {
	Transport
	t      *testing.T
	let    chan error // what the next Write returns
	fits   int        // how many messages prompt writes at once; 0 for all
	room   bool       // whether prompt writes
	fails  error      // of prompt
	during func()     // called by prompt, if it is set
	next   bool       // what more reports
	waits  func()     // what Read would call
	within atomic.Bool
	got    []string

	writes, prompted int
}

func (w *slowWire) Write(_ context.Context, messages [][]byte) error {
	if w.within.Swap(true) {
		w.t.Error("two goroutines write at once")
	}
	err := <-w.let
	w.writes++
	for _, m := range messages {
		w.got = append(w.got, string(m))
	}
	w.within.Store(false)
	return err
}

func (w *slowWire) prompts() bool { return true }
func (w *slowWire) more() bool    { return w.next }

func (w *slowWire) beforeWait(f func()) { w.waits = f }

func (w *slowWire) prompt(messages [][]byte) (int, error) {
	if w.within.Swap(true) {
		w.t.Error("two goroutines write at once")
	}
	defer w.within.Store(false)
	if w.during != nil {
		w.during()
	}
	if w.room {
		w.prompted++
		if w.fits > 0 && w.fits < len(messages) {
			messages = messages[:w.fits]
		}
		for _, m := range messages {
			w.got = append(w.got, string(m))
		}
		return len(messages), w.fails
	}
	return 0, w.fails
}

func buffered(s string) *bytes.Buffer {
	b := getBuffer()
	b.WriteString(s)
	return b
}

// TestEgressOrder checks that messages leave in their order, one Write at a time, whoever writes, and
// that only a handler's goroutine ever waits for one.
func TestEgressOrder(t *testing.T) {
	all := []writer{byWriter, bySender, ifPrompt}
	for _, room := range []bool{false, true} {
		for _, first := range all {
			for _, second := range all {
				synctest.Test(t, func(t *testing.T) {
					wire := &slowWire{t: t, let: make(chan error), room: room}
					e := newEgress(wire, 1000)
					e.start()
					defer e.close(ErrClosed)
					var waiting atomic.Int32
					send := func(m string, w writer) {
						waiting.Add(1)
						go func() {
							if err := e.send(t.Context(), buffered(m), refusable, w); err != nil {
								t.Error(err)
							}
							waiting.Add(-1)
						}()
						synctest.Wait()
					}
					send("a", first)
					if waits := first == bySender; waiting.Load() > 0 != waits {
						t.Errorf("%v, room %t: the sender waits: %t", first, room, !waits)
					}
					at := waiting.Load()
					written := len(wire.got)
					send("b", second)
					if written == 0 && waiting.Load() != at {
						t.Errorf("%v after %v, room %t: the second sender waits", second, first, room)
					}
					close(wire.let)
					synctest.Wait()
					if diff := cmp.Diff([]string{"a", "b"}, wire.got); diff != "" {
						t.Errorf("%v after %v, room %t (-want +got):\n%s", second, first, room, diff)
					}
					if err := e.flush(t.Context()); err != nil || e.amount.bytes != 0 || e.amount.messages != 0 {
						t.Errorf("%d bytes and %d messages are left: %v", e.amount.bytes, e.amount.messages, err)
					}
				})
			}
		}
	}
}

// TestEgressOverdue has a writer that gets no time for long. A sender writes in its place what the transport takes, and not
// before the start. When the writer comes while a sender writes, all messages leave in order all the same.
func TestEgressOverdue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wire := &slowWire{t: t, let: make(chan error), room: true, fits: 8}
		close(wire.let)
		e := newEgress(wire, 1<<20)
		defer e.close(ErrClosed)
		var want []string
		send := func() {
			m := strings.Repeat(string(rune('a'+len(want)%26)), 500)
			want = append(want, m)
			must.OK(t, e.send(t.Context(), buffered(m), refusable, byWriter))
		}
		for range 20 {
			send()
		}
		must.Equal(t, "what is written before the start", 0, len(wire.got))
		e.started, e.drains = true, true
		e.start()
		for range 80 {
			send()
		}
		if n := len(want) - len(wire.got); wire.writes > 0 || n > 30 {
			t.Errorf("%d writes, %d messages wait", wire.writes, n)
		}
		wire.during = func() {
			wire.during = nil
			send()
			e.writers.Go(e.drain)
			synctest.Wait()
		}
		for range 80 {
			send()
		}
		must.OK(t, e.flush(t.Context()))
		must.Equal(t, "what was written", want, wire.got)
	})
}

// TestEgressChunks queues more than one Write takes: all messages leave in order, by one writer, and short ones together.
func TestEgressChunks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wire := &slowWire{t: t, let: make(chan error)}
		e := newEgress(wire, 1<<20)
		e.start()
		defer e.close(ErrClosed)
		var want []string
		e.mu.Lock() // all are queued before a writer begins
		for i := range 100 {
			m := strings.Repeat(string(rune('a'+i%26)), 1000)
			if i%25 == 24 {
				m = strings.Repeat(m, 40)
			}
			want = append(want, m)
			e.amount.bytes += len(m)
			e.amount.messages++
			e.append(buffered(m))
			e.signal()
		}
		e.mu.Unlock()
		synctest.Wait()
		close(wire.let)
		if err := e.flush(t.Context()); err != nil || e.amount.bytes != 0 {
			t.Errorf("%d bytes are left: %v", e.amount.bytes, err)
		}
		if diff := cmp.Diff(want, wire.got); diff != "" || wire.writes != 8 {
			t.Errorf("%d writes (-want +got):\n%.1000s", wire.writes, diff)
		}
	})
}

// TestEgressGathers has the reader answer three requests. If more has arrived meanwhile, the answers leave together when it
// waits, when they are long, or when another goroutine sends or waits for them.
func TestEgressGathers(t *testing.T) {
	wait := func(_ *testing.T, _ *Peer, w *slowWire) { w.waits() }
	for name, tt := range map[string]struct {
		more, cannot    bool
		padding         int
		then            func(*testing.T, *Peer, *slowWire)
		prompts, writes int
	}{
		"nothing more has arrived": {prompts: 3},
		"the reader waits":         {more: true, then: wait, prompts: 1},
		"there is no room":         {more: true, cannot: true, then: wait, writes: 1},
		"they are long":            {more: true, padding: gatherBytes / 2, then: wait, prompts: 2},
		"another one sends": {more: true, then: func(t *testing.T, p *Peer, _ *slowWire) {
			must.OK(t, p.Notify(t.Context(), "note", nil))
		}, writes: 1},
		"a handler answers": {more: true, then: func(t *testing.T, p *Peer, _ *slowWire) {
			must.OK(t, p.send(t.Context(), buffered("{}"), answer, bySender))
		}, writes: 1},
		"another one waits": {more: true, then: func(t *testing.T, p *Peer, _ *slowWire) {
			must.OK(t, p.Flush(t.Context()))
		}, writes: 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			wire := &slowWire{t: t, let: make(chan error), room: !tt.cannot, next: tt.more}
			close(wire.let)
			h := HandlerFunc(func(context.Context, *Request) (any, error) { return strings.Repeat("x", tt.padding), nil })
			p := NewPeer(wire, h, &Options{Inline: func(*Request) bool { return true }})
			p.out.start()
			defer p.out.close(ErrClosed)
			for range 3 {
				p.receive([]byte(`{"jsonrpc":"2.0","id":1,"method":"none"}`))
				synctest.Wait()
			}
			if tt.then != nil {
				tt.then(t, p, wire)
				synctest.Wait()
			}
			if len(wire.got) < 3 || wire.prompted != tt.prompts || wire.writes != tt.writes || p.out.queue.len() > 0 {
				t.Errorf("%s: %d answers, %d prompts, %d writes", name, len(wire.got), wire.prompted, wire.writes)
			}
		})
	}
}

// TestEgressLimits has a wire that takes nothing. A message of any length is queued if it is alone; then the
// limit holds, and what the read loop sends may take as much again before the connection ends.
func TestEgressLimits(t *testing.T) {
	type message struct {
		bytes int
		class class
	}
	const waits = "waits"
	for name, tt := range map[string]struct {
		queued []message
		last   message
		want   string // of the last; "" if it is queued
	}{
		"a long notification alone":     {nil, message{500, refusable}, ""},
		"a long answer alone":           {nil, message{500, answer}, ""},
		"to the limit":                  {[]message{{40, refusable}}, message{60, refusable}, ""},
		"a notification over the limit": {[]message{{40, refusable}}, message{61, refusable}, ErrFull.Error()},
		"an answer over the limit":      {[]message{{40, refusable}}, message{61, answer}, waits},
		"the reader over the limit":     {[]message{{40, refusable}}, message{160, regardless}, ""},
		"the reader over it twice":      {[]message{{40, refusable}}, message{161, regardless}, "jsonrpc: connection closed: " + ErrFull.Error()},
		"behind a long one":             {[]message{{500, answer}}, message{1, refusable}, ErrFull.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				wire := &slowWire{t: t, let: make(chan error)}
				e := newEgress(wire, 100)
				var broken []error
				e.broken = func(err error) { broken = append(broken, err) }
				e.start()
				send := func(m message) string {
					result := make(chan error, 1)
					go func() { result <- e.send(t.Context(), buffered(strings.Repeat("x", m.bytes)), m.class, byWriter) }()
					synctest.Wait()
					select {
					case err := <-result:
						if err != nil {
							return err.Error()
						}
						return ""
					default:
						return waits
					}
				}
				bytes := 0
				for _, m := range tt.queued {
					if got := send(m); got != "" {
						t.Fatal(got)
					}
					bytes += m.bytes
				}
				if got := send(tt.last); got != tt.want {
					t.Errorf("got %q, want %q", got, tt.want)
				}
				if tt.want == "" {
					bytes += tt.last.bytes
				}
				if e.amount.bytes != bytes {
					t.Errorf("%d bytes are queued, want %d", e.amount.bytes, bytes)
				}
				ends := strings.HasPrefix(tt.want, ErrClosed.Error())
				if ends != slices.ContainsFunc(broken, func(err error) bool { return errors.Is(err, ErrFull) }) {
					t.Errorf("the connection ends with %v", broken)
				}
				e.close(ErrClosed)
				close(wire.let)
			})
		})
	}
}

// TestEgressPrompt checks what becomes of a message that its sender writes if that does not block,
// when others send meanwhile, the connection is closed or the write fails.
func TestEgressPrompt(t *testing.T) {
	failed := errors.New("broken cable")
	for name, tt := range map[string]struct {
		room   bool
		fails  error
		during func(*egress)
		want   []string // written
		broken []error
		err    error // of flush
	}{
		"others write":   {room: true, during: sendsB, want: []string{"a", "b"}},
		"others queue":   {during: sendsB, want: []string{"b", "a"}},
		"closed":         {during: func(e *egress) { e.close(ErrClosed) }, err: ErrClosed},
		"fails":          {fails: failed, broken: []error{failed}, err: failed},
		"closed, fails":  {fails: failed, during: func(e *egress) { e.close(ErrClosed) }, err: ErrClosed},
		"others, fails":  {fails: failed, during: sendsB, broken: []error{failed}, err: failed},
		"closed, writes": {room: true, during: func(e *egress) { e.close(ErrClosed) }, want: []string{"a"}, err: ErrClosed},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				wire := &slowWire{t: t, let: make(chan error), room: tt.room, fails: tt.fails}
				e := newEgress(wire, 1000)
				var broken []error
				e.broken = func(err error) { broken = append(broken, errors.Unwrap(err)) }
				e.start()
				wire.during = func() { wire.during = nil; tt.during(e) }
				if tt.during == nil {
					wire.during = nil
				}
				lost := tt.err != nil && !slices.Contains(tt.want, "a")
				if err := e.send(t.Context(), buffered("a"), refusable, ifPrompt); errors.Is(err, ErrClosed) != lost {
					t.Errorf("send: %v, want ErrClosed: %t", err, lost)
				}
				close(wire.let)
				synctest.Wait()
				if diff := cmp.Diff(tt.want, wire.got); diff != "" {
					t.Errorf("written (-want +got):\n%s", diff)
				}
				if !slices.Equal(tt.broken, broken) {
					t.Errorf("the connection ends with %v, want %v", broken, tt.broken)
				}
				if err := e.flush(t.Context()); !errors.Is(err, tt.err) || (err == nil) != (tt.err == nil) {
					t.Errorf("flush: %v", err)
				}
				if err := e.send(t.Context(), buffered("c"), refusable, byWriter); tt.err != nil && !errors.Is(err, ErrClosed) {
					t.Errorf("a message after the end: %v", err)
				}
				e.mu.Lock()
				defer e.mu.Unlock()
				if n := e.queue.len(); tt.err != nil && n > 0 {
					t.Errorf("%d chunks wait after the end", n)
				}
				e.fail(ErrClosed)
			})
		})
	}
}

func sendsB(e *egress) { _ = e.send(context.Background(), buffered("b"), refusable, ifPrompt) }

// TestPump checks that the reader of a terminal passes on every byte and the error, and that Close ends a Read.
func TestPump(t *testing.T) {
	failed := errors.New("hung up")
	for name, r := range map[string]io.Reader{
		"at once":         strings.NewReader("a\nlong line\n"),
		"byte by byte":    iotest.OneByteReader(strings.NewReader("a\nlong line\n")),
		"with its end":    iotest.DataErrReader(strings.NewReader("a\nlong line\n")),
		"small and large": io.MultiReader(strings.NewReader("a\n"), strings.NewReader("long line\n")),
	} {
		for _, end := range []error{nil, failed} {
			if end != nil {
				r = io.MultiReader(strings.NewReader("a\nlong line\n"), iotest.ErrReader(end))
			}
			got, err := io.ReadAll(iotest.HalfReader(newPump(r)))
			if string(got) != "a\nlong line\n" || !errors.Is(err, end) {
				t.Errorf("%s, end %v: %q, %v", name, end, got, err)
			}
		}
	}
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		s := newPump(r)
		taken := make(chan error, 1)
		go func() {
			_, err := w.Write([]byte("a"))
			taken <- err
		}()
		if synctest.Wait(); len(taken) > 0 {
			t.Error("it reads before it is asked")
		}
		must.Get(s.Read(make([]byte, 1)))(t)
		must.OK(t, <-taken)
		read := make(chan error, 1)
		go func() {
			_, err := s.Read(make([]byte, 1))
			read <- err
		}()
		synctest.Wait()
		must.OK(t, s.Close())
		if err := <-read; !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("a Read during Close: %v", err)
		}
		if _, err := w.Write([]byte("late")); err != nil { // what it reads now, it drops, and ends
			t.Error(err)
		}
		synctest.Wait()
		go func() { _, _ = w.Write([]byte("more")) }()
		synctest.Wait()
		_ = r.Close()
	})
}
