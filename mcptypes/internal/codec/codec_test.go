package codec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

// box is a type with every kind of member, written as the generator writes it.
type box struct {
	Name  string
	Size  int64
	Share *float64
	List  []string
	Map   map[string]json.RawMessage
	In    *box
	Arm   arm
	Extra map[string]json.RawMessage
}

// arm is a union: plain with a and without b, or tagged by kind.
type arm interface{ encode(*Encoder) }

type (
	plain  struct{ A string }
	tagged struct{ Kind, Raw string }
)

func (v *box) decode(d *Decoder) error {
	*v = box{}
	return d.ReadObject("type name", func(name []byte) error {
		switch string(name) {
		case "type":
			return d.Constant("box")
		case "name":
			return Str(&v.Name, d)
		case "size":
			return IntBetween(&v.Size, d, 0, 9)
		case "share":
			return Optional(&v.Share, d, Number)
		case "list":
			return OrNil(&v.List, d, func(v *[]string, d *Decoder) error { return ListOrNull(v, d, 2, Str) })
		case "map":
			return OrNil(&v.Map, d, Members)
		case "in":
			return Optional(&v.In, d, (*box).decode)
		case "arm":
			return OrNil(&v.Arm, d, readArm)
		}
		return d.UnknownBut("name size", &v.Extra, name)
	})
}

func readArm(v *arm, d *Decoder) error {
	return Untagged(v, d, "", []Shape{{Present: "a", Required: "a"}, {Present: "kind", Required: "kind"}}, func(v *arm, d *Decoder, n int) error {
		if n == 1 {
			return Tagged(v, d, "kind", func(v *arm, d *Decoder, tag []byte) error {
				arm := new(tagged)
				*v = arm
				var raw json.RawMessage
				err := d.UnknownArm(&arm.Kind, &raw, "kind", tag)
				arm.Raw = string(raw)
				return err
			})
		}
		arm := new(plain)
		*v = arm
		return d.ReadObject("", func(name []byte) error {
			if string(name) == "a" {
				return Str(&arm.A, d)
			}
			return d.SkipValue()
		})
	})
}

func (v *plain) encode(e *Encoder) {
	e.Open(`{`)
	e.Name("a")
	e.Str(v.A)
	e.Close('}')
}

func (v *tagged) encode(e *Encoder) { e.Object(json.RawMessage(v.Raw)) }

func (v *box) encode(e *Encoder) {
	if !e.Begin(v != nil, `{"type":"box"`) {
		return
	}
	e.Name("name")
	e.Str(v.Name)
	if v.Share != nil {
		e.Name("share")
		e.Number(*v.Share)
	}
	if v.List != nil {
		e.Name("list")
		WriteList(e, v.List, (*Encoder).Str)
	}
	if v.Map != nil {
		e.Name("map")
		e.Members(v.Map)
	}
	if v.In != nil {
		e.Name("in")
		v.In.encode(e)
	}
	if v.Arm != nil {
		e.Beside(v.Arm.encode, func() map[string]json.RawMessage { return nil }, "type name", "")
	}
	e.Guard(v.Extra, "name size")
	e.End(v.Extra, "type name size share list map in arm")
}

func read(text string, strict bool) (*box, *Fault) {
	v := new(box)
	return v, Read([]byte(text), strict, v.decode)
}

