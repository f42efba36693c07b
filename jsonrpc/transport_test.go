package jsonrpc_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"

	"github.com/codexmcp/codexmcp/jsonrpc"
)

// failing is a reader and writer that fails after some writes.
type failing struct{ writes int }

var errFailing = errors.New("disk failure")

func (f *failing) Read([]byte) (int, error) { return 0, nil }

func (f *failing) Write(b []byte) (int, error) {
	if f.writes--; f.writes < 0 {
		return 0, errFailing
	}
	return len(b), nil
}

// failsOnce is a writer one of whose writes fails.
type failsOnce struct{ writes, at int }

func (f *failsOnce) Write(b []byte) (int, error) {
	f.writes++
	if f.writes == f.at+1 {
		return 0, errFailing
	}
	return len(b), nil
}

func TestLinesFaults(t *testing.T) {
	ctx := context.Background()
	big := bytes.Repeat([]byte("x"), 100_000)
	for writes := range 3 {
		err := jsonrpc.Lines(nil, &failing{writes}, nil).Write(ctx, [][]byte{[]byte("1"), big})
		if !errors.Is(err, errFailing) {
			t.Errorf("after %d writes: %v", writes, err)
		}
	}
	must.OK(t, jsonrpc.Lines(nil, &failing{9}, nil).Write(ctx, nil))
	for fails := range 4 { // nothing may follow half a message
		w := &failsOnce{at: fails}
		if err := jsonrpc.Lines(nil, w, nil).Write(ctx, [][]byte{[]byte("1"), big, []byte("2"), big}); !errors.Is(err, errFailing) || w.writes != fails+1 {
			t.Errorf("%d writes when number %d fails: %v", w.writes, fails, err)
		}
	}
	var out bytes.Buffer
	l := jsonrpc.Lines(nil, &out, nil)
	messages := [][]byte{[]byte("1"), []byte("2"), big, []byte("3"), big, big, []byte("4")}
	for range 2 {
		must.OK(t, l.Write(ctx, messages))
	}
	if want := append(bytes.Join(messages, []byte("\n")), '\n'); !bytes.Equal(out.Bytes(), append(want, want...)) {
		t.Errorf("%d bytes are written, want %d", out.Len(), 2*len(want))
	}
	if _, err := jsonrpc.Lines(&failing{}, nil, nil).Read(ctx); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("a reader that reads nothing: %v", err)
	}
}

// short is a writer that takes half of a long write and reports no error.
type short struct{}

func (short) Write(b []byte) (int, error) { return min(len(b), 40), nil }

func TestShortWrite(t *testing.T) {
	ctx := context.Background()
	for _, n := range []int{40, 100_000} { // copied with others, and written by itself
		m := [][]byte{bytes.Repeat([]byte("x"), n)}
		for name, tr := range map[string]jsonrpc.Transport{
			"Lines":  jsonrpc.Lines(nil, short{}, nil),
			"Header": jsonrpc.Header(strings.NewReader(""), short{}, nil),
		} {
			wantErr(t, tr.Write(ctx, m), io.ErrShortWrite, "%s, %d bytes", name, n)
		}
	}
	r, w := io.Pipe()
	p := jsonrpc.NewPeer(jsonrpc.Lines(r, short{}, w), nil, nil)
	c := p.Start(ctx, "x", text{strings.Repeat("x", 100)})
	wantErr(t, p.Run(ctx), io.ErrShortWrite, "Run")
	wantErr(t, c.Result(nil), jsonrpc.ErrClosed, "call")
}

