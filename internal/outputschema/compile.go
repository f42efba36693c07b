package outputschema

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// place is a value of a schema's text.
type place struct {
	parent   *place
	token    string
	value    any
	children map[string]*place
	node     *node // set if the place is a schema
}

// compiler compiles a schema.
type compiler struct {
	draft    int // 2020 or 7, or 0 for another
	root     *place
	refs     []reference // not resolved yet
	patterns int         // bytes
	fault    *FaultError // the first
}

// reference is a reference to a schema, which link gets.
type reference struct {
	at   *place // of the schema with the keyword $ref
	text string
	link **node
}

// compile compiles a schema.
func compile(doc any) (*node, *FaultError) {
	c := &compiler{draft: 2020, root: &place{value: doc}}
	if name, ok := doc.(map[string]any)["$schema"]; ok {
		c.draft = draftOf(name)
	}
	n := c.schema(c.root)
	for len(c.refs) > 0 && c.fault == nil {
		ref := c.refs[0]
		c.refs = c.refs[1:]
		*ref.link = c.resolve(ref)
	}
	return n, c.fault
}

// draftOf returns the draft with an address, 0 for an unknown one.
func draftOf(name any) int {
	text, _ := name.(string)
	text = strings.TrimSuffix(text, "#")
	text = strings.TrimPrefix(strings.TrimPrefix(text, "http://"), "https://")
	switch text {
	case "json-schema.org/schema", "json-schema.org/draft/2020-12/schema":
		return 2020
	case "json-schema.org/draft-07/schema":
		return 7
	}
	return 0
}

// fail records a fault, unless there is one already.
func (c *compiler) fail(at *place, format string, args ...any) {
	if c.fault != nil {
		return
	}
	f := fault(format, args...)
	for ; at.parent != nil; at = at.parent {
		f = f.below(at.token)
	}
	f.Path = brief(f.Path)
	c.fault = f
}

// child returns a member or an item of a place, nil if there is none.
func (p *place) child(token string) *place {
	if child := p.children[token]; child != nil {
		return child
	}
	child := &place{parent: p, token: token}
	switch value := p.value.(type) {
	case map[string]any:
		member, ok := value[token]
		if !ok {
			return nil
		}
		child.value = member
	case []any:
		i, err := strconv.Atoi(token)
		if err != nil || i < 0 || i >= len(value) || token != strconv.Itoa(i) {
			return nil
		}
		child.value = value[i]
	default:
		return nil
	}
	if p.children == nil {
		p.children = map[string]*place{}
	}
	p.children[token] = child
	return child
}

// schema compiles a place that is a schema.
func (c *compiler) schema(at *place) *node {
	if at.node != nil {
		return at.node
	}
	at.node = &node{}
	switch value := at.value.(type) {
	case bool:
		if at.node.never = !value; at.node.never {
			at.node.rules = []rule{func(*run, any) *FaultError { return fault("no value is allowed here") }}
		}
	case map[string]any:
		k := &keywords{compiler: c, at: at}
		k.compile()
	default:
		c.fail(at, "got %s, want a schema, which is an object or a boolean", kindOf(value))
	}
	return at.node
}

// errForeign is the error of a reference to another schema.
var errForeign = errors.New("other schemas are not loaded: put this one into $defs")

// resolve returns the schema that a reference means, and compiles it if nothing did.
func (c *compiler) resolve(ref reference) *node {
	target, err := c.find(ref.text)
	if err != nil {
		c.fail(ref.at.child("$ref"), "%q: %v", clip(ref.text), err)
		return nil
	}
	return c.schema(target)
}

// find returns the place that a reference means: # and a JSON pointer, escaped as part of a URI.
func (c *compiler) find(text string) (*place, error) {
	pointer, ok := strings.CutPrefix(text, "#")
	if !ok {
		return nil, errForeign
	}
	pointer, err := url.PathUnescape(pointer)
	if err != nil {
		return nil, err
	}
	if !jsontext.Pointer(pointer).IsValid() {
		return nil, errors.New("want # and a JSON pointer")
	}
	target := c.root
	for token := range jsontext.Pointer(pointer).Tokens() {
		if target = target.child(token); target == nil {
			return nil, fmt.Errorf("nothing is there: it has no %q", clip(token))
		}
	}
	return target, nil
}

// clip shortens a text that an error quotes.
func clip(text string) string {
	const most = 100
	if len(text) <= most {
		return text
	}
	return text[:most] + "…"
}

// kindOf returns what a value is, in the words of the keyword type.
func kindOf(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case float64:
		return "number"
	case string:
		return "string"
	case []any:
		return "array"
	default:
		return "object"
	}
}

var kinds = []string{"null", "boolean", "number", "integer", "string", "array", "object"}
