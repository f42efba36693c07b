package tools

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestArgumentsAsTexts has calls of hosts that send lists, objects, numbers and booleans as texts. They
// are read where the schema wants them, before locks and bounds are compared.
func TestArgumentsAsTexts(t *testing.T) {
	in, err := inputOf(`{"name":"t","inputSchema":{"type":"object","additionalProperties":false,"properties":{
		"text":{"type":"string"},"list":{"type":"array","items":{"type":"string"}},"numbers":{"type":"array","items":{"type":"integer"}},
		"object":{"type":"object"},"known":{"type":"object","properties":{"n":{"type":"number"},"s":{"type":"string"}},"additionalProperties":false},
		"number":{"type":"number","minimum":0,"maximum":50},"flag":{"type":"boolean"},"either":{"type":["string","object"]},"maybe":{"type":["null","object"]},"any":{"enum":["a"]}}}}`)()
	if err != nil {
		t.Fatal(err)
	}
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
		`{"maybe":"{}","object":"null"}`: `{"maybe":{}}`,
		`{"text":"[1]","either":"{}"}`:   `{"text":"[1]","either":"{}"}`,
		`{"list":["[1]"]}`:               `{"list":["[1]"]}`,
		`{}`:                             `{}`,

		`{"list":"\"[\\\"a\\\"]\"","number":"\"5\"","known":"\"{\\\"n\\\":2}\""}`: `{"list":["a"],"number":5,"known":{"n":2}}`,
		`"{\"number\":\"5\"}"`:     `{"number":5}`,
		`"\"{\\\"number\\\":5}\""`: `{"number":5}`,
		`{"list":"a b.png"}`:       `{"list":["a b.png"]}`,
		`{"list":"\"a\""}`:         `{"list":["a"]}`,
		`{"list":"5"}`:             `{"list":["5"]}`,
		`{"list":"","object":" ","number":"","flag":"","known":"\"\""}`: `{}`,
		`{"text":"","either":""}`: `{"text":"","either":""}`,

		`{"list":"{}"}`:           "argument /list",
		`{"list":"[a"}`:           "argument /list",
		`{"numbers":"1,2"}`:       "argument /numbers",
		`{"flag":"yes"}`:          "argument /flag",
		`{"flag":"1"}`:            "argument /flag",
		`{"number":"seven"}`:      "argument /number",
		`{"number":"[7]"}`:        "argument /number",
		`{"object":"[1]"}`:        "argument /object",
		`{"known":"{\"x\":1}"}`:   "unknown argument /known/x",
		`{"any":"b"}`:             "argument /any",
		`{"object":"{\"a\":1,}"}`: "argument /object",
		`{"unknown":"[1]"}`:       "unknown argument /unknown",
	} {
		got, err := in.normal(json.RawMessage(given), nil, false)
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
	if _, err := in.normal(json.RawMessage(`{"object":"{}"}`), []string{"object"}, false); err == nil {
		t.Error("a locked argument was read")
	}
}
