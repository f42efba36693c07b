package outputschema_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"unicode/utf8"

	"github.com/codexmcp/codexmcp/internal/nightly"
	"github.com/codexmcp/codexmcp/internal/outputschema"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

const person = `{"type":"object","required":["name"],"additionalProperties":false,"properties":{
	"name":{"type":"string","pattern":"^[A-Z]"},"age":{"type":"integer","minimum":0},"tags":{"type":"array","items":{"$ref":"#/$defs/tag"}}},
	"$defs":{"tag":{"enum":["a","b"]}}}`

// faults adds the lines of a kind of testdata/faults.txt to texts and their errors.
func faults(t *testing.T, kind string, all map[string]string) map[string]string {
	t.Helper()
	for line := range strings.Lines(string(must.Get(os.ReadFile("testdata/faults.txt"))(t))) {
		if row, ok := strings.CutPrefix(line, kind+" "); ok {
			text, want, _ := strings.Cut(strings.TrimSuffix(row, "\n"), " |")
			all[text] = strings.TrimSpace(want)
		}
	}
	if len(all) < 10 {
		t.Fatalf("%d of kind %s", len(all), kind)
	}
	return all
}

func TestCheck(t *testing.T) {
	s := must.Get(outputschema.Compile(json.RawMessage(person)))(t)
	answers := faults(t, "answer", map[string]string{
		" \n{\"name\":\"Ada\",\"tags\":[\"a\",\"b\"]}\n": "",
		"```json\n{\"name\":\"Ada\"}\n```":               "not JSON alone",
		``:                                               "not JSON alone",
		`{"name":"` + "\xff" + `"}`:                      "not JSON alone",
		`{"name":"` + strings.Repeat("A", 1<<20) + `"}`: "more than the",
		strings.Repeat("[", 1000):                       "deeper than 64",
	})
	for answer, want := range answers {
		value, err := s.Check(answer)
		switch {
		case want == "" && (err != nil || string(value) != strings.TrimSpace(answer)):
			t.Errorf("%.80q: %s, %v", answer, value, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want) || value != nil || len(err.Error()) > 1200):
			t.Errorf("%.80q: %s, %v, want %s", answer, value, err, want)
		}
	}
}

// TestNothingIsLoaded checks that a schema cannot load files or send requests.
func TestNothingIsLoaded(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		fmt.Fprint(w, `{"type":"string"}`)
	}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "schema.json")
	must.OK(t, os.WriteFile(file, []byte(`{"type":"string"}`), 0o600))
	for _, where := range []string{server.URL, "file://" + file, file, "other.json", "schema:///x"} {
		for _, schema := range []string{`{"$ref":%q}`, `{"$schema":%q}`, `{"$id":%[1]q,"$ref":"x.json"}`, `{"properties":{"a":{"$dynamicRef":%q}}}`, `{"$defs":{"a":{"$schema":%q,"$id":"urn:x"}}}`} {
			if _, err := outputschema.Compile(json.RawMessage(fmt.Sprintf(schema, where))); err == nil || len(err.Error()) > 600 {
				t.Errorf(schema+": %v", where, err)
			}
		}
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("the server received %d requests", n)
	}
}

func TestInvalidSchema(t *testing.T) {
	schemas := faults(t, "schema", map[string]string{
		``: "want an object",
		`{"pattern":"` + strings.Repeat("a", 5000) + `"}`:                  "pattern",
		`{"description":"` + strings.Repeat("a", 70_000) + `"}`:            "want at most 65536",
		strings.Repeat(`{"not":`, 100) + `true` + strings.Repeat(`}`, 100): "deeper than 64",
	})
	for schema, want := range schemas {
		_, err := outputschema.Compile(json.RawMessage(schema))
		must.Fail(t, schema[:min(60, len(schema))], want, err)
	}
}

