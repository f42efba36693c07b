package outputschema

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Schemas that refer to one another, and patterns, can make a check take forever. So a
// check counts its steps: visit for each part of the answer that a schema checks, and for
// each byte that a pattern reads the number of the pattern's instructions.
const (
	maxSteps = 50_000_000
	visit    = 400
)

// errSteps ends a check that takes too many steps.
var errSteps = errors.New("the answer takes too many steps to check against the schema")

// steps counts the steps of one compilation or check.
type steps struct {
	left     int
	patterns int // bytes
}

func (s *steps) begin() { s.left, s.patterns = maxSteps, 0 }

// take takes n steps. It panics with errSteps if fewer are left.
func (s *steps) take(n int) {
	if s.left -= n; s.left < 0 {
		panic(errSteps)
	}
}

// run runs f, and returns errSteps if that takes too many steps.
func (s *steps) run(f func() error) (err error) {
	defer func() {
		if r := recover(); r == errSteps {
			err = errSteps
		} else if r != nil {
			panic(r)
		}
	}()
	return f()
}

// vocabulary returns a vocabulary without keywords. It only takes the steps of each
// schema that checks a value.
func (s *steps) vocabulary() *jsonschema.Vocabulary {
	return &jsonschema.Vocabulary{
		URL:     "schema:///steps",
		Compile: func(*jsonschema.CompilerContext, map[string]any) (jsonschema.SchemaExt, error) { return s, nil },
	}
}

// Validate implements [jsonschema.SchemaExt].
func (s *steps) Validate(_ *jsonschema.ValidatorContext, _ any) { s.take(visit) }

// pattern compiles a regular expression.
func (s *steps) pattern(text string) (jsonschema.Regexp, error) {
	if s.patterns += len(text); s.patterns > maxPatterns {
		return nil, fmt.Errorf("the patterns have more than %d bytes together", maxPatterns)
	}
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, err
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, err
	}
	r, err := regexp.Compile(text)
	if err != nil {
		return nil, err
	}
	return &pattern{r, s, len(program.Inst)}, nil
}

// pattern is a regular expression that counts its steps.
type pattern struct {
	*regexp.Regexp
	steps *steps
	size  int
}

// MatchString implements [jsonschema.Regexp].
func (p *pattern) MatchString(text string) bool {
	p.steps.take((len(text) + 1) * p.size)
	return p.Regexp.MatchString(text)
}
