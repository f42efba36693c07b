package jsonrpc

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var seeds = []string{
	`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":[1,-0.5e+7,"\ud83d\ude00\u0000é",true,false,null]}}`,
	`{"jsonrpc":"2.0","method":"note","params":[1]}`,
	`{"jsonrpc":"2.0","id":"a","result":{}}`,
	`{"jsonrpc":"2.0","id":0,"error":{"code":-32000,"message":"x","data":[]}}`,
	`{"jsonrpc":"2.0","id":1.0,"id":2,"method":"x","method":"y"}`,
	`{"\u006asonrpc":"2.0","i\u0064":1e2,"method":"","x":{"id":2}}`,
	`[{"jsonrpc":"2.0","id":1,"method":"ping"},1,[]]`,
	`{"jsonrpc":"2.0","id":null,"method":"x"}`, `{"jsonrpc":"2.0","id":1,"method":"x","params":"y"}`,
	`{}`, `[]`, `1`, `"x"`, ` null `, "\xff", "{\"a\":\"\xc3\x28\"}", `{"a":1,}`, `-`, `01`, `"\x"`, `"\ud800"`, "\"a\x01\"",
	`{"jsonrpc":"1.0","id":1,"method":"x"}`, `{"id":1,"method":"x"}`, `{"jsonrpc":2,"id":1,"result":1}`,
	` {"a" : [ 1 , -0.5e+7, 0, 12.5E-1 ] , "b":{}, "c":[ ] } `, `"\"\\\/\b\f\n\r\t\u00aF"`, `"é😀"`, `"123456789012345\n"`,
	`{`, `{"a`, `{"a"`, `{"a":`, `{"a":1`, `{"a":1,`, `{"a":1]`, `{a:1}`, `{"a" 1}`, `{"a":}`, `[`, `[1`, `[1,`, `[1}`, `[,]`,
	`"`, `"\`, `"\u12`, `"\u12g4"`, `"\q"`, "\"\xf0\x9f\x98\"", `+1`, `1.`, `1e`, `1e+`, `.5`, `tru`, `nul1`, `falsy`, `1 2`,
	`[[[[1]]]]`, `[[[[[1]]]]]`, `{"a":{"a":{"a":{"a":{}}}}}`, `{"jsonrpc"`, `{"jsonrpc":`, `{"jsonrpc":"2.0"`, `{"jsonrpc":"2.0",`,
	`{"jsonrpc":"2.0"]`, `{"jsonrpc"}`, `{1`, `{}x`, `{"a":"\x"}`, `{a":1}`, "{\"a\t:1}", "{\"a\":\"b\n}",
}

// FuzzScan compares the scanner with the reference.
func FuzzScan(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(compareScan)
}

// compareScan compares what the scanner and the reference say of a line.
func compareScan(t *testing.T, line []byte) {
	if len(bytes.TrimSpace(line)) == 0 {
		return // transports skip empty lines
	}
	_, fault := checkValue(line, 10000)
	if got, want := fault == scanOK, validText(line); got != want {
		t.Fatalf("%q: valid %v, want %v", line, got, want)
	}
	if fault == scanOK {
		n := depthOf(line)
		_, atLimit := checkValue(line, n)
		_, below := checkValue(line, n-1)
		if n >= 0 && (atLimit != scanOK || n > 0 && below != scanDepth) {
			t.Fatalf("%q: nests %d deep: %v at that limit, %v below", line, n, atLimit, below)
		}
	}
	var m message
	m.parse(line, dialect{depth: 10000})
	got := reference{kind: m.kind, id: m.id, method: string(m.method), params: string(m.params), result: string(m.result), errv: string(m.errv)}
	want := refer(line)
	if m.kind == kindInvalid {
		got.code = m.fault.Code
		got.method, got.params = want.method, want.params // unspecified
	}
	if m.kind != kindResponse && m.kind != kindIgnored {
		got.result, got.errv = want.result, want.errv
	}
	if m.kind == kindResponse {
		got.params = want.params // unspecified
	}
	if m.kind == kindIgnored {
		got, want = reference{kind: got.kind}, reference{kind: want.kind}
	}
	if got != want {
		t.Fatalf("%q:\ngot  %+v\nwant %+v", line, got, want)
	}
}