func TestHeaderEnds(t *testing.T) {
	ctx := context.Background()
	var buf bytes.Buffer
	h := jsonrpc.Header(&buf, &buf, nil)
	must.OK(t, h.Write(ctx, [][]byte{bytes.Repeat([]byte("x"), 1<<20), []byte("[]")}))
	for _, want := range []int{1 << 20, 2} {
		if m, err := h.Read(ctx); len(m) != want || err != nil {
			t.Errorf("read %d bytes, want %d: %v", len(m), want, err)
		}
	}
	must.OK(t, h.Close())
	m, err := jsonrpc.Header(strings.NewReader("Content-Type: x\ncontent-length:3\n\n[1]"), nil, nil).Read(ctx)
	if string(m) != "[1]" || err != nil {
		t.Errorf("read %q, %v", m, err)
	}
	for in, want := range map[string]string{
		"": "EOF", "Content-Length: 3\r\n\r\n12": "unexpected EOF", "Content-Length: 3": "unexpected EOF",
		"Content-Type: x\r\n\r\n":                          "header without Content-Length",
		"Content-Length 3\r\n\r\n":                         `malformed header: "Content-Length 3"`,
		"Content-Length: x\r\n\r\n":                        `malformed header: "Content-Length: x"`,
		"Content-Length: -1\r\n\r\n":                       `malformed header: "Content-Length: -1"`,
		strings.Repeat("a: b\r\n", 65):                     "malformed header: more than 64 lines",
		"Content-Length: 2147483648\r\n\r\n":               `malformed header: "Content-Length: 2147483648"`,
		"Content-Length: 0\r\nContent-Length: 2\r\n\r\n{}": `malformed header: "Content-Length: 2"`,
		strings.Repeat("a", 40_000) + "\r\n":               "bufio: buffer full",
	} {
		if _, err := jsonrpc.Header(strings.NewReader(in), nil, nil).Read(ctx); err == nil || err.Error() != want {
			t.Errorf("%.30q: got %v, want %s", in, err, want)
		}
	}
	for read, want := range map[string]error{"": errFailing, "Content-Length: 3\r\n\r\n12": errFailing} {
		r := io.MultiReader(strings.NewReader(read), iotest.ErrReader(errFailing))
		if _, err := jsonrpc.Header(r, nil, nil).Read(ctx); !errors.Is(err, want) {
			t.Errorf("a failure after %q: %v", read, err)
		}
	}
	p := jsonrpc.NewPeer(jsonrpc.Header(strings.NewReader("Content-Length: 100\r\n\r\n12"), nil, nil), nil, &jsonrpc.Options{MaxMessage: 10})
	wantErr(t, p.Run(ctx), io.ErrUnexpectedEOF, "Run")
}

// TestHeaderLimit checks that a message beyond the limit is skipped and not held, and that an empty one is no JSON.
func TestHeaderLimit(t *testing.T) {
	in, out := strings.Builder{}, bytes.Buffer{}
	for _, m := range []string{`{"id":1,"method":"raw"}`, `{"id":22,"method":"raw"}`, "", `{"id":3,"method":"raw"}`} {
		fmt.Fprintf(&in, "Content-Length: %d\r\n\r\n%s", len(m), m)
	}
	tr := jsonrpc.Header(strings.NewReader(in.String()), &out, nil)
	p := jsonrpc.NewPeer(headerReads{tr, t}, echoMux(), &jsonrpc.Options{MaxMessage: 23, LenientVersion: true})
	must.OK(t, p.Run(context.Background()))
	got := map[string]bool{}
	for h := jsonrpc.Header(&out, nil, nil); ; {
		m, err := h.Read(context.Background())
		if err != nil {
			break
		}
		got[string(m)] = true
	}
	want := map[string]bool{
		`{"jsonrpc":"2.0","id":1,"result":null}`: true, `{"jsonrpc":"2.0","id":3,"result":null}`: true,
		`{"jsonrpc":"2.0","id":22,"error":{"code":-32600,"message":"message is longer than 23 bytes"}}`: true,
		`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"not valid JSON at byte 0"}}`:      true,
	}
	must.Equal(t, "the result", want, got)
}

