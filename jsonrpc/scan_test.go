package jsonrpc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/codexmcp/codexmcp/mcptypes"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

// TestParseFaults checks the words of faults, and that nothing of an earlier message is left.
func TestParseFaults(t *testing.T) {
	var m message
	m.parse([]byte(`{"jsonrpc":"2.0","id":1,"method":"a","params":[]}`), dialect{depth: 4})
	if m.kind != kindRequest {
		t.Errorf("a request is %v, %v", m.kind, m.fault)
	}
	m.parse([]byte(`{`), dialect{depth: 4}) // nothing of the request is left
	if m.kind != kindInvalid || !m.id.IsZero() || m.method != nil || m.params != nil {
		t.Errorf("after a request: %+v", m)
	}
	m.parse([]byte(`{}`), dialect{})
	if m.fault.Code != CodeInvalidRequest {
		t.Errorf("depth 0: %v", m.fault)
	}
	for in, want := range map[string]string{`[{"jsonrpc":"2.0","id":1,"method":"a"}]`: "batches are not accepted", `"a"`: "a message is an object"} {
		m = message{}
		if m.parse([]byte(in), dialect{depth: 4}); m.kind != kindInvalid || m.fault.Message != want {
			t.Errorf("%s: kind %v, fault %v", in, m.kind, m.fault)
		}
	}
}

// TestDepth checks that each object and array counts as one level, the message too.
func TestDepth(t *testing.T) {
	for _, tt := range []struct {
		depth int
		in    string
		deep  bool
	}{
		{0, `{}`, true}, {0, `[]`, true}, {0, `1`, false}, {1, `[]`, false}, {1, `[[]]`, true}, {1, `[{}]`, true},
		{1, `{"jsonrpc":"2.0","id":1,"method":"a"}`, false}, {1, `{"jsonrpc":"2.0","id":1,"method":"a","params":[]}`, true},
		{2, `{"jsonrpc":"2.0","id":1,"method":"a","params":[]}`, false}, {2, `{"jsonrpc":"2.0","id":1,"method":"a","params":{"a":[]}}`, true},
	} {
		var m message
		m.parse([]byte(tt.in), dialect{depth: tt.depth})
		if deep := m.fault != nil && strings.HasPrefix(m.fault.Message, "nesting is deeper"); deep != tt.deep {
			t.Errorf("%s with a depth of %d: %v", tt.in, tt.depth, m.fault)
		}
	}
}

// product calls f with every choice of one text of each list, joined.
func product(f func(string), lists ...[]string) {
	var join func(done string, lists [][]string)
	join = func(done string, lists [][]string) {
		if len(lists) == 0 {
			f(done)
			return
		}
		for _, s := range lists[0] {
			join(done+s, lists[1:])
		}
	}
	join("", lists)
}

// TestSmallTexts compares scanner and reference for all texts of three pieces, in several places of a message.
func TestSmallTexts(t *testing.T) {
	pieces := strings.Fields(`{ } [ ] : , " "a" "id":1 \ \u00 0 1 9 - + . e E a F g / tru true nul`)
	pieces = append(pieces, "", "\t", "\x00", "\x1f", "\x7f", "é", "\xff", "\xc3")
	for _, place := range [][2]string{
		{"", ""}, {"[", "]"}, {`{"a":`, "}"}, {"{", ":1}"}, {`{"a"`, "}"}, {`{"a":1`, "}"}, {`["`, `"]`}, {`["1234567`, `"]`}, {"[1", "]"}, {`{"jsonrpc":"2.0","method":"x","id":`, "}"},
	} {
		n := pieces
		if testing.Short() && place[0] != `{"a"` {
			n = []string{""}
		}
		product(func(s string) { compareScan(t, slices.Clip([]byte(s))) }, place[:1], n, pieces, pieces, place[1:])
	}
}