// TestDecode reads a box and writes it again; an error has its place before the colon.
func TestDecode(t *testing.T) {
	for _, tt := range []struct{ in, lenient, strict string }{
		{`{"type":"box","name":"é\n"}`, `{"type":"box","name":"é\n"}`, ""},
		{`{"name":"a","type":"box","z":[1, 2],"y":2.50}`, `{"type":"box","name":"a","y":2.50,"z":[1, 2]}`, ""},
		{`{"type":"box","name":"a","map":{"b":1,"a":{}},"list":["x"],"share":0.5}`, `{"type":"box","name":"a","share":0.5,"list":["x"],"map":{"a":{},"b":1}}`, ""},
		{`{"type":"box","name":"a","list":[],"map":{}}`, `{"type":"box","name":"a","list":[],"map":{}}`, ""},
		{`{"type":"box","name":"a","in":{"type":"box","name":"b"}}`, `{"type":"box","name":"a","in":{"type":"box","name":"b"}}`, ""},
		{`{"type":"box","name":"a","share":null,"in":null}`, `{"type":"box","name":"a"}`, "/share: want a number, found null"},
		{`{"type":"box","name":"a","arm":{"b":1,"a":"x"}}`, `{"type":"box","name":"a","a":"x"}`, ""},
		{`{"type":"box","name":"a","arm":{"kind":"k","b":1}}`, `{"type":"box","name":"a","kind":"k","b":1}`, `/arm/kind: "k" is not known`},
		{`{"type":"box"}`, "/name: required, but absent", ""},
		{`{"name":"a"}`, "/type: required, but absent", ""},
		{`{"type":"bag","name":"a"}`, `/type: want "box", found "bag"`, ""},
		{`{"type":"box","name":5}`, "/name: want a string, found a number", ""},
		{`{"type":"box","name":"a","size":10}`, "/size: want an integer from 0 to 9, found 10", ""},
		{`{"type":"box","name":"a","list":["a","b","c"]}`, "/list: want at most 2 elements, found 3", ""},
		{`{"type":"box","name":"a","list":["a",1]}`, "/list/1: want a string, found a number", ""},
		{`{"type":"box","name":"a","in":{"type":"box","name":"b","in":{"type":"box"}}}`, "/in/in/name: required, but absent", ""},
		{`{"type":"box","name":"a","arm":{"a":1}}`, "/arm/a: want a string, found a number", ""},
		{`{"type":"box","name":"a","arm":{"b":1}}`, "/arm/a: required, but absent", ""},
		{`{"type":"box","name":"a","Name":"b"}`, "/Name: differs from a member's name only by case", ""},
		{`{"type":"box","name":"a","x":{"y":1,"y":2}}`, "/x/y: duplicate member", ""},
		{`{"type":"box","name":"a"} 1`, ": found '1' after the value", ""},
		{`[]`, ": want an object, found an array", ""},
	} {
		for _, strict := range []bool{false, true} {
			want := tt.lenient
			if strict && tt.strict != "" {
				want = tt.strict
			}
			v, wrong := read(tt.in, strict)
			if wrong != nil {
				if got := wrong.Path() + ": " + wrong.Msg; got != want {
					t.Errorf("%s: %s, want %s", tt.in, got, want)
				}
				continue
			}
			e := NewEncoder("box")
			v.encode(e)
			if got, err := e.Bytes(); err != nil || string(got) != want {
				t.Errorf("%s: %s, %v, want %s", tt.in, got, err, want)
			}
		}
	}
}

// TestEncodeErrors checks the place of what cannot be written, and that an encoder forgets it.
func TestEncodeErrors(t *testing.T) {
	raw := func(name, text string) map[string]json.RawMessage {
		return map[string]json.RawMessage{name: json.RawMessage(text)}
	}
	for _, tt := range []struct {
		v    *box
		want string
	}{
		{nil, "box: encode: required, but absent"},
		{&box{Name: "\xff"}, "box: encode: /name: string is not UTF-8"},
		{&box{In: &box{In: &box{Share: new(math.NaN())}}}, "box: encode: /in/in/share: number has no JSON form"},
		{&box{List: []string{"a", "\xff", "\xff"}}, "box: encode: /list/1: string is not UTF-8"},
		{&box{Map: raw("a/b", "")}, "box: encode: /map/a~1b: "},
		{&box{Map: raw("\xff", "1")}, "box: encode: /map: string is not UTF-8"},
		{&box{Extra: raw("x", "{")}, "box: encode: /x: "},
		{&box{In: &box{Extra: raw("name", "1")}}, `box: encode: /in: a known member is among the unknown ones: "name"`},
		{&box{Extra: raw("Name", "1")}, `box: encode: an unknown member differs from a known one only by case: "Name"`},
		{&box{Arm: &tagged{Raw: "5"}}, "box: encode: want a JSON object"},
		{&box{Arm: &plain{A: "\xff"}}, "box: encode: /a: string is not UTF-8"},
	} {
		e := NewEncoder("box")
		tt.v.encode(e)
		if got, err := e.Bytes(); err == nil || !strings.HasPrefix(err.Error(), tt.want) || got != nil {
			t.Errorf("%s, %v, want %s", got, err, tt.want)
		}
		e = NewEncoder("box")
		(&box{}).encode(e)
		if got, err := e.Bytes(); err != nil || string(got) != `{"type":"box","name":""}` {
			t.Errorf("afterwards: %s, %v", got, err)
		}
	}
}

