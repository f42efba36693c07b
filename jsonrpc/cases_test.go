package jsonrpc_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
)

// rpcCase is one case of testdata/*-cases.json. The files explain the fields.
type rpcCase struct {
	N         string            `json:"n"`
	Send      []json.RawMessage `json:"send"`
	Expect    []wanted          `json:"expect"`
	Alt       [][]wanted        `json:"alt"`
	Alive     bool              `json:"alive"`
	TimeoutMS int               `json:"timeout_ms"`
	Note      string            `json:"note"`
}

type wanted struct {
	ID    string  `json:"id"`
	OK    bool    `json:"ok"`
	Any   bool    `json:"any"`
	Text  *string `json:"text"`
	Code  []int   `json:"code"`
	Ticks int     `json:"ticks"`
	UpTo  int     `json:"upto"`
}

// got is one message that the peer under test has written.
type got struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Progress int `json:"progress"`
	} `json:"params"`
	Result *struct {
		Content []text `json:"content"`
	} `json:"result"`
	Error *struct {
		Code int `json:"code"`
	} `json:"error"`
}

func TestCases(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"testdata/rpc-cases.json", "testdata/more-cases.json"} {
		raw := must.Get(os.ReadFile(file))(t)
		var all struct{ Cases []rpcCase }
		must.OK(t, json.Unmarshal(raw, &all))
		for _, c := range all.Cases {
			t.Run(c.N, func(t *testing.T) { synctest.Test(t, c.run) })
		}
	}
}

func (c *rpcCase) run(t *testing.T) {
	d := newDriver(t)
	for _, s := range c.Send {
		d.do(s)
	}
	timeout := time.Duration(c.TimeoutMS) * time.Millisecond
	if timeout == 0 {
		timeout = 5 * time.Second
	}
	time.AfterFunc(timeout, d.expired)
	<-d.timeUp
	synctest.Wait()
	out := d.take()
	sets := append([][]wanted{c.Expect}, c.Alt...)
	if !slices.ContainsFunc(sets, func(w []wanted) bool { return matchAll(w, out) }) {
		b, _ := json.Marshal(out)
		t.Errorf("%s\ngot  %.2000s\nwant %+v", c.Note, b, c.Expect)
	}
	if c.Alive {
		d.line(`{"jsonrpc":"2.0","id":"probe","method":"ping"}`)
		synctest.Wait()
		if out := d.take(); len(out) != 1 || string(out[0].ID) != `"probe"` || out[0].Result == nil {
			t.Errorf("not alive: %+v", out)
		}
	}
	d.close()
	<-d.peer.Done()
	if err := d.peer.Err(); err != nil {
		t.Errorf("Run: %v", err)
	}
}

// gate is locked while reads have to wait.
type gate chan struct{}

func (g gate) Lock()   { g <- struct{}{} }
func (g gate) Unlock() { <-g }

type gatedReader struct {
	r io.Reader
	g gate
}

func (r gatedReader) Read(b []byte) (int, error) {
	r.g <- struct{}{} // waits while the gate is locked
	<-r.g
	return r.r.Read(b)
}

// driver feeds a peer a stream and collects what it writes.
type driver struct {
	t      *testing.T
	peer   *jsonrpc.Peer
	in     *io.PipeWriter
	closed bool
	timeUp chan struct{}

	mu    sync.Mutex
	out   []got
	asked chan json.RawMessage // ids of the peer's own requests
	last  json.RawMessage
	gate  gate
}

