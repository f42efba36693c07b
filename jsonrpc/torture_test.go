package jsonrpc_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/internal/nightly"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// TestTorture makes 40,000 calls in 20 connections, and at night 100,000 in 50. Handlers are slow, hang, panic, fail, end
// their goroutine and call back. Callers give up. The wire between the peers adds nonsense, and some connections are cut at
// random. Each connection lives in a bubble, which fails if a goroutine is left at its end.
func TestTorture(t *testing.T) {
	t.Parallel()
	const callers, each = 50, 40
	rounds := nightly.Number(20, 50)
	if testing.Short() {
		rounds = 6 // each wire with each limit
	}
	var returned atomic.Int64
	for round := range rounds {
		synctest.Test(t, func(t *testing.T) {
			w := newWire(uint64(round), round%3 == 0)
			o := &jsonrpc.Options{Cancellation: jsonrpc.MCPCancel, MaxConcurrent: []int{0, 4}[round%2]}
			tt := &torturer{cancelled: map[string]bool{}}
			a := jsonrpc.NewPeer(w.a, &torturer{cancelled: map[string]bool{}}, o)
			b := jsonrpc.NewPeer(w.b, tt, o)
			var ends sync.WaitGroup
			ends.Go(func() { _ = a.Run(context.Background()) }) // a cut connection is an error, an ended one is not
			ends.Go(func() { _ = b.Run(context.Background()) })
			var calls sync.WaitGroup
			for i := range callers {
				calls.Go(func() {
					rnd := rand.New(rand.NewPCG(uint64(round), uint64(i)))
					for range each {
						tt.call(t, a, rnd)
						returned.Add(1)
					}
				})
			}
			calls.Wait()
			_ = a.Close()
			ends.Wait()
			w.wait()
			for id := range w.answered {
				if tt.cancelled[id] && !w.doubled[id] && id != `"x"` { // the wire uses this id again and again
					t.Errorf("request %s was cancelled and answered", id)
				}
			}
			if s := a.Stats(); s.Pending != 0 {
				t.Errorf("%d calls still pending", s.Pending)
			}
		})
	}
	must.Equal(t, "calls returned", int64(rounds*callers*each), returned.Load())
}

// torturer is the handler of both ends and makes the calls.
type torturer struct {
	mu        sync.Mutex
	cancelled map[string]bool // ids whose handler saw the cancellation
}

var torments = []string{"echo", "slow", "stubborn", "hang", "panic", "fail", "back", "exit", "later", "unknown"}

func (tt *torturer) ServeRPC(ctx context.Context, r *jsonrpc.Request) (any, error) {
	defer func() {
		if errors.Is(context.Cause(ctx), jsonrpc.ErrCancelled) {
			tt.mu.Lock()
			tt.cancelled[r.ID.String()] = true
			tt.mu.Unlock()
		}
	}()
	switch r.Method {
	case "echo", "note":
		return r.Params, nil
	case "slow":
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(3 * time.Millisecond):
			return "slow", nil
		}
	case "stubborn":
		<-time.After(3 * time.Millisecond)
		return "stubborn", nil
	case "hang":
		<-ctx.Done()
		return "hung", nil
	case "panic":
		panic("tormented")
	case "exit":
		runtime.Goexit()
	case "fail":
		return nil, jsonrpc.Errorf(-1, "failed")
	case "back":
		if err := r.Peer().Notify(ctx, "note", r.Params); err != nil {
			return nil, err
		}
		return "back", r.Peer().Call(ctx, "echo", r.Params, nil)
	case "later":
		w := r.Responder()
		time.AfterFunc(2*time.Millisecond, func() { _ = w.Reply("later", nil) })
		return nil, nil
	}
	return nil, jsonrpc.CodeMethodNotFound
}

func (tt *torturer) call(t *testing.T, p *jsonrpc.Peer, rnd *rand.Rand) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(1+rnd.IntN(8))*time.Millisecond)
	defer cancel()
	method := torments[rnd.IntN(len(torments))]
	params := text{strings.Repeat("x", rnd.IntN(100))}
	if rnd.IntN(4) > 0 {
		check(t, method, p.Call(ctx, method, params, nil))
		return
	}
	c := p.Start(ctx, method, params)
	if rnd.IntN(2) == 0 {
		cancel()
	}
	check(t, method, c.Result(nil))
}

