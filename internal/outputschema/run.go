package outputschema

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Schemas that refer to one another, and patterns, can make a check take forever. So a
// check counts its steps. A step takes about 10 ns: a pattern needs one for each byte that it
// reads and each of its instructions.
const (
	maxSteps  = 50_000_000
	visitCost = 100   // of each part of the answer that a schema checks
	entryCost = 30    // of each entry of an object or a set
	maxVisits = 2_000 // nested
)

// errSteps and errDeep end a check.
var (
	errSteps = errors.New("the answer takes too many steps to check against the schema")
	errDeep  = errors.New("the schema refers to itself too deeply")
)

// A node is a compiled schema.
type node struct {
	rules []rule
	never bool // the schema false
}

// A rule is the check of one or more keywords.
type rule func(r *run, value any) *FaultError

// run is one check.
type run struct {
	steps  int // left
	visits int // nested
}

// check checks a value within a number of steps. Its faults have a path.
func check(root *node, value any, steps int) (f *FaultError) {
	defer func() {
		if e := recover(); e == errSteps || e == errDeep {
			f = fault("%v", e)
		} else if e != nil {
			panic(e)
		}
	}()
	r := &run{steps: steps}
	return r.visit(root, value)
}

// take takes n steps. It panics with errSteps if fewer are left.
func (r *run) take(n int) {
	if r.steps -= n; r.steps < 0 {
		panic(errSteps)
	}
}

// visit checks a value against a schema.
func (r *run) visit(n *node, value any) *FaultError {
	if len(n.rules) == 0 {
		r.take(visitCost / 20)
		return nil
	}
	r.take(visitCost)
	if r.visits++; r.visits > maxVisits {
		panic(errDeep)
	}
	defer func() { r.visits-- }()
	for _, rule := range n.rules {
		if f := rule(r, value); f != nil {
			return f
		}
	}
	return nil
}

// names returns the sorted names of an object's members.
func (r *run) names(object map[string]any) []string {
	names := slices.Sorted(maps.Keys(object))
	for _, name := range names {
		r.take(4*entryCost + len(name))
	}
	return names
}

// key returns a text that is the same for equal values only.
func (r *run) key(value any) string {
	key := keyOf(value)
	r.take(entryCost + len(key))
	return key
}

// keyOf returns the canonical JSON of a value.
func keyOf(value any) string {
	key, err := json.Marshal(value, jsontext.AllowInvalidUTF8(true))
	if err == nil {
		err = (*jsontext.Value)(&key).Canonicalize(jsontext.AllowInvalidUTF8(true))
	}
	if err != nil {
		return fmt.Sprint(value) // it was no JSON
	}
	return string(key)
}