// TestBytes compares scanner and reference for every byte in many places, also as the last one of a line.
func TestBytes(t *testing.T) {
	for _, place := range []string{
		`%`, `"%"`, `"1234567%"`, `"12345678%9"`, `"%`, `"1234567%`, `"\%"`, `"\%`, `"\u%000"`, `"\u0%00"`, `"\u000%"`, `"\u00%"`, `"\u%"`, `"\u000%`, `"é%"`, `"\ufffd%\ud800"`,
		`%1`, `-%`, `0%`, `1%`, `1.%`, `1.0%`, `1e%`, `1E%1`, `1e-%`, `t%ue`, `nul%`, `fals%`, `tru%`, `true%`,
		`[%]`, `[1%`, `[1%2]`, `[%`, `{%}`, `{%`, `{"a"%:1}`, `{"a"%1}`, `{"a"%`, `{"a":%}`, `{"a":%`, `{"a":1%}`, `{"a":1%"b":2}`, `{"a":1,%}`, `{"a":[]%`, `{"a":{"b"%1}}`, `{"a":{%b":1}}`, `{"a":{"b":1%"c":2}}`,
	} {
		for c := range 256 {
			compareScan(t, slices.Clip([]byte(strings.Replace(place, "%", string([]byte{byte(c)}), 1))))
		}
		compareScan(t, []byte(strings.Replace(place, "%", "\ufffd", 1)))
	}
}

// TestEnvelopes compares scanner, skimmer and reference for messages with every choice of members.
func TestEnvelopes(t *testing.T) {
	crumb := 0
	product(func(s string) {
		line := []byte("{" + strings.TrimPrefix(s, ",") + "}")
		compareScan(t, line)
		crumb++
		compareSkim(t, line, crumb)
	},
		[]string{"", `,"jsonrpc":"2.0"`, `,"jsonrpc":"\u0032.0"`, `,"jsonrpc":"1.0"`, `,"jsonrpc":2`, `,"jsonrpc":"2.0","jsonrpc":"2.0"`},
		[]string{"", `,"id":1`, `,"id":"a"`, `,"i\u0064":"\"b\\"`, `,"id":null`, `,"id":[1]`, `,"id":1,"id":1`},
		[]string{"", `,"method":"x"`, `,"method":""`, `,"method":1`, `,"method":"x","method":"y"`},
		[]string{"", `,"params":[]`, `,"params":{"id":2,"method":"y"}`, `,"params":null`, `,"params":"x"`, `,"params":[],"params":[]`},
		[]string{"", `,"result":1`, `,"result":1,"result":2`}, []string{"", `,"error":{}`},
		[]string{"", ` , "x" : [ "\"id\":3," ] `})
}

// TestSkimBroken checks that nothing of a message is trusted that is not one whole object, and that an id is not
// taken in part.
func TestSkimBroken(t *testing.T) {
	const good = `{"id":7,"method":"x"}`
	far := strings.Repeat(" ", maxSkimmed-1)
	for in, want := range map[string]string{
		good: "7", " \t\r\n" + good + " \t\r\n ": "7", `{"method":"x","id":` + far[3:] + `123}`: "123",
		good + good: "", good + "{}": "", good + "[]": "", good + " 1 ": "", good + "x": "", good + `"x" `: "", good + "}": "", good + "]": "",
		"1" + good: "", "x " + good: "", `"x"` + good: "", "[" + good + "]": "", `["id":7,"method":"x"]`: "", `{"id":7,"method":"x","params":{}`: "", "[]" + good: "", "}" + good: "", "}{" + good: "", "]{" + good: "", "{" + good: "",
		good[:len(good)-1]: "", `{"method":"x","id":` + far + `12}`: "", `{"method":"x","id":{"a":7}}`: "", `{"method":"x","id":[":7]"]}`: "",
	} {
		for _, crumb := range []int{1, 1 << 20} {
			var s skimmer
			for piece := range slices.Chunk([]byte(in), crumb) {
				_, _ = s.Write(piece)
			}
			if m := s.message(nil); m.id.String() != want || m.kind != kindInvalid {
				t.Errorf("%.60q: kind %d, id %q, want %q", in, m.kind, m.id, want)
			}
		}
	}
}

// This file determines the meaning of a line in a second, slower way. It uses two JSON
// packages that the scanner does not use.

// reference is the expected result for a line.
type reference struct {
	kind                 kind
	id                   ID
	code                 Code // set for kindInvalid
	method               string
	params, result, errv string
}

