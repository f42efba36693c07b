// Package outputschema checks a model's answer against the JSON schema of a caller. It
// trusts neither: it loads nothing for a schema, and bounds the cost of a check.
//
// It knows what callers write of the drafts 2020-12 and 07: references within the schema, and the format as
// a note. Other keywords that say what is valid, such as contains, are refused by name.
package outputschema

import (
	stdjson "encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/codexmcp/codexmcp/internal/text"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
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
type Schema struct{ root *node }

// Compile reads a schema, which must be an object. Its draft is 2020-12 unless it names
// another one. References to other schemas fail. The error is a [*FaultError] if a part
// of the schema is wrong.
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
	root, fault := compile(doc)
	if fault != nil {
		return nil, fault
	}
	return &Schema{root}, nil
}

// Words tells a model what its answer is to follow.
func Words(schema stdjson.RawMessage) string {
	return "Your last message is only JSON that follows this schema, with nothing around it:\n" + string(schema)
}

// FaultError is a fault of an answer or of a schema.
type FaultError struct {
	// Path is the JSON pointer of the faulty part, "" for the whole.
	Path string
	// Why describes the fault.
	Why string

	depth int // of the part: how many names Path has
}

// Error implements error.
func (e *FaultError) Error() string {
	if e.Path == "" {
		return e.Why
	}
	return "at " + e.Path + ": " + e.Why
}

// fault returns a fault of the value itself.
func fault(format string, args ...any) *FaultError {
	return &FaultError{Why: brief(fmt.Sprintf(format, args...))}
}

// below returns the fault of a member or an item as a fault of the value that has it.
func (e *FaultError) below(token string) *FaultError {
	return &FaultError{Path: string(jsontext.Pointer("").AppendToken(token)) + e.Path, Why: e.Why, depth: e.depth + 1}
}

// Check returns an answer as a JSON value. The error is a [*FaultError] if the answer is
// not JSON, or does not fit the schema.
func (s *Schema) Check(answer string) (jsontext.Value, error) { return s.checkWithin(answer, maxSteps) }

func (s *Schema) checkWithin(answer string, steps int) (jsontext.Value, error) {
	if len(answer) > maxAnswer {
		return nil, fault("the answer has %d bytes, more than the %d that are checked", len(answer), maxAnswer)
	}
	text := strings.TrimSpace(answer)
	value, err := parse([]byte(text))
	if err != nil {
		return nil, fault("the answer is not JSON alone: %v", err)
	}
	if f := check(s.root, value, steps); f != nil {
		f.Path = brief(f.Path)
		return nil, f
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
			return nil, fmt.Errorf("%s: nested deeper than %d objects and arrays", brief(string(d.StackPointer())),
				maxDepth)
		}
	}
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		return nil, errors.New(brief(err.Error()))
	}
	return v, nil
}

// brief returns a text shortened to maxFault bytes of valid UTF-8.
func brief(words string) string {
	return text.Brief(strings.ToValidUTF8(words, "\uFFFD"), maxFault)
}