// texts are JSON, or nearly so.
var texts = []string{
	``, ` `, `1`, ` 1 `, `-0`, `-`, `01`, `-01`, `1.`, `1.5e+7`, `1e`, `1E-`, `.5`, `+1`, `1 2`, `1x`, `NaN`,
	`true`, `tru`, `truex`, `false`, `null`, `nul`, "true\x00", "\x00", "\xef\xbb\xbf1", "\v1",
	`""`, `"`, `"a`, `"\"`, `"\\"`, `"\/\b\f\n\r\t\"\\"`, `"\x"`, `"\u00e9"`, `"\u00E"`, `"\u00g9"`,
	`"\ud83d\ude00"`, `"\ud83d"`, `"\ude00"`, `"\ud83d\u0041"`, `"\ud83dx"`, `"\ud83d\ud83d"`, `"\ufffd"`,
	"\"\xff\"", "\"\xc3\xa9\"", "\"\xed\xa0\x80\"", "\"\xc0\x80\"", "\"\xf4\x90\x80\x80\"", "\"a\nb\"", "\"\x7f\"",
	`"eight by`, `"eight by eight"`, `"seven\n and \"more\" of it"`, "\"1234567\x01\"", "\"1234567\xe2\x82\xac\"",
	`[]`, `[ ]`, `[1,2]`, `[1 , 2 ]`, `[1,]`, `[,1]`, `[,]`, `[1 2]`, `[`, `[1`, `]`, `[}`, `[[[]]]`,
	`{}`, `{ }`, `{"a":1}`, `{ "a" : 1 , "b" : [ ] }`, `{"a":1,}`, `{,"a":1}`, `{"a"}`, `{"a":}`, `{"a" 1}`, `{a:1}`, `{1:2}`,
	`{"a":1,"a":2}`, `{"a":1,"\u0061":2}`, `{"\u0061":1,"a":2}`, `{"\u0061":1,"\u0061":2}`, `{"a":1,"A":2}`, `{"":1,"":2}`,
	`{"a":{"a":1},"b":{"a":1}}`, `{"a":[{"x":1},{"x":1}],"x":2}`, `{"a":{"x":1,"x":2}}`, `{`, `{"a"`, `{"a":`, `{"a":1`, `}`, `{]`,
	strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth),
	strings.Repeat("[", maxDepth+1) + strings.Repeat("]", maxDepth+1),
	strings.Repeat(`{"a":`, maxDepth) + "1" + strings.Repeat("}", maxDepth),
	strings.Repeat(`{"a":`, maxDepth+1) + "1" + strings.Repeat("}", maxDepth+1),
	manyNames(100, ""), manyNames(100, `,"m5":1`), manyNames(100, `,"m99":1`), manyNames(32, `,"m31":1`), manyNames(33, `,"m32":1`), manyNames(33, `,"\u006d32":1`),
}

// manyNames returns an object with n members, and another one.
func manyNames(n int, other string) string {
	var members []string
	for i := range n {
		members = append(members, `"m`+strconv.Itoa(i)+`":0`)
	}
	return "{" + strings.Join(members, ",") + other + "}"
}

// sameVerdict checks that the scanner admits exactly what jsontext admits, with its words and its
// place, and reads strings as it does.
func sameVerdict(t *testing.T, text []byte) {
	want := judge(text)
	for name, walk := range map[string]func(*Decoder) error{
		"skip": (*Decoder).SkipValue,
		"each": func(d *Decoder) error { return eachValue(t, d) },
		"tag": func(d *Decoder) error {
			if d.kind() != '{' {
				return d.SkipValue()
			}
			var v any
			err := Untagged(&v, d, "a", []Shape{{Present: "a/x"}, {}}, func(_ *any, d *Decoder, _ int) error { return d.SkipValue() })
			return err
		},
	} {
		d := newDecoder(text)
		got := d.whole(walk)
		d.release()
		switch {
		case (got == nil) != (want == nil):
			t.Fatalf("%s %.200q: %v, want %v", name, text, got, want)
		case got == nil || inString.MatchString(want.Msg) && inString.MatchString(got.Msg):
			continue // some of jsontext's words depend on how much of an escape is there
		}
		if got.Msg != want.Msg || got.Path() != want.Path() || got.Err != want.Err {
			t.Fatalf("%s %.200q: %q at %.200q, want %q at %.200q", name, text, got.Msg, got.Path(), want.Msg, want.Path())
		}
	}
}

// inString matches the words about an escape or a character that a string must not have.
var inString = regexp.MustCompile(`in string|invalid UTF-8|unexpected EOF`)