// TestMaxMessageIsExact reads messages that are as long as one may be, and a byte longer, in each framing and however they arrive.
func TestMaxMessageIsExact(t *testing.T) {
	ctx := context.Background()
	type framing func(message string) (text string, read func(io.Reader) jsonrpc.Transport)
	lines := func(end string) framing {
		return func(m string) (string, func(io.Reader) jsonrpc.Transport) {
			return m + end, func(r io.Reader) jsonrpc.Transport { return jsonrpc.Lines(r, nil, nil) }
		}
	}
	framings := map[string]framing{
		"LF": lines("\n"), "CRLF": lines("\r\n"), "end of input": lines(""), "CR, end of input": lines("\r"),
		"header": func(m string) (string, func(io.Reader) jsonrpc.Transport) {
			framed := fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(m), m)
			return framed, func(r io.Reader) jsonrpc.Transport { return jsonrpc.Header(r, nil, nil) }
		},
	}
	for name, frame := range framings {
		for _, limit := range []int{24, 4094, 4095, 4096, 32767, 32768, 65535, 65536, 100_000} {
			for _, extra := range []int{-1, 0, 1, 2} {
				m := strings.Replace(`{"id":1,"method":"_"}`, "_", strings.Repeat("m", limit+extra-20), 1)
				text, transport := frame(m)
				for how, r := range map[string]io.Reader{
					"at once": strings.NewReader(text), "by halves": iotest.HalfReader(strings.NewReader(text)),
					"by bytes": iotest.OneByteReader(strings.NewReader(text)),
				} {
					tr := transport(r)
					tr.(interface{ SetReadLimit(int) }).SetReadLimit(limit)
					got, err := tr.Read(ctx)
					var refused *jsonrpc.Error
					if fits := extra <= 0; fits && string(got) != m || fits == errors.As(err, &refused) {
						t.Errorf("%s, %s: %d bytes of %d: got %d, %v", name, how, len(m), limit, len(got), err)
					}
				}
			}
		}
	}
	r := strings.Repeat(" ", 30) + "\r"
	tr := jsonrpc.Lines(strings.NewReader(r+"\r\n{}\n"), nil, nil)
	tr.(interface{ SetReadLimit(int) }).SetReadLimit(31)
	if got, err := tr.Read(ctx); string(got) != "{}" { // only the last CR is the line's end
		t.Errorf("blanks up to the limit: %q, %v", got, err)
	}
}

// headerReads fails the test if a Read returns a message that is too long.
type headerReads struct {
	jsonrpc.Transport
	t *testing.T
}

func (h headerReads) SetReadLimit(n int) {
	h.Transport.(interface{ SetReadLimit(int) }).SetReadLimit(n)
}

func (h headerReads) Read(ctx context.Context) ([]byte, error) {
	m, err := h.Transport.Read(ctx)
	if len(m) > 23 {
		h.t.Errorf("%d bytes are held", len(m))
	}
	return m, err
}

func TestPipeEnds(t *testing.T) {
	ctx := context.Background()
	a, b := jsonrpc.Pipe()
	must.OK(t, a.Write(ctx, [][]byte{[]byte("1"), []byte("2")}))
	must.OK(t, a.Close(), a.Close())
	var got []string
	for {
		m, err := b.Read(ctx)
		if err != nil {
			if !errors.Is(err, io.EOF) {
				t.Error(err)
			}
			break
		}
		got = append(got, string(m))
	}
	must.Equal(t, "the result", []string{"1", "2"}, got)
	for _, end := range []jsonrpc.Transport{a, b} {
		wantErr(t, end.Write(ctx, [][]byte{[]byte("3")}), io.ErrClosedPipe, "write after the end")
	}
	if _, err := a.Read(ctx); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("read after Close: %v", err)
	}
	bubble(t, func(t *testing.T) {
		a, b := jsonrpc.Pipe()
		full := make(chan error, 2)
		for _, closed := range []jsonrpc.Transport{a, b} { // closing either end unblocks a full pipe
			x, y := a, closed
			if closed == b {
				x, y = jsonrpc.Pipe()
			}
			go func() {
				for {
					if err := x.Write(ctx, [][]byte{[]byte("x")}); err != nil {
						full <- err
						return
					}
				}
			}()
			synctest.Wait()
			_ = y.Close()
			wantErr(t, <-full, io.ErrClosedPipe, "full pipe")
		}
	})
}

