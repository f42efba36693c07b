package jsonrpc

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
)

// slowWire is a transport that writes only when the test lets it.
type slowWire struct {
	Transport
	t      *testing.T
	let    chan error // what the next Write returns
	room   bool       // whether prompt writes
	fails  error      // of prompt
	during func()     // called by prompt, if it is set
	within atomic.Bool
	writes int
	got    []string
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
func (w *slowWire) more() bool    { return false }

func (w *slowWire) prompt(m []byte) (bool, error) {
	if w.within.Swap(true) {
		w.t.Error("two goroutines write at once")
	}
	defer w.within.Store(false)
	if w.during != nil {
		w.during()
	}
	if w.room {
		w.got = append(w.got, string(m))
	}
	return w.room, w.fails
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

// TestEgressChunks queues more than one Write takes: all messages leave in order, by one writer, and short
// ones together.
func TestEgressChunks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wire := &slowWire{t: t, let: make(chan error)}
		e := newEgress(wire, 1<<20)
		e.start()
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
				if err := e.send(t.Context(), buffered("a"), refusable, ifPrompt); err != nil {
					t.Error(err)
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
			})
		})
	}
}

func sendsB(e *egress) { _ = e.send(context.Background(), buffered("b"), refusable, ifPrompt) }