func newDriver(t *testing.T) *driver {
	ir, iw := io.Pipe()
	or, ow := io.Pipe()
	d := &driver{t: t, in: iw, timeUp: make(chan struct{}), asked: make(chan json.RawMessage, 64), gate: make(gate, 1)}
	o := &jsonrpc.Options{Cancellation: jsonrpc.MCPCancel}
	d.peer = jsonrpc.NewPeer(jsonrpc.Lines(ir, ow, ow), toolServer(), o)
	go func() { _ = d.peer.Run(context.Background()) }()
	go d.read(or)
	d.line(`{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-06-18"}}`)
	d.line(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	synctest.Wait()
	if out := d.take(); len(out) != 1 || out[0].Result == nil {
		t.Fatalf("initialize: %+v", out)
	}
	return d
}

func (d *driver) expired() { close(d.timeUp) }

func (d *driver) line(s string) { d.write(s + "\n") }

func (d *driver) write(s string) {
	if _, err := io.WriteString(d.in, s); err != nil {
		d.t.Fatalf("the peer stopped reading: %v", err)
	}
}

func (d *driver) close() {
	if !d.closed {
		d.closed = true
		_ = d.in.Close()
	}
}

// do carries out one element of send.
func (d *driver) do(raw json.RawMessage) {
	var line string
	if json.Unmarshal(raw, &line) == nil {
		d.line(line)
		return
	}
	var s struct {
		Raw     *string `json:"raw"`
		Hex     []byte  `json:"base64"`
		Rep     *string `json:"rep"`
		Times   int     `json:"times"`
		Sleep   int     `json:"sleep"`
		Answer  *string `json:"answer"`
		IDStyle string  `json:"idstyle"`
		NoRead  int     `json:"noread"`
		Line    string  `json:"line"`
		Close   bool    `json:"close"`
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		d.t.Fatal(err)
	}
	switch {
	case s.Raw != nil:
		d.write(*s.Raw)
	case s.Hex != nil:
		d.write(string(s.Hex))
	case s.Rep != nil:
		d.write(strings.Repeat(*s.Rep, s.Times))
	case s.Line != "": // %d counts from 1 to times
		for i := range s.Times {
			d.line(strings.ReplaceAll(s.Line, "%d", fmt.Sprint(i+1)))
		}
	case s.Sleep > 0:
		<-time.After(time.Duration(s.Sleep) * time.Millisecond)
	case s.NoRead > 0:
		d.gate.Lock()
		time.AfterFunc(time.Duration(s.NoRead)*time.Millisecond, d.gate.Unlock)
	case s.Answer != nil:
		d.answer(*s.Answer, s.IDStyle)
	case s.Close:
		d.close()
	}
}

// answer answers the peer's request: the next one, or the last one again.
func (d *driver) answer(members, style string) {
	if d.last == nil {
		d.last = <-d.asked
	}
	id := string(d.last)
	if style == "otherkind" {
		id = `"` + id + `"`
	}
	d.line(`{"jsonrpc":"2.0","id":` + id + `,` + members + `}`)
}

func (d *driver) read(r io.Reader) {
	br := bufio.NewReaderSize(gatedReader{r, d.gate}, 1<<20)
	for {
		line, err := br.ReadBytes('\n')
		if err != nil {
			return
		}
		var g got
		if err := json.Unmarshal(line, &g); err != nil {
			d.t.Errorf("the peer wrote %.200q: %v", line, err)
		}
		if g.Method != "" && g.ID != nil {
			d.asked <- g.ID
			continue
		}
		d.mu.Lock()
		d.out = append(d.out, g)
		d.mu.Unlock()
	}
}

func (d *driver) take() []got {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := d.out
	d.out = nil
	return out
}

func sameID(want string, got json.RawMessage) bool {
	w, werr := mcptypes.ParseRequestID([]byte(want))
	g, gerr := mcptypes.ParseRequestID(got)
	if werr != nil || gerr != nil {
		return want == string(got)
	}
	return w == g
}

func (w *wanted) matches(g *got) bool {
	if g.Method != "" || !sameID(w.ID, g.ID) {
		return false
	}
	switch {
	case w.Any:
		return g.Result != nil || g.Error != nil
	case w.Code != nil:
		return g.Error != nil && slices.Contains(w.Code, g.Error.Code)
	case g.Result == nil:
		return false
	case w.Text != nil:
		return len(g.Result.Content) == 1 && g.Result.Content[0].Text == *w.Text
	}
	return true
}

// matchAll matches answers in any order, and ticks in their order.
func matchAll(want []wanted, out []got) bool {
	ticks, left := 0, []got(nil)
	for _, g := range out {
		if g.Method == "notifications/progress" {
			if ticks++; g.Params.Progress != ticks {
				return false
			}
			continue
		}
		left = append(left, g)
	}
	for _, w := range want {
		switch {
		case w.Ticks > 0:
			if ticks != w.Ticks {
				return false
			}
			ticks = 0
			continue
		case w.UpTo > 0:
			return len(left) <= w.UpTo
		}
		i := slices.IndexFunc(left, func(g got) bool { return w.matches(&g) })
		if i < 0 {
			return false
		}
		left = slices.Delete(left, i, i+1)
	}
	return len(left) == 0 && ticks == 0
}

// toolServer returns the server for the cases.
func toolServer() *jsonrpc.Mux {
	m := new(jsonrpc.Mux)
	m.Handle("initialize", jsonrpc.HandlerFunc(func(_ context.Context, r *jsonrpc.Request) (any, error) { return struct{}{}, nil }))
	jsonrpc.Handle(m, "ping", func(context.Context, struct{}) (struct{}, error) { return struct{}{}, nil })
	var mu sync.Mutex
	count, last, disorder := 0, 0, ""
	jsonrpc.HandleNotify(m, "notifications/progress", func(_ context.Context, p struct {
		Progress int `json:"progress"`
	}) error {
		mu.Lock()
		defer mu.Unlock()
		if p.Progress < last {
			disorder = "ooo"
		}
		count, last = count+1, p.Progress
		return nil
	})
	m.Handle("tools/call", jsonrpc.HandlerFunc(func(ctx context.Context, r *jsonrpc.Request) (any, error) {
		var p struct {
			Name      *string `json:"name"`
			Arguments text    `json:"arguments"`
		}
		if err := r.Bind(&p); err != nil {
			return nil, err
		}
		if p.Name == nil {
			return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "name is missing")
		}
		if *p.Name == "count" {
			mu.Lock()
			defer mu.Unlock()
			return content(fmt.Sprint(count, disorder)), nil
		}
		return callTool(ctx, r.Peer(), *p.Name, p.Arguments.Text)
	}))
	return m
}

