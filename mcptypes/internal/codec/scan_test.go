package codec

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

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

// eachValue reads a value with the readers of generated code, and compares strings and names with
// jsontext's.
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