// crumbs reads a stream in pieces of random size.
type crumbs struct {
	r   io.Reader
	rnd *rand.Rand
}

func (b *crumbs) Read(p []byte) (int, error) {
	return b.r.Read(p[:1+b.rnd.IntN(min(len(p), 1+b.rnd.IntN(9000)))])
}

func inCrumbs(stream []byte, seed uint64) io.Reader {
	return &crumbs{bytes.NewReader(stream), rand.New(rand.NewPCG(seed, 1))}
}

// readAll reads a transport to its end. It returns the messages, with "!" for each refused
// one, and the last error.
func readAll(t Transport, limit int) (got []string, end error) {
	t.(limiter).SetReadLimit(limit)
	for {
		m, err := t.Read(context.Background())
		var one *Error
		switch {
		case err == nil:
			got = append(got, string(m))
		case errors.As(err, &one):
			got = append(got, "!")
		default:
			return got, err
		}
	}
}

// FuzzSkim compares the skimmer, which reads in pieces, with the scanner.
func FuzzSkim(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s), 3)
	}
	f.Fuzz(compareSkim)
}

// compareSkim compares what the skimmer and the scanner say of a line.
func compareSkim(t *testing.T, line []byte, crumb int) {
	var m message
	m.parse(line, dialect{depth: 10000, lenient: true})
	var s skimmer
	for piece := range slices.Chunk(line, max(1, crumb%100)) {
		_, _ = s.Write(piece)
	}
	got := s.message(m.fault)
	if m.kind == kindInvalid && m.fault != nil && m.fault.Code == CodeParseError {
		return // any result is fine for invalid JSON
	}
	want := message{kind: m.kind, id: m.id, fault: m.fault}
	switch {
	case len(got.id.String()) > maxSkimmed-10 || len(want.id.String()) > maxSkimmed-10:
		return
	case m.kind == kindRequest:
		want.kind = kindInvalid // a request that is too long is refused
	case m.kind == kindNotification || s.seen&hasMethod != 0 && s.seen&hasID == 0:
		want.kind = kindIgnored
	}
	if got.kind != want.kind || got.id != want.id {
		t.Fatalf("%q: got kind %d and id %v, want %d and %v", line, got.kind, got.id, want.kind, want.id)
	}
}

// FuzzLines compares the line framing with a split of the whole stream.
func FuzzLines(f *testing.F) {
	for _, s := range []string{"a\nb\r\n\n \n c \nd", strings.Repeat("x", 200) + "\ny\n", strings.Repeat("long ", 20000) + "\n{}\n"} {
		f.Add([]byte(s), uint64(1), 100)
	}
	f.Fuzz(func(t *testing.T, stream []byte, seed uint64, limit int) {
		limit = max(1, limit%100_000)
		var want []string
		for line := range bytes.SplitSeq(stream, []byte("\n")) {
			trimmed := strings.Trim(string(line), " \t\r")
			switch {
			case len(line) > limit:
				want = append(want, "!")
			case trimmed != "":
				want = append(want, trimmed)
			}
		}
		got, end := readAll(Lines(inCrumbs(stream, seed), nil, nil), limit)
		if !errors.Is(end, io.EOF) {
			t.Fatal(end)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("limit %d (-want +got):\n%s", limit, diff)
		}
		var out bytes.Buffer
		if err := Lines(nil, &out, nil).Write(context.Background(), [][]byte{[]byte("[1]"), bytes.Repeat([]byte("2"), limit)}); err != nil {
			t.Fatal(err)
		}
		if got, want := out.String(), "[1]\n"+strings.Repeat("2", limit)+"\n"; got != want {
			t.Fatalf("written %d bytes, want %d", len(got), len(want))
		}
	})
}