func validText(line []byte) bool { return json.Valid(line) && utf8.Valid(line) }

// members returns the members of an object in order. ok is false for other values.
func members(line []byte) (names []string, values [][]byte, ok bool) {
	d := jsontext.NewDecoder(bytes.NewReader(line), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if d.PeekKind() != '{' {
		return nil, nil, false
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, nil, false
	}
	for d.PeekKind() != '}' {
		t, err := d.ReadToken()
		if err != nil {
			return nil, nil, false
		}
		names = append(names, t.String())
		v, err := d.ReadValue()
		if err != nil {
			return nil, nil, false
		}
		values = append(values, bytes.Clone(v))
	}
	return names, values, true
}

func depthOf(line []byte) int {
	d := jsontext.NewDecoder(bytes.NewReader(line), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	deepest := 0
	for {
		if _, err := d.ReadToken(); err != nil {
			if errors.Is(err, io.EOF) {
				return deepest
			}
			return -1
		}
		deepest = max(deepest, d.StackDepth())
	}
}

func refer(line []byte) reference {
	if !validText(line) {
		return reference{code: CodeParseError}
	}
	names, values, ok := members(line)
	if !ok {
		return reference{code: CodeInvalidRequest}
	}
	count := map[string]int{}
	value := map[string][]byte{}
	for i, n := range names {
		count[n]++
		value[n] = values[i]
	}
	r := reference{}
	dup := false
	for _, n := range []string{"jsonrpc", "id", "method", "params", "result", "error"} {
		dup = dup || count[n] > 1
	}
	var version, method string
	versionOK := json.Unmarshal(value["jsonrpc"], &version) == nil && value["jsonrpc"][0] == '"' && version == "2.0"
	id, idErr := mcptypes.ParseRequestID(value["id"])
	hasID := count["id"] > 0
	if hasID && idErr == nil && count["id"] == 1 {
		r.id = id
	}
	isMethod := count["method"] > 0 && value["method"][0] == '"'
	if isMethod {
		_ = json.Unmarshal(value["method"], &method)
		r.method = method
	}
	isResponse := count["result"]+count["error"] > 0
	params := value["params"]
	if len(params) > 0 && params[0] == 'n' {
		params = nil
	}
	r.params, r.result, r.errv = string(params), string(value["result"]), string(value["error"])
	good := !dup && versionOK
	switch {
	case count["method"] > 0:
		good = good && isMethod && !isResponse && (!hasID || idErr == nil) && (params == nil || params[0] == '{' || params[0] == '[')
		switch {
		case good && hasID:
			r.kind = kindRequest
		case good:
			r.kind = kindNotification
		case count["id"] > 1:
			r.code = CodeInvalidRequest
		case isMethod && !hasID:
			r.kind = kindIgnored
		default:
			r.code = CodeInvalidRequest
		}
	case isResponse:
		r.kind = kindResponse
		if r.id.IsZero() || count["result"] > 0 && count["error"] > 0 || dup {
			r.kind = kindIgnored
		}
	default:
		r.code = CodeInvalidRequest
	}
	return r
}

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
	_, fault := checkValue(line, 10000, nil)
	if got, want := fault == scanOK, validText(line); got != want {
		t.Fatalf("%q: valid %v, want %v", line, got, want)
	}
	if fault == scanOK {
		n := depthOf(line)
		_, atLimit := checkValue(line, n, nil)
		_, below := checkValue(line, n-1, nil)
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

// readAll reads a transport to its end. It returns the messages, with "!" for each refused one, and the last error.
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
			case len(bytes.TrimSuffix(line, []byte("\r"))) > limit:
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
		must.OK(t, Lines(nil, &out, nil).Write(context.Background(), [][]byte{[]byte("[1]"), bytes.Repeat([]byte("2"), limit)}))
		if got, want := out.String(), "[1]\n"+strings.Repeat("2", limit)+"\n"; got != want {
			t.Fatalf("written %d bytes, want %d", len(got), len(want))
		}
	})
}

// readFunc is a reader that is a function.
type readFunc func([]byte) (int, error)