// judge returns jsontext's error about a text that is not one value.
func judge(text []byte) *Fault {
	d := jsontext.NewDecoder(bytes.NewBuffer(text))
	if _, err := d.ReadValue(); err != nil {
		f := &Fault{Msg: io.ErrUnexpectedEOF.Error(), Err: io.ErrUnexpectedEOF} // of an empty text
		if wrong, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
			f.Msg = wrong.Err.Error()
			f.names = slices.Collect(wrong.JSONPointer.Tokens())
			slices.Reverse(f.names)
			if f.Err = wrong.Err; wrong.Err == jsontext.ErrDuplicateName {
				f.Msg = "duplicate member"
			} else if wrong.Err != io.ErrUnexpectedEOF {
				f.Err = nil
			}
		}
		return f
	}
	if rest := bytes.TrimLeft(d.UnreadBuffer(), " \t\r\n"); len(rest) > 0 {
		return &Fault{Msg: fmt.Sprintf("found %q after the value", rest[0])}
	}
	return nil
}

// eachValue reads a value with the readers of generated code, and compares strings and names with jsontext's.
func eachValue(t *testing.T, d *Decoder) error {
	switch d.kind() {
	case '{':
		return d.ReadObject("", func(name []byte) error { return eachValue(t, d) })
	case '[':
		return d.Each(func(d *Decoder) error { return eachValue(t, d) })
	case '"':
		start := d.pos
		var got string
		if err := Str(&got, d); err != nil {
			return err
		}
		want, err := jsontext.AppendUnquote(nil, d.text[start:d.pos])
		if diff := cmp.Diff(string(want), got); err != nil || diff != "" {
			t.Fatalf("%q: %v\n%s", d.text[start:d.pos], err, diff)
		}
		return nil
	}
	return d.SkipValue()
}

func TestScanner(t *testing.T) {
	for _, text := range texts {
		sameVerdict(t, []byte(text))
	}
}

// FuzzScanner compares the scanner with jsontext, for any text.
func FuzzScanner(f *testing.F) {
	for _, text := range texts {
		if len(text) < 1000 {
			f.Add([]byte(text))
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) { sameVerdict(t, text) })
}

// TestUnquoteAllocatesOnce reads a string with escapes.
func TestUnquoteAllocatesOnce(t *testing.T) {
	raw := []byte(`one\ntwo \u00e9 \ud83d\ude00`)
	if n := testing.AllocsPerRun(100, func() { _ = unquote(raw) }); n != 1 {
		t.Errorf("%v allocations", n)
	}
}

// TestRecent reads strings of each length, of which many share a place in the table.
func TestRecent(t *testing.T) {
	var r recent
	for round := range 3 {
		for i := range 300 {
			for _, want := range []string{strings.Repeat("x", i), fmt.Sprint(i), fmt.Sprintf("%d and the same text", i), fmt.Sprintf("the same text, and %d, and the same text", i)} {
				b := []byte(want)
				got := r.text(b)
				clear(b) // it is the caller's
				if got != want {
					t.Fatalf("round %d: got %q, want %q", round, got, want)
				}
			}
		}
	}
	for _, s := range r {
		if len(s) > 64 {
			t.Errorf("%q is kept", s)
		}
	}
}

func TestRecentAllocatesOnce(t *testing.T) {
	var r recent
	id := []byte("0198c1d2-7f6b-7c3e-9d55-2f1c4a7e8b90")
	var s string
	if n := testing.AllocsPerRun(100, func() { s = r.text(id) }); n != 0 || s != string(id) {
		t.Errorf("%v allocations, %q", n, s)
	}
}

// checkQuote compares appendQuote with jsontext.AppendQuote.
func checkQuote(t *testing.T, s string) {
	want, err := jsontext.AppendQuote(nil, s)
	got, ok := appendQuote(nil, s)
	if ok != (err == nil) || ok && string(got) != string(want) {
		t.Errorf("appendQuote(%q) = %s, %v; want %s, %v", s, got, ok, want, err)
	}
}

func TestAppendQuote(t *testing.T) {
	for c := range 256 {
		for at := range 18 { // around both ends of eight bytes
			text := []byte(strings.Repeat("a", 18))
			text[at] = byte(c)
			checkQuote(t, string(text))
		}
	}
	for _, s := range []string{"", "é", "日本語日本語日本語", "😀", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\ufffd", "a\x7fb\u2028<&>"} {
		checkQuote(t, s)
	}
}

func FuzzAppendQuote(f *testing.F) {
	f.Add("plain text", "\x00\x1f\" \\ \xff é 😀")
	f.Fuzz(func(t *testing.T, a, b string) {
		checkQuote(t, a)
		checkQuote(t, a+b)
	})
}

