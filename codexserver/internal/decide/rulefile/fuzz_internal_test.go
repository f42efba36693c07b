package rulefile

import (
	"testing"

	"github.com/go-json-experiment/json"
)

// FuzzDecode checks that a decoded file is encoded as the same file.
func FuzzDecode(f *testing.F) {
	const rule = `"number":1,"at":"2026-11-21T10:00:00Z","by":"client"`
	for _, text := range []string{
		`{"version":3,"rules":null}`,
		`{"version":3,"rules":[{` + rule + `,"prefix":["go","test"]}]}`,
		`{"version":3,"rules":[{` + rule + `,"exact":["make"],"folder":"/work","principal":"ann"}]}`,
		`{"version":3,"rules":[{` + rule + `,"exact":["make"],"folder":"/work","unless":1}]}`,
		`{"version":4}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := decode(data)
		if err != nil {
			return
		}
		text, err := json.Marshal(c)
		if err != nil {
			t.Fatalf("%s\ncannot be encoded: %v", data, err)
		}
		again, err := decode(text)
		if err != nil || len(again.Rules) != len(c.Rules) {
			t.Fatalf("%s\nbecomes %s: %v", data, text, err)
		}
		for i, k := range again.Rules {
			if !k.equal(c.Rules[i].Rule) || k.Number != c.Rules[i].Number {
				t.Errorf("%s\nbecomes %s", data, text)
			}
		}
	})
}