func (f readFunc) Read(b []byte) (int, error) { return f(b) }

// TestLongLines checks for lines of many lengths that those up to the limit are read, that the others
// are refused with their id, wherever it is, and that of them nothing is held. The line behind is read.
func TestLongLines(t *testing.T) {
	const behind = `{"id":8}`
	for _, limit := range []int{100, slabSize, 100_000} {
		for _, n := range []int{100, 101, limit - 1, limit, limit + 1, limit + 5000, limit + slabSize, 300_000} {
			for name, format := range map[string]string{"first": `{"id":7,"method":"x","p":"%s"}`, "last": `{"method":"x","p":"%s","id":7}`} {
				for _, last := range []int{0, 1, 200, n} { // so many bytes come in a piece of their own
					line := fmt.Sprintf(format, strings.Repeat("x", n-len(format)+2))
					at := max(0, n-last)
					exact := behind + strings.Repeat(" ", limit-len(behind))
					pieces := []string{line[:at], line[at:] + "\n" + exact + "\n", behind + "\n"}
					var l *lines
					r := readFunc(func(b []byte) (int, error) {
						if held := l.long.size + len(l.buf) - l.start; held > limit+slabSize {
							t.Errorf("%d bytes are held with a limit of %d", held, limit)
						}
						for len(pieces) > 0 && pieces[0] == "" {
							pieces = pieces[1:]
						}
						if len(pieces) == 0 {
							return 0, io.EOF
						}
						m := copy(b, pieces[0])
						pieces[0] = pieces[0][m:]
						return m, nil
					})
					l = Lines(r, nil, nil).(*lines)
					l.SetReadLimit(limit)
					got, err := l.Read(context.Background())
					var long *overlong
					switch errors.As(err, &long); {
					case len(line) != n:
						t.Fatalf("a line of %d bytes, want %d", len(line), n)
					case n <= limit && (string(got) != line || err != nil):
						t.Errorf("%d bytes, limit %d, %d last: read %d: %v", n, limit, last, len(got), err)
					case n > limit && (long == nil || long.message.id.String() != "7"):
						t.Errorf("%d bytes, limit %d, %d last, id %s: read %d: %v", n, limit, last, name, len(got), err)
					}
					for range 2 {
						if got, err := l.Read(context.Background()); string(got) != behind || err != nil {
							t.Errorf("behind %d bytes, limit %d: %q, %v", n, limit, got, err)
						}
					}
					if _, err := l.Read(context.Background()); !errors.Is(err, io.EOF) {
						t.Errorf("at the end: %v", err)
					}
				}
			}
		}
	}
}

// TestSlabs checks that the buffer of lines is small at first, grows with a flood up to its limit and no further, and is
// small again when little comes, and that all lines arrive.
func TestSlabs(t *testing.T) {
	piece := 100 // what each Read brings at most
	sent, largest := 0, 0
	line := []byte(`{"method":"x"}` + "\n")
	var l *lines
	l = Lines(readFunc(func(b []byte) (int, error) {
		largest = max(largest, cap(l.buf))
		n := min(len(b), piece)
		for i := range n {
			b[i] = line[(sent+i)%len(line)]
		}
		sent += n
		return n, nil
	}), nil, nil).(*lines)
	read := func(lines int) {
		t.Helper()
		for range lines {
			if got, err := l.Read(t.Context()); string(got) != `{"method":"x"}` || err != nil {
				t.Fatalf("%q, %v", got, err)
			}
		}
	}
	if read(1); cap(l.buf) != minSlab {
		t.Errorf("the first buffer has %d bytes", cap(l.buf))
	}
	if read(10_000); largest != minSlab {
		t.Errorf("short reads fill a buffer of %d bytes", largest)
	}
	piece = 1 << 20
	if read(20_000); cap(l.buf) != slabSize || largest != slabSize {
		t.Errorf("long reads fill a buffer of %d bytes, at most %d", cap(l.buf), largest)
	}
	piece = 100
	if read(10_000); cap(l.buf) != minSlab {
		t.Errorf("short reads after long ones fill a buffer of %d bytes", cap(l.buf))
	}
}