// check checks the result of a call, which the other calls and the wire may have disturbed.
func check(t *testing.T, method string, err error) {
	var e *jsonrpc.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled), errors.Is(err, jsonrpc.ErrClosed):
	case err == nil && strings.Contains("echo slow stubborn back later hang", method):
	case errors.As(err, &e) && strings.Contains("panic fail exit unknown back", method):
	case errors.As(err, &e) && strings.Contains(e.Message, inUse): // the wire had sent the request twice
	default:
		t.Errorf("%s: %v", method, err)
	}
}

// wire carries lines between two transports and adds some of its own.
type wire struct {
	a, b     jsonrpc.Transport
	closers  []io.Closer
	wg       sync.WaitGroup
	answered map[string]bool // ids in answers from b to a
	doubled  map[string]bool // ids in requests from a to b that were sent twice
}

func newWire(seed uint64, cut bool) *wire {
	w := &wire{answered: map[string]bool{}, doubled: map[string]bool{}}
	pipe := func() (*io.PipeReader, *io.PipeWriter) {
		r, x := io.Pipe()
		w.closers = append(w.closers, r, x)
		return r, x
	}
	ar, toA := pipe()
	fromA, aw := pipe()
	br, toB := pipe()
	fromB, bw := pipe()
	w.a, w.b = jsonrpc.Lines(ar, aw, both{ar, aw}), jsonrpc.Lines(br, bw, both{br, bw})
	w.wg.Go(func() { w.carry(fromA, toB, rand.New(rand.NewPCG(seed, 100)), cut, false) })
	w.wg.Go(func() { w.carry(fromB, toA, rand.New(rand.NewPCG(seed, 200)), cut, true) })
	return w
}

type both struct{ r, w io.Closer }

func (c both) Close() error { _, _ = c.r.Close(), c.w.Close(); return nil }

func (w *wire) wait() { w.wg.Wait() }

var nonsense = []string{
	"nonsense", "{}", "[1,2]", `{"jsonrpc":"2.0","id":999999,"result":{}}`, `{"jsonrpc":"2.0","id":"0","result":{}}`,
	`{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}`, `{"jsonrpc":"2.0","id":"x","method":"slow"}`,
	`{"jsonrpc":"2.0","id":"x","method":"slow"}`, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"x"}}`,
	`{"jsonrpc":"2.0","method":"panic"}`, `{"jsonrpc":"2.0","method":"exit"}`, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":77777}}`,
}

// inUse is in the refusal of a duplicate id.
const inUse = "already in use"

func (w *wire) carry(r *io.PipeReader, to *io.PipeWriter, rnd *rand.Rand, cut, answers bool) {
	defer func() {
		_ = r.Close()
		_ = to.Close()
	}()
	br := bufio.NewReader(r)
	for n := 0; ; n++ {
		line, err := br.ReadString('\n')
		if err != nil {
			return
		}
		_, id, hasID := strings.Cut(line, `"id":`)
		id, _, _ = strings.Cut(id, ",")
		isCall := strings.Contains(line, `"method"`)
		if answers && hasID && !isCall && !strings.Contains(line, inUse) {
			w.answered[id] = true
		}
		switch rnd.IntN(20) {
		case 0:
			line += nonsense[rnd.IntN(len(nonsense))] + "\n"
		case 1:
			line += line // a second answer, or a duplicate id
			if !answers && isCall {
				w.doubled[id] = true
			}
		}
		if cut && n > 100 && rnd.IntN(2000) == 0 {
			line = line[:len(line)/2]
			_, _ = io.WriteString(to, line)
			return
		}
		if _, err := io.WriteString(to, line); err != nil {
			return
		}
	}
}

type tick struct {
	N int `json:"n"`
}

// counted is the answer of a flooding handler.
type counted struct{ Sent, Refused int }