func content(s string) any { return map[string]any{"content": []text{{s}}} }

func callTool(ctx context.Context, p *jsonrpc.Peer, name, arg string) (any, error) {
	wait := func(d time.Duration) (any, error) {
		select {
		case <-ctx.Done():
			return content("cancelled"), nil
		case <-time.After(d):
			return content("timeout"), nil
		}
	}
	tick := func(n int) (any, error) {
		for i := range n {
			if err := p.Notify(ctx, "notifications/progress", map[string]any{"progressToken": "p", "progress": i + 1}); err != nil {
				return nil, err
			}
		}
		return content("done"), nil
	}
	switch name {
	case "echo":
		return content(arg), nil
	case "len":
		return content(fmt.Sprint(len(arg))), nil
	case "slow":
		<-time.After(400 * time.Millisecond)
		return content("slow"), nil
	case "wait":
		return wait(3 * time.Second)
	case "wait1":
		return wait(time.Second)
	case "ask":
		var answer struct {
			Action string `json:"action"`
		}
		if err := p.Call(ctx, "elicitation/create", map[string]any{"message": arg}, &answer); err != nil {
			return nil, err
		}
		return content(answer.Action), nil
	case "tick200":
		return tick(200)
	case "tick20000":
		return tick(20000)
	case "panic":
		panic("tool panicked")
	case "fail":
		return nil, errors.New("tool failed")
	case "big":
		return content(string(bytes.Repeat([]byte("x"), 1<<20))), nil
	}
	return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "no tool %q", name)
}
