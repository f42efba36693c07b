// Package outputschema checks a model's answer against the JSON schema of a caller. It
// trusts neither: it loads nothing for a schema, and bounds the cost of a check.
package outputschema

import (
	stdjson "encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Limits of a schema and of an answer.
const (
	maxSchema   = 64 << 10 // bytes
	maxPatterns = 4 << 10  // bytes, of all patterns together
	maxDepth    = 64       // of nested objects and arrays
	maxAnswer   = 512 << 10
	maxFault    = 500 // bytes of an error's text
)

// Schema is a JSON schema for answers. It is safe for concurrent use.
type Schema struct {
	compiled *jsonschema.Schema

	mu    sync.Mutex // one check at a time
	steps steps
}

// errForeign is the error of a reference to another schema.
var errForeign = errors.New("other schemas are not loaded: put this one into $defs")

// noLoader loads nothing.
type noLoader struct{}

func (noLoader) Load(string) (any, error) { return nil, errForeign }

// address is the schema's made-up address. Relative references are resolved against it.
const address = "schema:///output-schema"

// Compile reads a schema, which must be an object. Its draft is 2020-12 unless it names
// another standard one. References to other schemas fail.
func Compile(raw stdjson.RawMessage) (*Schema, error) {
	if jsontext.Value(raw).Kind() != '{' {
		return nil, errors.New("want an object, a JSON schema")
	}
	if len(raw) > maxSchema {
		return nil, fmt.Errorf("it has %d bytes, want at most %d", len(raw), maxSchema)
	}
	doc, err := parse(raw)
	if err != nil {
		return nil, err
	}
	s := &Schema{}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(noLoader{})
	c.UseRegexpEngine(s.steps.pattern)
	c.RegisterVocabulary(s.steps.vocabulary())
	c.AssertVocabs()
	if err := c.AddResource(address, doc); err != nil {
		return nil, errors.New(brief(err.Error()))
	}
	s.steps.begin()
	err = s.steps.run(func() (err error) {
		s.compiled, err = c.Compile(address)
		return err
	})
	var invalid *jsonschema.SchemaValidationError
	var fault *jsonschema.ValidationError
	switch {
	case err == nil:
		return s, nil
	case errors.As(err, &invalid) && errors.As(invalid.Err, &fault):
		return nil, errors.New(describe(fault))
	}
	return nil, errors.New(brief(strings.ReplaceAll(err.Error(), address, "")))
}

// FaultError is a fault of an answer.
type FaultError struct {
	// Path is the JSON pointer of the part that does not fit, "" for the whole.
	Path string
	// Why describes the fault.
	Why string
}

// Error implements error.
func (e *FaultError) Error() string {
	if e.Path == "" {
		return e.Why
	}
	return "at " + e.Path + ": " + e.Why
}

// Check returns an answer as a JSON value. The error is a [*FaultError] if the answer is
// not JSON, or does not fit the schema.
func (s *Schema) Check(answer string) (jsontext.Value, error) {
	if len(answer) > maxAnswer {
		return nil, &FaultError{Why: fmt.Sprintf("the answer has %d bytes, more than the %d that are checked", len(answer), maxAnswer)}
	}
	text := strings.TrimSpace(answer)
	value, err := parse([]byte(text))
	if err != nil {
		return nil, &FaultError{Why: "the answer is not JSON alone: " + err.Error()}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steps.begin()
	err = s.steps.run(func() error { return s.compiled.Validate(value) })
	var fault *jsonschema.ValidationError
	switch {
	case errors.As(err, &fault):
		path, why := innermost(fault)
		return nil, &FaultError{Path: path, Why: why}
	case err != nil:
		return nil, &FaultError{Why: brief(err.Error())}
	}
	return jsontext.Value(text), nil
}

// parse reads a JSON text. It reads numbers as floating point: the cost of exact
// arithmetic grows with the exponent, which the text chooses.
func parse(text []byte) (any, error) {
	d := jsontext.NewDecoder(strings.NewReader(string(text)))
	for {
		if _, err := d.ReadToken(); err == io.EOF {
			break
		} else if err != nil {
			return nil, errors.New(brief(err.Error()))
		}
		if d.StackDepth() > maxDepth {
			return nil, fmt.Errorf("%s: nested deeper than %d objects and arrays", brief(string(d.StackPointer())), maxDepth)
		}
	}
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		return nil, errors.New(brief(err.Error()))
	}
	return v, nil
}

// innermost returns the place of the first fault, and its description.
func innermost(e *jsonschema.ValidationError) (path, why string) {
	for len(e.Causes) > 0 {
		e = e.Causes[0]
	}
	pointer := jsontext.Pointer("")
	for _, name := range e.InstanceLocation {
		pointer = pointer.AppendToken(name)
	}
	alone := &jsonschema.ValidationError{ErrorKind: e.ErrorKind, SchemaURL: e.SchemaURL}
	return brief(string(pointer)), brief(strings.TrimPrefix(alone.Error(), "at '': "))
}

// describe describes the fault of a schema.
func describe(e *jsonschema.ValidationError) string {
	path, why := innermost(e)
	if path == "" {
		return "it is not a JSON schema: " + why
	}
	return "it is not a JSON schema, at " + path + ": " + why
}

// brief returns a text shortened to maxFault bytes of valid UTF-8.
func brief(words string) string {
	words = strings.ToValidUTF8(words, "\uFFFD")
	if len(words) <= maxFault {
		return words
	}
	n := maxFault
	for !utf8.RuneStart(words[n]) {
		n--
	}
	return words[:n] + "…"
}
