package codec

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

type color string

var colors = []color{"red", "blue"}

// shown returns what a reader read, as text.
func shown[T any](read func(*T, *Decoder) error) func(d *Decoder) (string, error) {
	return func(d *Decoder) (string, error) {
		var v T
		err := read(&v, d)
		switch v := any(v).(type) {
		case json.RawMessage:
			return string(v), err
		case *int64:
			if v == nil {
				return "nil", err
			}
			return fmt.Sprint(*v), err
		}
		return fmt.Sprintf("%v", v), err
	}
}

func walked(walk func(*Decoder) error) func(d *Decoder) (string, error) {
	return func(d *Decoder) (string, error) { return "walked", walk(d) }
}

// readers are the functions that generated code reads values with.
var readers = map[string]func(d *Decoder) (string, error){
	"string":      shown(Str),
	"color":       shown(ReadString[color]),
	"red or blue": shown(func(v *color, d *Decoder) error { return ReadEnum(v, d, colors) }),
	"red":         walked(func(d *Decoder) error { return d.Constant("red") }),
	"5":           walked(func(d *Decoder) error { return d.ConstantInt(5) }),
	"boolean":     shown(Bool),
	"scalar":      shown(ReadScalar),
	"integer":     shown(Int),
	"1 to 9":      shown(func(v *int64, d *Decoder) error { return IntBetween(v, d, 1, 9) }),
	"number":      shown(Number),
	"0 to 1":      shown(func(v *float64, d *Decoder) error { return Between(v, d, 0, 1) }),
	"any":         shown(Any),
	"JSON":        shown(JSON),
	"object":      shown(Object),
	"form": func(d *Decoder) (string, error) {
		raw, err := d.FormValue(false)
		return string(raw), err
	},
	"form, lists": func(d *Decoder) (string, error) {
		raw, err := d.FormValue(true)
		return string(raw), err
	},
	"optional": shown(func(v **int64, d *Decoder) error { return Optional(v, d, Int) }),
	"nullable": shown(func(v **int64, d *Decoder) error { return Nullable(v, d, Int) }),
	"two":      shown(func(v *[]int64, d *Decoder) error { return ListOrNull(v, d, 2, Int) }),
	"list":     shown(func(v *[]int64, d *Decoder) error { return ListOrNull(v, d, 0, Int) }),
	"empty":    walked((*Decoder).Empty),
	"schema":   walked((*Decoder).SkipSchema),
	"members":  walked(func(d *Decoder) error { return d.EachMember((*Decoder).SkipString) }),
	"shape":    shown(func(v *json.RawMessage, d *Decoder) error { return ReadShape(v, d, (*Decoder).SkipObject) }),
	"a list": func(d *Decoder) (string, error) {
		is := d.IsList()
		return fmt.Sprint(is), d.SkipValue()
	},
}

