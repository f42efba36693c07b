package config

import (
	"math"
	"reflect"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
)

type decoded struct {
	Embedded
	Text     string            `json:"text"`
	Yes      *bool             `json:"yes"`
	Count    int               `json:"count"`
	Limit    *int64            `json:"limit"`
	Seconds  float64           `json:"seconds"`
	Any      any               `json:"any"`
	List     [][]string        `json:"list"`
	Texts    map[string]string `json:"texts"`
	Parts    map[string]part   `json:"parts"`
	Part     part              `json:"part"`
	Patience Patience          `json:"patience"`
	Hidden   string            `json:"-"`
}

type Embedded struct {
	After Duration `json:"after"`
}

type part struct {
	Name string `json:"name"`
}

// TestDecode decodes each document as package json does, over what is there.
func TestDecode(t *testing.T) {
	for _, doc := range []string{
		`{}`,
		`{"text":"a","yes":false,"count":-7,"limit":9007199254740992,"seconds":1.5,"any":{"a":["b",true]}}`,
		`{"count":2,"seconds":3}`,
		`{"list":[["a","b"],[]],"texts":{"a":"b"},"parts":{"a":{"name":"b"},"c":{}},"part":{"name":"d"}}`,
		`{"list":[],"texts":{},"parts":{}}`,
		`{"text":null,"yes":null,"list":null,"texts":{"a":null},"parts":null,"part":null,"any":null}`,
		`{"after":"90s","patience":45}`,
		`{"other":1,"Hidden":"a","-":"b","Text":"c","":"d","Embedded":{}}`,
	} {
		var from layer
		if err := json.Unmarshal([]byte(doc), &from); err != nil {
			t.Fatal(err)
		}
		before := func() decoded {
			return decoded{Text: "before", List: [][]string{{"before"}}, Texts: map[string]string{"before": "x"}, Part: part{"before"}, Hidden: "before"}
		}
		got, want := before(), before()
		if err := decode(from, &got); err != nil {
			t.Errorf("%s: %v", doc, err)
		}
		if err := json.Unmarshal([]byte(doc), &want); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-json +got)\n%s", doc, diff)
		}
	}
}

// TestDecodeOfGo decodes values as programs write them.
func TestDecodeOfGo(t *testing.T) {
	type word string
	var got decoded
	from := layer{"text": word("a"), "limit": uint8(7), "seconds": int32(2), "list": [][]word{{"b"}}, "texts": map[word]word{"c": "d"}}
	if err := decode(from, &got); err != nil {
		t.Fatal(err)
	}
	want := decoded{Text: "a", Limit: new(int64(7)), Seconds: 2, List: [][]string{{"b"}}, Texts: map[string]string{"c": "d"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestDecodeErrors names the key, and says what it should be.
func TestDecodeErrors(t *testing.T) {
	for _, tt := range []struct {
		from layer
		want string
	}{
		{layer{"text": 1.5}, "text: want a string, have a number"},
		{layer{"text": "a\xff"}, "text: invalid UTF-8"},
		{layer{"yes": "a"}, "yes: want a boolean, have a string"},
		{layer{"count": 1.5}, "count: want an integer, have a number"},
		{layer{"count": 1e19}, "count: want an integer, have a number"},
		{layer{"limit": uint64(math.MaxUint64)}, "limit: want an integer, have a number"},
		{layer{"seconds": math.Inf(1)}, "seconds: want a number, have no finite number"},
		{layer{"count": math.NaN()}, "count: want an integer, have no finite number"},
		{layer{"list": []any{[]any{"a", true}}}, "list.0.1: want a string, have a boolean"},
		{layer{"list": layer{}}, "list: want an array, have a table"},
		{layer{"parts": layer{"b": layer{"name": 1}, "a c": layer{"name": 1}}}, `parts."a c".name: want a string, have a number`},
		{layer{"part": []any{}}, "part: want a table, have an array"},
		{layer{"after": true}, `after: want a duration such as "90s" or "10m"`},
		{layer{"patience": "0.5s"}, `patience: want "auto", 0, or a second or more: 45 or "45s"`},
		{layer{"part": layer{"nmae": 1}}, "part.nmae: unknown key; do you mean name?"},
		{layer{"parts": layer{"a": layer{"zzzzzz": 1}}}, "parts.a.zzzzzz: unknown key"},
		{layer{"Hidden": "a"}, "Hidden: unknown key"},
	} {
		if err := decodeKnown(nil, tt.from, reflect.ValueOf(&decoded{}).Elem()); err == nil || err.Error() != tt.want {
			t.Errorf("%v: error %v, want %q", tt.from, err, tt.want)
		}
	}
}
