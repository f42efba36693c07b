package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// hazard is a situation in which a peer may hang, lose others' work or end the process.
type hazard struct {
	name string
	// typed is true if the caller chooses the Go type of a result, which the MCP SDKs do not offer.
	typed bool
	// meet returns what happens, and whether that harms nothing else.
	meet func(join join) (string, bool)
}

var hazards = []hazard{
	{"both sides write at once: 64 calls of 100 KB each way", false, meetBothWrite},
	{"a deadline of 0.5 s while the other side does not read", false, meetDeaf},
	{"the decoding of a result panics", true, meetPanickingResult},
	{"a decoding of 0.3 s while another call is answered", true, meetSlowResult},
	{"context and params of a request, kept until after its answer", false, meetKept},
	{"300 MiB without a line end", false, meetEndless},
	{"20,000 requests wait", false, meetCrowd},
	{"a handler panics", false, meetPanickingHandler},
}

// meetAll prints what happens to each peer in each situation, which it meets in a process of its own.
func meetAll(w io.Writer, only string) {
	var names []string
	for _, p := range peers {
		if _, found := joins[p.name]; found && (only == "" || slices.Contains(strings.Split(only, ","), p.name)) {
			names = append(names, p.name)
		}
	}
	fmt.Fprintf(w, "| | %s |\n|---|%s\n", strings.Join(names, " | "), strings.Repeat("---|", len(names)))
	for i, h := range hazards {
		fmt.Fprintf(w, "| %s |", h.name)
		for _, name := range names {
			fmt.Fprintf(w, " %s |", meetOne(i, name))
		}
		fmt.Fprintln(w)
	}
}

// meetOne returns the words for one cell.
func meetOne(i int, name string) string {
	if hazards[i].typed && !joins[name].typed {
		return "-"
	}
	ctx, stop := context.WithTimeout(context.Background(), 40*time.Second)
	defer stop()
	out, err := exec.CommandContext(ctx, must(os.Executable()), "-peer", name, "-meet", strconv.Itoa(i+1)).Output()
	switch {
	case ctx.Err() != nil:
		return "**hangs**"
	case err != nil:
		return "**ends the process**"
	}
	return string(bytes.TrimSpace(out))
}

// meet prints what happens to a peer in the situation of that number.
func meet(w io.Writer, number int, name string) {
	what, harmless := hazards[number-1].meet(joins[name].join)
	if !harmless {
		what = "**" + what + "**"
	}
	fmt.Fprintln(w, what)
}

// echoed is a handler that answers with what it was sent.
func echoed(_ context.Context, params []byte) (any, error) { return result(textOf(params)), nil }

// textOf returns the text of a call's params, which are whole or, from an SDK, the arguments alone.
func textOf(params []byte) string {
	var p struct {
		callParams
		arguments
	}
	_ = json.Unmarshal(params, &p) // what does not fit has no text
	return p.Arguments.Text + p.Text
}

// joined returns a client and its server, which handles calls with h.
func joined(join join, h handle) (client, server asking) {
	a, b := pipes()
	ready := make(chan asking)
	go func() { ready <- join(b, true, h) }()
	client = join(a, false, echoed)
	return client, <-ready
}

const limit = 20 * time.Second // for what should take a moment

func meetBothWrite(join join) (string, bool) {
	client, server := joined(join, echoed)
	var done atomic.Int64
	var all sync.WaitGroup
	long := strings.Repeat("x", 100_000)
	for _, call := range []asking{client, server} {
		for range 64 {
			all.Go(func() {
				if call(context.Background(), long, nil) == nil {
					done.Add(1)
				}
			})
		}
	}
	over := make(chan struct{})
	go func() { all.Wait(); close(over) }()
	select {
	case <-over:
	case <-time.After(limit):
	}
	n := done.Load()
	return fmt.Sprintf("%d of 128", n), n == 128
}

func meetDeaf(join join) (string, bool) {
	a, b := pipes()
	go answerInitialize(b)
	client := join(a, false, echoed)
	ctx, stop := context.WithTimeout(context.Background(), time.Second/2)
	defer stop()
	start, over := time.Now(), make(chan struct{})
	go func() { _ = client(ctx, large, nil); close(over) }()
	select {
	case <-over:
	case <-time.After(5 * time.Second):
		return "not back after 5 s", false
	}
	return fmt.Sprintf("back after %.1f s", time.Since(start).Seconds()), true
}

// answerInitialize lets an SDK connect, and reads no more.
func answerInitialize(s *stream) {
	var line []byte
	for b := make([]byte, 1); ; {
		if _, err := s.Read(b); err != nil || len(line) == 0 && b[0] != '{' {
			return
		}
		if line = append(line, b[0]); b[0] != '\n' {
			if len(line) > 1000 { // it is no initialize
				return
			}
			continue
		}
		var m naiveMessage
		if json.Unmarshal(line, &m) != nil || m.Method != "initialize" {
			return
		}
		m.Result = json.RawMessage(`{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},` +
			`"serverInfo":{"name":"s","version":"1"}}`)
		must(s.Write(append(must(json.Marshal(naiveMessage{Version: "2.0", ID: m.ID, Result: m.Result})), '\n')))
		return
	}
}

