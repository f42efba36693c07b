package main

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDialects reads schemas of older drafts as these say. A package for each agrees with an independent validator.
func TestDialects(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ schema, ignored string }{
		"draft4": {`{"$schema": "http://json-schema.org/draft-04/schema#", "tsType": "x", "definitions": {
			"A": {"id": "#a", "type": "object", "required": ["a"], "dependencies": {"a": ["t"], "t": {"required": ["a"]}}, "properties": {
				"a": {"type": "number", "minimum": 0, "exclusiveMinimum": true, "maximum": 7, "exclusiveMaximum": false, "examples": [1, 7]},
				"t": {"type": "array", "items": [{"type": "string"}], "additionalItems": false, "examples": [["x"], []]}}}}}`,
			"ignored: #/definitions/A/id\n"},
		"draft7": {`{"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {
			"A": {"type": "object", "properties": {"a": {"$ref": "#/definitions/B", "minLength": 9, "type": "integer", "description": "x"}}, "required": ["a"]},
			"B": {"type": "string"}}}`,
			"ignored: #/definitions/A/properties/a/minLength\nignored: #/definitions/A/properties/a/type\n"},
		"itself": {`{"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {
			"A": {"type": ["object", "boolean"], "properties": {
				"not": {"$ref": "#/definitions/A"},
				"either": {"type": "object", "additionalProperties": {"anyOf": [{"$ref": "#/definitions/A"}, {"type": "string"}]}}}}}}`,
			""},
		"maproot":   {`{"type": "object", "additionalProperties": {"type": "array", "items": {"type": "integer"}}}`, ""},
		"tupleroot": {`{"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "items": false, "examples": [["a", 1], []]}`, ""},
		"emptyroot": {`{"type": "object", "additionalProperties": false}`, ""},
	}
	schemas := make(map[string][]byte)
	for name, tt := range tests {
		var report strings.Builder
		p := project{schema: name + ".json", out: filepath.Join(projectPackage, name), report: &report}
		if _, err := p.generate([]byte(tt.schema)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(tt.ignored, report.String()); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
		schemas[name] = []byte(tt.schema)
	}
	compareWithValidator(t, schemas, *roundTrips)
}

// TestTagOfTwoArms keeps Unknown in a union of which two arms have the same constant.
func TestTagOfTwoArms(t *testing.T) {
	const arm = `{"type": "object", "properties": {"k": {"const": "b"}, "x": {"type": "string"}}, "required": ["k", "x"]}`
	schema := `{"$defs": {"A": {"anyOf": [` + arm + `, ` + strings.ReplaceAll(arm, `"x"`, `"y"`) + `, ` + strings.ReplaceAll(arm, `"b"`, `"c"`) + `]}}}`
	files, err := project{schema: "x.json", out: filepath.Join(projectPackage, "x")}.generate([]byte(schema))
	if err != nil {
		t.Fatal(err)
	}
	if text := string(files["zz_unions.go"]); !strings.Contains(text, "func (*Unknown) isA()") || !strings.Contains(text, "codec.AnyOf(v, d, false") {
		t.Errorf("the arms with the same tag are not tried, or the others not known by it:\n%s", text)
	}
}

// TestMethodOfTwoRequests refuses a schema whose package would not compile.
func TestMethodOfTwoRequests(t *testing.T) {
	const request = `{"type": "object", "properties": {"method": {"type": "string", "const": "a/b"}, "params": {"$ref": "#/$defs/P"}}, "required": ["method", "params"]}`
	_, err := modelOf([]byte(`{"$defs": {"P": {"type": "object", "properties": {"x": {"type": "string"}}}, "EmptyResult": {"type": "object", "properties": {"y": {"type": "string"}}},
		"ClientRequest": {"anyOf": [{"$ref": "#/$defs/ARequest"}, {"$ref": "#/$defs/BRequest"}]}, "ARequest": ` + request + `, "BRequest": ` + request + `}}`))
	const want = "#/$defs/BRequest/properties/method: the method a/b is that of ARequest, too"
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestExitCode distinguishes a schema that is refused from a wrong command line.
func TestExitCode(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.json")
	writeFile(t, file, []byte(`{"$defs": {"A": {"$dynamicRef": "#x"}}}`))
	for want, args := range map[int][]string{
		0: {"-h"},
		1: {"-schema", file, "-out", projectPackage},
		2: {"-no-such-flag"},
	} {
		if got := exitCode(run(args, new(strings.Builder))); got != want {
			t.Errorf("%v: %d, want %d", args, got, want)
		}
	}
	if err := run([]string{"x.json"}, new(strings.Builder)); !errors.As(err, new(usageError)) {
		t.Errorf("an argument without a flag: %v", err)
	}
}

// TestPlaceOfRefusal points to a place that the document has, also if gen made the schema of several.
func TestPlaceOfRefusal(t *testing.T) {
	tests := []struct{ schema, want string }{
		{`{"title": "a/b", "type": "object", "properties": {"x": {"properties": {"y": {}}}}}`,
			"#/properties/x: no rule for properties of a value that need not be an object"},
		{`{"$defs": {"A": {"type": "object", "properties": {"p": {"type": "string"}}, "anyOf": [{"properties": {"p": {"type": "boolean", "pattern": "(?!"}}}]}}}`,
			"#/$defs/A/anyOf/0/properties/p/pattern: no rule for it: the pattern is not valid: error parsing regexp: invalid or unsupported Perl syntax: `(?!`"},
	}
	for _, tt := range tests {
		_, err := project{schema: "x.json", out: filepath.Join(projectPackage, "x")}.generate([]byte(tt.schema))
		if err == nil || err.Error() != tt.want {
			t.Errorf("%s:\n%v, want\n%s", tt.schema, err, tt.want)
		}
	}
}
