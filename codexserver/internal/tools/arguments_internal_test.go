package tools

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

// TestUnknownNames checks which tools refuse unknown arguments.
func TestUnknownNames(t *testing.T) {
	table, turns := New(engine.TurnFunc(nil), nil), NewSharedTurns(t.Context(), nil)
	for arguments, want := range map[string]string{
		`{"second":1}`: "did you mean seconds?", `{"Seconds":1}`: "did you mean seconds?", `{"seconds":1,"x/y":[]}`: "/x~1y: the arguments are",
	} {
		text := textsOf(table.Call(t.Context(), &Call{Turns: turns}, "codex-wait", json.RawMessage(arguments)))[0]
		if !strings.HasPrefix(text, "codex-wait: unknown argument /") || !strings.Contains(text, want) || strings.HasSuffix(want, "are") && !strings.Contains(text, "threadIds") {
			t.Errorf("%s: %s", arguments, text)
		}
	}
	if text := textsOf(table.Call(t.Context(), &Call{Turns: turns}, "codex-wait", json.RawMessage(`{"seconds":0,"more":null}`)))[0]; !strings.Contains(text, "argument /threadIds is missing: several clients share") {
		t.Errorf("null: %s", text)
	}
	for _, one := range all {
		in := one.input()
		refused := slices.Contains([]string{"codex", "codex-list", "codex-review", "codex-show", "codex-wait"}, one.name)
		if err := in.unknown("", "nosuch"); (err != nil) != refused {
			t.Errorf("%s with an unknown argument: %v", one.name, err)
		}
		for name := range in.Properties {
			misspelt := strings.ToUpper(name)
			if err := in.unknown("", misspelt); err == nil || !strings.Contains(err.Error(), "did you mean "+name+"?") {
				t.Errorf("%s with %s: %v", one.name, misspelt, err)
			}
		}
	}
}

// manyArguments has arguments of each type.
type manyArguments struct {
	modelsArguments
	Text    string          `json:"text"`
	List    []string        `json:"list"`
	Numbers []int           `json:"numbers"`
	Object  json.RawMessage `json:"object"`
	Known   struct {
		N float64 `json:"n"`
		S string  `json:"s"`
	} `json:"known"`
	Number float64 `json:"number" max:"50"`
	Flag   bool    `json:"flag"`
	Any    string  `json:"any" enum:"a"`
}

// TestArgumentsAsTexts has calls of hosts that send lists, objects, numbers and booleans as texts. They
// are read where the schema wants them, before locks and bounds are compared.
func TestArgumentsAsTexts(t *testing.T) {
	one := &tool{arguments: func() arguments { return new(manyArguments) }}
	for given, want := range map[string]string{
		`{"list":"[\"a\",\"b\"]"}`: `{"list":["a","b"]}`,
		`{"list":" [ ] "}`:         `{"list":[ ]}`,
		`{"object":"{\"model\":\"m\",\"n\":12345678901234567890}"}`: `{"object":{"model":"m","n":12345678901234567890}}`,
		`{"number":"7"}`:                 `{"number":7}`,
		`{"number":"99"}`:                `{"number":50}`,
		`{"flag":"true","text":"true"}`:  `{"flag":true,"text":"true"}`,
		`{"known":"{\"n\":\"2\"}"}`:      `{"known":{"n":2}}`,
		`{"known":{"n":"2","s":"3"}}`:    `{"known":{"n":2,"s":"3"}}`,
		`{"numbers":["1",2]}`:            `{"numbers":[1,2]}`,
		`{"text":"[1]","object":"null"}`: `{"text":"[1]"}`,
		`{"list":["[1]"]}`:               `{"list":["[1]"]}`,
		`{}`:                             `{}`,

		`{"list":"\"[\\\"a\\\"]\"","number":"\"5\"","known":"\"{\\\"n\\\":2}\""}`: `{"list":["a"],"number":5,"known":{"n":2}}`,
		`"{\"number\":\"5\"}"`: `{"number":5}`, `"\"{\\\"number\\\":5}\""`: `{"number":5}`, `{"list":"a b.png"}`: `{"list":["a b.png"]}`,
		`{"list":"\"a\""}`: `{"list":["a"]}`, `{"list":"5"}`: `{"list":["5"]}`,
		`{"list":"","object":" ","number":"","flag":"","known":"\"\""}`: `{}`,
		`{"text":""}`: `{"text":""}`,

		`{"list":"{}"}`: "argument /list", `{"list":"[a"}`: "argument /list", `{"numbers":"1,2"}`: "argument /numbers",
		`{"flag":"yes"}`: "argument /flag", `{"flag":"1"}`: "argument /flag", `{"number":"seven"}`: "argument /number",
		`{"number":"[7]"}`: "argument /number", `{"object":"[1]"}`: "argument /object",
		`{"known":"{\"x\":1}"}`:   "unknown argument /known/x",
		`{"any":"b"}`:             "argument /any",
		`{"object":"{\"a\":1,}"}`: "argument /object",
		`{"unknown":"[1]"}`:       "unknown argument /unknown",
	} {
		got, err := one.input().read("", jsontext.Value(given), nil)
		if !strings.HasPrefix(want, "{") {
			if err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%s: %s, %v, want %s", given, got, err, want)
			}
			continue
		}
		var a, b any
		if err != nil || json.Unmarshal(got, &a) != nil || json.Unmarshal([]byte(want), &b) != nil || !cmp.Equal(a, b) {
			t.Errorf("%s: %s, %v, want %s", given, got, err, want)
		}
		if strings.Contains(want, "12345678901234567890") && !strings.Contains(string(got), "12345678901234567890") {
			t.Errorf("%s: %s has another number", given, got)
		}
	}
	if _, err := one.input().read("", jsontext.Value(`{"object":"{}"}`), []string{"object"}); err == nil {
		t.Error("a locked argument was read")
	}
}