// TestFlood sends very many notifications to a side that does not read but continues to send
// requests. It is not parallel, because it looks at the heap of the whole process.
func TestFlood(t *testing.T) {
	const requests = 2000
	all, limit := nightly.Number(200_000, 1_000_000), nightly.Number(2<<20, 8<<20)
	o := &jsonrpc.Options{
		DrainTimeout: time.Hour, // of a slow machine
		MaxUnsent:    limit,
	}
	flooded := make(chan counted, 1)
	h := jsonrpc.HandlerFunc(func(ctx context.Context, r *jsonrpc.Request) (any, error) {
		if r.Method != "flood" {
			return r.Params, nil
		}
		var c counted
		defer func() { flooded <- c }()
		for i := range all {
			switch err := r.Peer().Notify(ctx, "tick", tick{i}); {
			case err == nil:
				c.Sent++
			case errors.Is(err, jsonrpc.ErrFull):
				c.Refused++
			default:
				return nil, err
			}
		}
		return c, nil
	})
	ir, iw := io.Pipe()
	or, ow := io.Pipe()
	p := jsonrpc.NewPeer(jsonrpc.Lines(ir, ow, ow), h, o)
	go func() { _ = p.Run(context.Background()) }()
	var before runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)

	say := func(s string) {
		if _, err := io.WriteString(iw, s+"\n"); err != nil {
			t.Error(err)
		}
	}
	say(`{"jsonrpc":"2.0","id":"flood","method":"flood"}`)
	for i := range requests {
		say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"echo","params":[%d]}`, i, i))
	}
	for p.Unsent() < limit/2 {
		runtime.Gosched()
	}
	c := <-flooded // all of them were refused or queued before anything was read
	if n := p.Unsent(); n > limit {
		t.Errorf("%d bytes are queued, the limit is %d", n, limit)
	}
	var during runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&during)
	if grown := int64(during.HeapAlloc) - int64(before.HeapAlloc); grown > int64(8*limit) {
		t.Errorf("heap has grown by %d MiB, the limit is %d", grown>>20, limit>>20)
	}
	_ = iw.Close()
	ticks, answers, last := 0, 0, -1
	for sc := bufio.NewScanner(or); sc.Scan(); {
		if _, n, ok := strings.Cut(sc.Text(), `"params":{"n":`); ok {
			var i int
			if _, err := fmt.Sscan(strings.TrimRight(n, "}"), &i); err != nil || i <= last {
				t.Fatalf("tick %d after %d: %v", i, last, err)
			}
			ticks, last = ticks+1, i
		} else {
			answers++
		}
	}
	<-p.Done()
	must.OK(t, p.Err())
	must.Equal(t, "answers, ticks, sent and refused", []int{requests + 1, c.Sent, all}, []int{answers, ticks, c.Sent + c.Refused})
	if n := p.Unsent(); n != 0 {
		t.Errorf("%d bytes are queued at the end", n)
	}
	if c.Refused == 0 {
		t.Error("nothing was refused: the limit was never reached")
	}
}

// heap returns the bytes in use after a collection.
func heap() int {
	runtime.GC()
	runtime.GC() // the second collection empties a sync.Pool
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// TestMemoryAfterLongLine checks that the memory of a long line is freed, for an idle peer and
// for a handler that keeps a few bytes of a line that was read with it.
func TestMemoryAfterLongLine(t *testing.T) {
	const size, bound = 33 << 20, 4 << 20
	long := `{"jsonrpc":"2.0","id":1,"method":"drop","params":["` + strings.Repeat("x", size) + `"]}` + "\n"
	bubble(t, func(t *testing.T) {
		var kept []json.RawMessage
		h := jsonrpc.HandlerFunc(func(_ context.Context, r *jsonrpc.Request) (any, error) {
			if r.Method == "keep" {
				kept = append(kept, r.Params)
			}
			return nil, nil
		})
		r := running(t, h, &jsonrpc.Options{MaxConcurrent: 1})
		before := heap()
		check := func(when string) {
			t.Helper()
			synctest.Wait()
			if n := heap() - before; n > bound {
				t.Errorf("%s the peer holds %d KiB", when, n>>10)
			}
		}
		write := func(s string) { _, _ = io.WriteString(r.in, s+"\n") } // an error makes want fail
		go write(long)
		r.want(`{"jsonrpc":"2.0","id":1,"result":null}`)
		check("when idle")
		go write(long + `{"jsonrpc":"2.0","id":2,"method":"keep","params":[1,2]}`)
		r.want(`{"jsonrpc":"2.0","id":1,"result":null}`, `{"jsonrpc":"2.0","id":2,"result":null}`)
		check("with six bytes kept")
		must.Equal(t, "kept", []json.RawMessage{json.RawMessage("[1,2]")}, kept)
	})
}