// TestTruncation cuts texts at each byte, and changes each byte into some others.
func TestTruncation(t *testing.T) {
	other := []byte{0, ' ', '"', '\\', '{', ']', ',', ':', '0', '-', 'e', 0x80, 0xc3, 0xed, 0xff}
	for _, text := range append(texts, `{"jsonrpc":"2.0","id":1.5e-3,"a":{"x":[true,false,null,"\u00e9\ud83d\ude00é€😀"]},"":{}}`) {
		if len(text) > 300 {
			continue
		}
		for i := range len(text) {
			sameVerdict(t, []byte(text[:i]))
			for _, c := range other {
				changed := []byte(text)
				changed[i] = c
				sameVerdict(t, changed)
			}
		}
	}
}

// numbers are JSON numbers, or nearly so.
var numbers = []string{
	"0", "-0", "-0.0e5", "1", "1.0", "1.5", "10e-1", "15e-1", "1e2", "1E+2", "9223372036854775807", "9223372036854775808",
	"-9223372036854775808", "-9223372036854775809", "922337203685477580.7e1", "9007199254740993", "123456789012345678901234567890",
	"1e400", "1e-400", "-1e400", "0e999999999999999999", "0.0e-999999999999999999999", "1e99999999999999999999", "1e-99999999999999999999",
	"1" + strings.Repeat("0", 400), "1." + strings.Repeat("0", 400), "0." + strings.Repeat("0", 400) + "1", "4.9e-324", "1.7976931348623157e308", "1.7976931348623159e308",
}

// sameNumber reads a number and compares it with the value that math/big and json/v2 read.
func sameNumber(t *testing.T, text string) {
	text = strings.Trim(text, " \t\r\n")
	if judge([]byte(text)) != nil || !isNumber(text[0]) {
		return
	}
	var f, wantF float64
	err := Read([]byte(text), true, Into(&f, Number))
	if wantErr := jsonv2.Unmarshal([]byte(text), &wantF); (err == nil) != (wantErr == nil) || err == nil && f != wantF {
		t.Errorf("%.100s: %v, %v, want %v, %v", text, f, err, wantF, wantErr)
	}
	if _, exponent, _ := strings.Cut(strings.ToLower(text), "e"); len(exponent) > 5 {
		return // too large for a big.Rat
	}
	want, ok := new(big.Rat).SetString(text)
	var n int64
	err = Read([]byte(text), true, Into(&n, Int))
	fits := ok && want.IsInt() && want.Num().IsInt64()
	if (err == nil) != fits || fits && n != want.Num().Int64() {
		t.Errorf("%.100s: %d, %v, want %v", text, n, err, want)
	}
	s, wrong := ParseScalar([]byte(text))
	if (wrong == nil) != (ok && want.IsInt()) {
		t.Errorf("%.100s: %v", text, wrong)
	} else if again, _ := new(big.Rat).SetString(s.String()); wrong == nil && again.Cmp(want) != 0 {
		t.Errorf("%.100s became %.100s", text, s)
	}
}

func TestNumbers(t *testing.T) {
	for _, text := range numbers {
		sameNumber(t, text)
		sameNumber(t, "-"+text)
	}
}

// FuzzNumbers compares integers with math/big and fractions with json/v2.
func FuzzNumbers(f *testing.F) {
	for _, text := range numbers {
		f.Add(text)
	}
	f.Fuzz(sameNumber)
}

// FuzzFloat compares the text of a float with that of json/v2, which refuses what has no JSON form. It is read as the same float.
func FuzzFloat(f *testing.F) {
	for _, v := range []float64{0, math.Copysign(0, -1), 1, -1.5, 1e21, 1e-7, 1 << 53, math.MaxFloat64, math.SmallestNonzeroFloat64, math.Pi, math.Inf(-1), math.NaN()} {
		f.Add(math.Float64bits(v))
	}
	f.Fuzz(func(t *testing.T, bits uint64) {
		v := math.Float64frombits(bits)
		e := NewEncoder("codec")
		e.Number(v)
		got, err := e.Bytes()
		want, wantErr := jsonv2.Marshal(v)
		if (err == nil) != (wantErr == nil) || string(got) != string(want) {
			t.Fatalf("%v: %s, %v, want %s, %v", v, got, err, want, wantErr)
		}
		var again float64
		if err == nil && (Read(got, true, Into(&again, Number)) != nil || math.Float64bits(again) != bits) {
			t.Errorf("%s is read as %v, want %v", got, again, v)
		}
	})
}