// TestCostIsBounded checks that a comparison that would take forever is stopped: one after all steps that a check has, the
// others after fewer but at night.
func TestCostIsBounded(t *testing.T) {
	steps := nightly.Number(1_000_000, outputschema.MaxSteps)
	double := func(schema string) string {
		var b strings.Builder
		b.WriteString(`{"$ref":"#/$defs/s0","$defs":{`)
		for i := range 60 {
			fmt.Fprintf(&b, `"s%d":{"allOf":[{"$ref":"#/$defs/s%[2]d"},{"$ref":"#/$defs/s%[2]d"}]},`, i, i+1)
		}
		return b.String() + `"s60":` + schema + `}}`
	}
	ones, long := `[1`+strings.Repeat(",1", 100_000)+`]`, strings.Repeat("x", 30_000)
	deep := strings.Repeat(`{"c":`, 60) + `{}` + strings.Repeat(`}`, 60)
	for name, tt := range map[string]struct{ schema, answer string }{
		"references": {double(`{"type":"object"}`), `{}`},
		"recursion":  {`{"allOf":[{"properties":{"c":{"$ref":"#"}}},{"properties":{"c":{"$ref":"#"}}}]}`, deep},
		"pattern":    {`{"items":{"pattern":"(x{100}){9}y"}}`, `["` + strings.Repeat("x", 400_000) + `"]`},
		"items":      {double(`{"items":true}`), ones},
		"equality":   {double(`{"uniqueItems":false,"const":` + ones[:30_000] + `]}`), ones[:30_000] + `]`},
		"multiples":  {double(`{"multipleOf":5e-324}`), `1e308`},
		"faults":     {strings.ReplaceAll(double(`{"properties":{"`+long+`":false}}`), "allOf", "anyOf"), `{"` + long + `":1}`},
	} {
		s := must.Get(outputschema.Compile(json.RawMessage(tt.schema)))(t)
		_, err := outputschema.CheckWithin(s, tt.answer, steps)
		if name == "references" {
			_, err = s.Check(tt.answer)
		}
		must.Fail(t, name, "too many steps", err)
	}
}

// TestNesting has schemas that refer to each other as often as they may, and once more.
func TestNesting(t *testing.T) {
	for n, deep := range map[int]bool{1999: false, 2000: true} {
		var b strings.Builder
		b.WriteString(`{"$ref":"#/$defs/0","$defs":{`)
		for i := range n - 1 {
			fmt.Fprintf(&b, `"%x":{"$ref":"#/$defs/%x"},`, i, i+1)
		}
		s := must.Get(outputschema.Compile(json.RawMessage(b.String() + fmt.Sprintf(`"%x":{"type":"object"}}}`, n-1))))(t)
		if _, err := s.Check(`{}`); (err != nil) != deep {
			t.Errorf("%d references: %v", n, err)
		}
	}
}

// TestLongFaults has faults whose words are longer than they are shown.
func TestLongFaults(t *testing.T) {
	for _, long := range []string{strings.Repeat("x", 600), strings.Repeat("é", 600)} {
		s := must.Get(outputschema.Compile(json.RawMessage(`{"const":"` + long + `"}`)))(t)
		if _, err := s.Check(`1`); err == nil || len(err.Error()) > 600 || !utf8.ValidString(err.Error()) {
			t.Errorf("%d bytes: %v", len(err.Error()), err)
		}
		if _, err := outputschema.Compile(json.RawMessage(`{"$ref":"#/$defs/` + long + `"}`)); err == nil || len(err.Error()) > 400 {
			t.Errorf("%d bytes: %v", len(err.Error()), err)
		}
	}
}

// TestSelfReference checks a schema that refers to itself for the same value.
func TestSelfReference(t *testing.T) {
	for _, schema := range []string{
		`{"$ref":"#"}`,
		`{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`,
		`{"not":{"$ref":"#"}}`,
		`{"anyOf":[{"$ref":"#"},true]}`,
	} {
		_, err := must.Get(outputschema.Compile(json.RawMessage(schema)))(t).Check(`1`)
		must.Fail(t, schema, "refers to itself", err)
	}
}

// TestFaultOfAlternatives checks which fault is reported if no alternative fits.
func TestFaultOfAlternatives(t *testing.T) {
	s := must.Get(outputschema.Compile(json.RawMessage(`{"properties":{"a":{"anyOf":[{"type":"null"},
		{"type":"object","properties":{"kind":{"const":"x"},"n":{"type":"number"}}},
		{"type":"object","required":["m"]}]}}}`)))(t)
	for answer, want := range map[string]string{
		`{"a":5}`:                      "at /a: got number, want null, or got number, want object",
		`{"a":{"kind":"x","n":"one"}}`: "at /a/n: got string, want number",
	} {
		if _, err := s.Check(answer); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", answer, err, want)
		}
	}
}

