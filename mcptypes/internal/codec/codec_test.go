package codec

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
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
