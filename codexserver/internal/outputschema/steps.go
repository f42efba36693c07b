package outputschema

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// A schema whose parts refer to one another can have an answer looked at more often
// than there is time for, and so can a pattern. So the steps of a check are counted:
// a schema that looks at a part of the answer takes visit of them, a pattern as many
// as it has instructions for each byte.
const (
	maxSteps = 50_000_000
	visit    = 400
)

// errSteps ends a check.
var errSteps = errors.New("the answer takes too many steps to check against the schema")

// steps counts those of one compilation or check.
type steps struct {
	left     int
	patterns int // bytes
}

func (s *steps) begin() { s.left, s.patterns = maxSteps, 0 }

// take takes n steps. It panics with errSteps when there are not as many.
func (s *steps) take(n int) {
	if s.left -= n; s.left < 0 {
		panic(errSteps)
	}
}

// run runs f, and returns errSteps when it takes too many steps.
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

// vocabulary has no words of its own: it takes a step for each schema that looks at
// a value.
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
		return nil, fmt.Errorf("its patterns together have more than %d bytes", maxPatterns)
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

// pattern is a regular expression that takes steps.
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