// TestFormatIsANote checks that no format is asserted, whatever the draft says of it.
func TestFormatIsANote(t *testing.T) {
	for _, draft := range []string{"http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2020-12/schema"} {
		schema := must.Get(outputschema.Compile(json.RawMessage(`{"$schema":"` + draft + `","type":"string","format":"date"}`)))(t)
		if _, err := schema.Check(`"tomorrow"`); err != nil {
			t.Errorf("%s: %v", draft, err)
		}
	}
}

func FuzzCheck(f *testing.F) {
	f.Add(person, `{"name":"Ada","tags":["a"]}`)
	f.Add(`{"$id":"urn:x:y","$ref":"#/$defs/a~1b","$defs":{"a/b":{"items":{"$ref":"#"}}}}`, `[[]]`)
	f.Add(`{"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"a":{}},"items":[{"$ref":"#/definitions/a"}],"additionalItems":false}`, `[1,2]`)
	f.Add(`{"if":{"const":-0},"then":{"multipleOf":0.1},"additionalProperties":{"format":"date"}}`, `0`)
	f.Fuzz(func(t *testing.T, schema, answer string) {
		s, err := outputschema.Compile(json.RawMessage(schema))
		if err == nil {
			_, err = s.Check(answer)
		}
		if err != nil && (len(err.Error()) > 1200 || !utf8.ValidString(err.Error())) {
			t.Errorf("%q", err)
		}
	})
}

// TestPatterns compares patterns with those of ECMAScript: each line of testdata/patterns.ndjson has a pattern, and the
// characters that new RegExp(pattern, "u") of Node.js matches and does not match.
func TestPatterns(t *testing.T) {
	text := must.Get(os.ReadFile("testdata/patterns.ndjson"))(t)
	n := 0
	for line := range bytes.Lines(text) {
		var row [3]string
		must.OK(t, json.Unmarshal(line, &row))
		re, err := outputschema.CompilePattern(row[0])
		if err != nil {
			t.Errorf("%s: %v", row[0], err)
			continue
		}
		for i, want := range []bool{true, false} {
			for _, c := range row[i+1] {
				if n++; re.MatchString(string(c)) != want {
					t.Errorf("%s matches %q: %v", row[0], c, !want)
				}
			}
		}
	}
	if n < 90 {
		t.Errorf("only %d characters are there", n)
	}
	if re, err := outputschema.CompilePattern("a$"); err != nil || re.MatchString("a\n") {
		t.Errorf("$ matches before the end: %v", err)
	}
	for _, wrong := range []string{`\u00g9`, `\u`, `\u{}`, `\u{110000}`, "[", `a\`, "(?=a)", `(a)\1`, `\cM`} {
		if re, err := outputschema.CompilePattern(wrong); err == nil {
			t.Errorf("%s is taken as %s", wrong, re)
		}
	}
}

// TestSuite runs the official test suite. testdata/SOURCE says what it leaves out.
func TestSuite(t *testing.T) {
	file := must.Get(os.Open("testdata/suite.ndjson.gz"))(t)
	defer file.Close()
	text := must.Get(gzip.NewReader(file))(t)
	lines := bufio.NewScanner(text)
	lines.Buffer(nil, 1<<20)
	checked := 0
	for lines.Scan() {
		var group struct {
			Draft, File, Description string
			Schema                   json.RawMessage
			Tests                    []struct {
				Description string
				Data        json.RawMessage
				Valid       bool
			}
		}
		must.OK(t, json.Unmarshal(lines.Bytes(), &group))
		name := group.Draft + " " + group.File + ": " + group.Description
		schema, err := outputschema.Compile(inDraft(group.Draft, group.Schema))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, test := range group.Tests {
			checked++
			if _, err := schema.Check(string(test.Data)); (err == nil) != test.Valid {
				t.Errorf("%s: %s: %v", name, test.Description, err)
			}
		}
	}
	if err := lines.Err(); err != nil || checked < 1000 {
		t.Errorf("%d cases checked: %v", checked, err)
	}
}

// inDraft returns a schema that names its draft, and is an object.
func inDraft(draft string, schema json.RawMessage) json.RawMessage {
	address := "https://json-schema.org/draft/2020-12/schema"
	if draft == "07" {
		address = "http://json-schema.org/draft-07/schema#"
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(schema, &members) != nil {
		members = map[string]json.RawMessage{"allOf": json.RawMessage("[" + string(schema) + "]")}
	}
	members["$schema"] = json.RawMessage(`"` + address + `"`)
	schema, _ = json.Marshal(members)
	return schema
}