// TestTooLongOrDeep sends messages that exceed a limit. A request is answered with its id,
// wherever the id is. A notification or a response is not answered.
func TestTooLongOrDeep(t *testing.T) {
	const limit = 2000
	long, deep := strings.Repeat("x", 2*limit), strings.Repeat("[", 600)+strings.Repeat("]", 600)
	for name, tc := range map[string]struct {
		line string // %s is replaced with the part that exceeds the limit
		want string // the id of the answer; "" for none
	}{
		"id first":            {`{"jsonrpc":"2.0","id":7,"method":"x","params":[%s]}`, `7`},
		"id last":             {`{"jsonrpc":"2.0","method":"x","params":[%s] , "id" : "7" }`, `"7"`},
		"escaped":             {`{"\u0069d":"a\"b","method":"x","params":[%s]}`, `"a\"b"`},
		"beyond 2^53":         {`{"id":9007199254740993,"method":"x","params":[%s]}`, `9007199254740993`},
		"other ids within":    {`{"method":"x","params":{"id":1,"a":[%s,{"id":2}],"b":"\",\"id\":3"},"id":4}`, `4`},
		"ids in strings":      {`{"method":"x","params":["\\",%s,"{\"id\":1,"],"id":4}`, `4`},
		"notification":        {`{"jsonrpc":"2.0","method":"x","params":[%s]}`, ``},
		"response to no call": {`{"jsonrpc":"2.0","id":7,"result":[%s]}`, ``},
		"response without id": {`{"jsonrpc":"2.0","error":[%s]}`, ``},
		"neither":             {`{"jsonrpc":"2.0","id":7,"x":[%s]}`, `7`},
		"id twice":            {`{"id":7,"method":"x","id":8,"params":[%s]}`, `null`},
		"id null":             {`{"id":null,"method":"x","params":[%s]}`, `null`},
		"id an object":        {`{"id":{"id":1},"method":"x","params":[%s]}`, `null`},
		"id too long":         {`{"id":"` + strings.Repeat("i", 1500) + `","method":"x","params":[%s]}`, `null`},
		"batch":               {`[{"id":7,"method":"x","params":[%s]}]`, `null`},
		"a bare value":        {`[%s]`, `null`},
	} {
		for what, too := range map[string][2]string{
			"long": {`"` + long + `"`, fmt.Sprintf("message is longer than %d bytes", limit)},
			"deep": {deep, "nesting is deeper than 512 levels"},
		} {
			o := &jsonrpc.Options{MaxMessage: limit}
			if what == "deep" {
				o.MaxMessage = 0
				if name == "id too long" { // this message exceeds no limit
					continue
				}
			}
			bubbles(t, name+"/"+what, func(t *testing.T) {
				r := running(t, echoMux(), o)
				go r.send(fmt.Sprintf(tc.line, too[0]), `{"jsonrpc":"2.0","id":"well","method":"raw"}`)
				if tc.want != "" {
					r.want(`{"jsonrpc":"2.0","id":` + tc.want + `,"error":{"code":-32600,"message":"` + too[1] + `"}}`)
				}
				r.want(`{"jsonrpc":"2.0","id":"well","result":null}`)
			})
		}
	}
}

// TestTooLongAnswer checks, for all transports, that an answer that exceeds a limit fails its call.
func TestTooLongAnswer(t *testing.T) {
	ar, bw := io.Pipe()
	br, aw := io.Pipe()
	cr, dw := io.Pipe()
	dr, cw := io.Pipe()
	p1, p2 := jsonrpc.Pipe()
	for name, ends := range map[string][2]jsonrpc.Transport{
		"Lines":  {jsonrpc.Lines(ar, aw, both{ar, aw}), jsonrpc.Lines(br, bw, both{br, bw})},
		"Header": {jsonrpc.Header(cr, cw, both{cr, cw}), jsonrpc.Header(dr, dw, both{dr, dw})},
		"Pipe":   {p1, p2},
	} {
		t.Run(name, func(t *testing.T) {
			a := jsonrpc.NewPeer(ends[0], nil, &jsonrpc.Options{MaxMessage: 100_000})
			b := jsonrpc.NewPeer(ends[1], echoMux(), nil)
			for _, p := range []*jsonrpc.Peer{a, b} {
				go func() { _ = p.Run(context.Background()) }()
			}
			const want = "jsonrpc: answer to echo: message is longer than 100000 bytes (-32600)"
			for range 2 {
				err := a.Call(context.Background(), "echo", text{strings.Repeat("x", 200_000)}, nil)
				if err == nil || err.Error() != want {
					t.Errorf("got %v, want %s", err, want)
				}
				must.OK(t, a.Call(context.Background(), "echo", text{"x"}, nil))
			}
			_, _ = a.Close(), b.Close()
			<-a.Done()
			<-b.Done()
		})
	}
}