// TestReaders reads values with each function. A line has its name, the text, and what it reads or,
// after !, a part of its error; if a strict decoder reads otherwise, after a |.
func TestReaders(t *testing.T) {
	for line := range strings.Lines(`string: "a" = a
string: "a\u0062" = ab
string: 1 = ! want a string, found a number
string: "a = !
color: "x" = x
color: null = ! want a string, found null
red or blue: "blue" = blue
red or blue: "green" = ! want one of "red", "blue", found "green"
red or blue: 1 = ! want a string
red: "red" = walked
red: "r\u0065d" = walked
red: "re" = ! want "red", found "re"
red: 1 = ! want "red", found a number
5: 5 = walked
5: 5.0 = walked
5: 4 = ! want 5, found 4
5: "5" = ! want an integer
boolean: true = true
boolean: false = false
boolean: null = ! want a boolean, found null
boolean: tru = !
scalar: "a" = "a"
scalar: -7e1 = -70
scalar: 1.5 = ! found a fraction
scalar: true = ! want a string or an integer, found a boolean
integer: 9223372036854775807 = 9223372036854775807
integer: 9223372036854775808 = ! found a larger one
integer: 1.5 = ! want an integer, found 1.5
integer: "1" = ! want an integer, found a string
1 to 9: 1 = 1
1 to 9: 9 = 9
1 to 9: 0 = ! want an integer from 1 to 9, found 0
1 to 9: 10 = ! found 10
number: 1.5 = 1.5
number: 1e999 = ! found a larger one
number: "1" = ! want a number
0 to 1: 0 = 0
0 to 1: 1 = 1
0 to 1: 1.01 = ! want a number from 0 to 1, found 1.01
0 to 1: -0.01 = ! found -0.01
0 to 1: "1" = ! want a number
any: [1, 2] = [1, 2]
any: [1 = !
JSON: {"a":[1,"b",true]} = {"a":[1,"b",true]}
JSON: null = null | ! want a value other than null
JSON: {"a":null} = {"a":null} | ! /a: want a value other than null
JSON: [1.5] = [1.5] | ! /0: want an integer, found 1.5
JSON: 1e2 = 1e2
JSON: [1 = !
object: {"a": 1} = {"a": 1}
object: [] = ! want an object, found an array
form: "a" = "a"
form: true = true
form: 1.5 = 1.5 | ! want a string, an integer or a boolean, found 1.5
form: 2.0 = 2.0
form: ["a"] = ! want a string, a number or a boolean, found an array
form: null = ! want a string, a number or a boolean, found null
form, lists: ["a", "b"] = ["a", "b"]
form, lists: ["a", 1] = ! /1: want a string
form, lists: null = ! want a string, a number, a boolean or an array of strings
optional: 1 = 1
optional: null = nil | ! want an integer, found null
nullable: 1 = 1
nullable: null = nil
two: [1,2] = [1 2]
two: [1,2,3] = ! want at most 2 elements, found 3
two: null = [] | ! want an array, found null
list: [1,2,3] = [1 2 3]
list: [1,"2"] = ! /1: want an integer
empty: {} = walked
empty: {"a":1} = ! /a: not a member
schema: {"type":1} = walked
schema: true = walked | ! want an object, found a boolean
schema: 1 = ! want an object
members: {"a":"b"} = walked
members: {"a":1} = ! /a: want a string
members: {"a":"b","a":"c"} = ! /a: duplicate member
shape: {"a": 1} = {"a": 1}
shape: [] = ! want an object
a list: [1] = true
a list: {} = false
`) {
		head, want, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " = ")
		if !ok {
			t.Fatal(line)
		}
		name, text, _ := strings.Cut(head, ": ")
		lenient, strict, ok := strings.Cut(want, " | ")
		if !ok {
			strict = lenient
		}
		for i, want := range []string{lenient, strict} {
			var got string
			err := Read([]byte(text), i == 1, func(d *Decoder) (err error) {
				got, err = readers[name](d)
				return err
			})
			part, fails := strings.CutPrefix(want, "!")
			if (err != nil) != fails || fails && !strings.Contains(err.Path()+": "+err.Msg, strings.TrimSpace(part)) || !fails && got != want {
				t.Errorf("%s of %s, strict %t: %q, %v; want %q", name, text, i == 1, got, err, want)
			}
		}
	}
}