// explosive is a result that cannot be decoded.
type explosive struct{}

func (*explosive) UnmarshalJSON([]byte) error { panic("decoding") }

func meetPanickingResult(join join) (string, bool) {
	client, _ := joined(join, echoed)
	what := func() (what any) {
		defer func() { what = recover() }()
		return client(context.Background(), "x", new(explosive))
	}()
	if client(context.Background(), "x", nil) != nil {
		return "the connection ends", false
	}
	return fmt.Sprintf("the caller gets %q", fmt.Sprint(what)), true
}

// sluggish is a result whose decoding takes long.
type sluggish struct{ began chan struct{} }

func (s *sluggish) UnmarshalJSON([]byte) error {
	close(s.began)
	<-time.After(300 * time.Millisecond)
	return nil
}

func meetSlowResult(join join) (string, bool) {
	client, _ := joined(join, echoed)
	slow, over := &sluggish{make(chan struct{})}, make(chan error)
	go func() { over <- client(context.Background(), "x", slow) }()
	<-slow.began
	start := time.Now()
	check(client(context.Background(), "x", nil))
	took := time.Since(start)
	check(<-over)
	return fmt.Sprintf("the other takes %d ms", took.Milliseconds()), took < 150*time.Millisecond
}

func meetKept(join join) (string, bool) {
	type kept struct {
		ctx      context.Context
		params   []byte
		original string
	}
	keeps := make(chan kept, 100)
	client, _ := joined(join, func(ctx context.Context, params []byte) (any, error) {
		keeps <- kept{ctx, params, string(params)}
		return echoed(ctx, params)
	})
	for i := range 10 {
		check(client(context.Background(), strings.Repeat(strconv.Itoa(i), 100), nil))
	}
	<-time.After(time.Second / 2)
	var wrong []string
	k := <-keeps
	if k.ctx.Err() == nil {
		wrong = append(wrong, "the context lives on")
	}
	if string(k.params) != k.original {
		wrong = append(wrong, "the params are another request's")
	}
	if wrong == nil {
		return "ended, unchanged", true
	}
	return strings.Join(wrong, ", "), false
}

// feed is an input of lines that then waits for ever.
type feed struct {
	io.Reader
	over chan struct{} // closed when all has been read
	once sync.Once
}

func newFeed(r io.Reader) *feed { return &feed{Reader: r, over: make(chan struct{})} }

func (f *feed) Read(b []byte) (int, error) {
	n, err := f.Reader.Read(b)
	if errors.Is(err, io.EOF) && n == 0 {
		f.once.Do(func() { close(f.over) })
		select {}
	}
	return n, nil
}

// letters is an endless text.
type letters struct{}

func (letters) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 'x'
	}
	return len(b), nil
}

// serveFeed has a server read a feed, until all is read or nothing more is.
func serveFeed(join join, r io.Reader, h handle) {
	f := newFeed(r)
	go join(&stream{Reader: f, Writer: io.Discard}, true, h)
	select {
	case <-f.over:
	case <-time.After(limit):
	}
	<-time.After(time.Second)
}

func meetEndless(join join) (string, bool) {
	serveFeed(join, io.MultiReader(strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"`),
		io.LimitReader(letters{}, 300<<20)), echoed)
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return fmt.Sprintf("%d MiB of heap", m.HeapSys>>20), m.HeapSys < 200<<20
}

func meetCrowd(join join) (string, bool) {
	var in bytes.Buffer
	fmt.Fprintln(&in, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18",`+
		`"capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
	fmt.Fprintln(&in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	for i := range 20_000 {
		fmt.Fprintf(&in, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"x",`+
			`"arguments":{"text":"x"}}}`+"\n", i+1)
	}
	serveFeed(join, &in, func(context.Context, []byte) (any, error) { select {} })
	n, most := runtime.NumGoroutine(), 0
	for ; n > most; n = runtime.NumGoroutine() { // they start one after the other
		most = n
		<-time.After(2 * time.Second)
	}
	return fmt.Sprintf("%d goroutines", most), most < 5000
}

func meetPanickingHandler(join join) (string, bool) {
	client, _ := joined(join, func(ctx context.Context, params []byte) (any, error) {
		if textOf(params) == "panic" {
			panic("handler")
		}
		return echoed(ctx, params)
	})
	ctx, stop := context.WithTimeout(context.Background(), 5*time.Second)
	defer stop()
	err := client(ctx, "panic", nil)
	if other := client(ctx, "x", nil); other != nil {
		return "the connection ends", false
	}
	if err == nil || ctx.Err() != nil {
		return "the caller learns nothing", false
	}
	return "the caller gets an error", true
}
