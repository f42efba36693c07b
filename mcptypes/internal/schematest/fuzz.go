package schematest

import (
	"bytes"
	"encoding/json"
	"regexp"
	"testing"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// longExponent matches a number that the judge would take very long for.
var longExponent = regexp.MustCompile(`[eE][+-]?[0-9]{4}`)

// Fuzz checks any text for a definition: a decoded value can be encoded and decoded to the
// same value, all ways to decode agree, and the schema's judge admits whatever DecodeStrict
// does. What the judge admits may only be refused if excused says so; nil excuses all.
func (p *Package) Fuzz(f *testing.F, definition string, excused func(definition string, err error) bool) {
	for _, e := range p.readExamples(f) {
		if e.Def == definition {
			f.Add([]byte(e.Instance))
		}
	}
	schema := p.readSchema(f)
	make := p.Definitions[definition]
	f.Fuzz(func(t *testing.T, in []byte) {
		v := make()
		err, strict := p.Decode(in, v), p.DecodeStrict(in, make())
		if err != nil && strict == nil {
			t.Fatalf("strict accepts what Decode refuses: %v", err)
		}
		bothPackagesAgree(t, make, in, err)
		judged := jsontext.Value(in).IsValid() && !longExponent.Match(in)
		if excused != nil && judged && strict != nil && schema.judge(definition, string(in)) == nil && !excused(definition, strict) {
			t.Fatalf("refused, but valid: %v", strict)
		}
		if err != nil {
			return
		}
		out, err := p.Encode(Value(v))
		if err != nil {
			t.Fatalf("decoded, but not encoded: %v", err)
		}
		if bytes.ContainsAny(out, "\n\r") {
			t.Fatalf("more than one line: %q", out)
		}
		again := make()
		if err := p.Decode(out, again); err != nil {
			t.Fatalf("own output %s is refused: %v", out, err)
		}
		if second, err := p.Encode(Value(again)); err != nil || !bytes.Equal(second, out) {
			t.Fatalf("%s became %s, %v", out, second, err)
		}
		if strict != nil || !judged {
			return
		}
		for _, text := range []string{string(in), string(out)} {
			if err := schema.judge(definition, text); err != nil {
				t.Fatalf("accepted, but invalid: %s: %v", text, err)
			}
		}
	})
}

// bothPackagesAgree checks that encoding/json and json/v2 accept what Decode accepts, and refuse
// it at the same place.
func bothPackagesAgree(t *testing.T, make func() any, in []byte, err error) {
	v1, v2 := make(), make()
	if _, ok := v1.(json.Unmarshaler); !ok {
		return // an interface has no methods to decode with
	}
	for name, other := range map[string]error{"encoding/json": json.Unmarshal(in, v1), "json/v2": jsonv2.Unmarshal(in, v2)} {
		if (err == nil) != (other == nil) || err != nil && json.Valid(in) && PathOf(err) != PathOf(other) {
			t.Fatalf("%s: Decode: %v, %s: %v", in, err, name, other)
		}
	}
}