// TestWriters writes values with each function that generated code uses.
func TestWriters(t *testing.T) {
	one := int64(1)
	for i, tt := range []struct {
		write func(*Encoder)
		want  string
	}{
		{func(e *Encoder) { e.Bool(true); e.Raw(" "); e.Bool(false) }, "true false"},
		{func(e *Encoder) { e.Int(-7) }, "-7"},
		{func(e *Encoder) { e.IntBetween(1, 1, 9) }, "1"},
		{func(e *Encoder) { e.IntBetween(9, 1, 9) }, "9"},
		{func(e *Encoder) { e.IntBetween(0, 1, 9) }, "! want an integer from 1 to 9, have 0"},
		{func(e *Encoder) { e.IntBetween(10, 1, 9) }, "! have 10"},
		{func(e *Encoder) { e.Between(0, 0, 1) }, "0"},
		{func(e *Encoder) { e.Between(1, 0, 1) }, "1"},
		{func(e *Encoder) { e.Between(1.5, 0, 1) }, "! want a number from 0 to 1, have 1.5"},
		{func(e *Encoder) { e.Between(-0.5, 0, 1) }, "! have -0.5"},
		{func(e *Encoder) { WriteEnum(e, "blue", colors) }, `"blue"`},
		{func(e *Encoder) { WriteEnum(e, "green", colors) }, `! want one of "red", "blue", have "green"`},
		{func(e *Encoder) { e.Scalar(StringScalar("a")) }, `"a"`},
		{func(e *Encoder) { e.Scalar(IntScalar(0)) }, "0"},
		{func(e *Encoder) { e.Scalar(Scalar{}) }, "! required, but absent"},
		{func(e *Encoder) { WriteNullable(e, &one, (*Encoder).Int) }, "1"},
		{func(e *Encoder) { WriteNullable(e, nil, (*Encoder).Int) }, "null"},
		{func(e *Encoder) { e.Any(json.RawMessage(" {\"a\": 1}\t")) }, `{"a": 1}`},
		{func(e *Encoder) { e.Any(json.RawMessage("{\"a\":\r\n1.50}")) }, `{"a":1.50}`},
		{func(e *Encoder) { e.Any(nil) }, "! required, but absent"},
		{func(e *Encoder) { e.Any(json.RawMessage("{")) }, "!"},
		{func(e *Encoder) { WriteShape(e, json.RawMessage(" {\"a\": 1} "), (*Decoder).SkipObject) }, `{"a": 1}`},
		{func(e *Encoder) { WriteShape(e, json.RawMessage("{\"a\":\n1}"), (*Decoder).SkipObject) }, `{"a":1}`},
		{func(e *Encoder) { WriteShape(e, json.RawMessage("[]"), (*Decoder).SkipObject) }, "! want an object"},
		{func(e *Encoder) { WriteShape(e, nil, (*Decoder).SkipObject) }, "! required, but absent"},
		{func(e *Encoder) {
			WriteObjects(e, []color{"red", "blue"}, func(c *color, e *Encoder) { e.Str(string(*c)) })
		}, `["red","blue"]`},
		{func(e *Encoder) {
			WriteObjects(e, []color{"red", "\xff"}, func(c *color, e *Encoder) { e.Str(string(*c)) })
		}, `! /1: string is not UTF-8`},
		{func(e *Encoder) {
			e.Open("{")
			e.End(map[string]json.RawMessage{"z": []byte("1"), "c": []byte("2")}, "a b")
		}, `{"c":2,"z":1}`},
		{func(e *Encoder) { e.Open("{"); e.End(map[string]json.RawMessage{"a": []byte("1")}, "a b") }, `! a known member is among the unknown ones: "a"`},
		{func(e *Encoder) {
			if e.AtMost(2, 2) {
				e.Int(2)
			}
		}, "2"},
		{func(e *Encoder) {
			if e.AtMost(2, 3) {
				e.Int(3)
			}
		}, "! want at most 2 elements, have 3"},
		{func(e *Encoder) { e.Int(Or(nil, one)); e.Raw(" "); two := int64(2); e.Int(Or(&two, one)) }, "1 2"},
	} {
		e := NewEncoder("p")
		tt.write(e)
		got, err := e.Bytes()
		part, fails := strings.CutPrefix(tt.want, "!")
		if (err != nil) != fails || fails && !strings.Contains(err.Error(), strings.TrimSpace(part)) || !fails && string(got) != tt.want {
			t.Errorf("%d: %s, %v; want %s", i, got, err, tt.want)
		}
	}
}

// TestScalars checks each kind of scalar, and the absent one.
func TestScalars(t *testing.T) {
	for text, want := range map[string]string{
		`"a"`: `"a" str a true, int 0 false`, ` 7 `: `7 str  false, int 7 true`, `-7`: `-7 str  false, int -7 true`,
		`12345678901234567890`: `12345678901234567890 str  false, int 0 false`,
		`1e999999999999999999`: `1e999999999999999999 str  false, int 0 false`, `0e9223372036854775808`: `0 str  false, int 0 true`,
	} {
		s, err := ParseScalar([]byte(text))
		str, isStr := s.Str()
		n, isInt := s.Int()
		if !isInt {
			n = 0
		}
		if got := fmt.Sprintf("%s str %s %t, int %d %t", s, str, isStr, n, isInt); got != want || err != nil || s.IsZero() {
			t.Errorf("%s: %s, %v", text, got, err)
		}
		if raw := s.AppendJSON(nil); string(raw) != s.String() {
			t.Errorf("%s: %s", text, raw)
		}
	}
	if IntScalar(0).IsZero() || StringScalar("").IsZero() {
		t.Error("a scalar is absent")
	}
	var none Scalar
	if !none.IsZero() || none.String() != "" || string(none.AppendJSON(nil)) != "null" {
		t.Errorf("the absent scalar: %s", none)
	}
	for _, text := range []string{"", " ", `"a`, "true", "1.5", "1 2", "1e1000000000000000000", "10e9223372036854775807", "1.55e-9223372036854775807"} {
		if s, err := ParseScalar([]byte(text)); err == nil {
			t.Errorf("%q is %s", text, s)
		}
	}
}

// TestIsTarget refuses what cannot be read into.
func TestIsTarget(t *testing.T) {
	for _, v := range []any{nil, 1, (*int)(nil), struct{}{}} {
		if IsTarget(v) {
			t.Errorf("%v is a target", v)
		}
	}
	if !IsTarget(new(int)) {
		t.Error("a pointer is no target")
	}
}
