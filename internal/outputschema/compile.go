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
	node     *node     // set if the place is a schema
	resource *resource // the same
}

// resource is a schema with an address, and the names in it.
type resource struct {
	base    *url.URL
	root    *place
	anchors map[string]*place
}

// compiler compiles a schema.
type compiler struct {
	draft     int                  // 2020 or 7, or 0 for another
	resources map[string]*resource // by address
	refs      []reference          // not resolved yet
	patterns  int                  // bytes
	formats   map[string]func(string) bool
	fault     *FaultError // the first
}

// reference is a reference to a schema, which link gets.
type reference struct {
	at   *place // of the schema with the keyword $ref
	text string
	link **node
}

// compile compiles a schema.
func compile(doc any) (*node, *FaultError) {
	c := &compiler{draft: 2020, resources: map[string]*resource{}, formats: map[string]func(string) bool{}}
	root := &place{value: doc}
	if name, ok := doc.(map[string]any)["$schema"]; ok {
		c.draft = draftOf(name)
	}
	// Relative references are resolved against a made-up address.
	base := &resource{&url.URL{Scheme: "schema", Path: "/output-schema"}, root, map[string]*place{}}
	c.resources[base.base.String()] = base
	n := c.schema(root, base)
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

// schema compiles a place that is a schema in a resource.
func (c *compiler) schema(at *place, in *resource) *node {
	if at.node != nil {
		return at.node
	}
	at.node, at.resource = &node{}, in
	switch value := at.value.(type) {
	case bool:
		if at.node.never = !value; at.node.never {
			at.node.rules = []rule{func(*run, any, tokens) *FaultError { return fault("no value is allowed here") }}
		}
	case map[string]any:
		k := &keywords{compiler: c, at: at}
		k.identify()
		k.compile()
	default:
		c.fail(at, "got %s, want a schema, which is an object or a boolean", kindOf(value))
	}
	return at.node
}

// identify reads the names of a schema. A name that begins a resource changes it.
func (k *keywords) identify() {
	if name := k.member("$schema"); name != nil && (k.draft == 0 || draftOf(name.value) != k.draft) {
		k.fail(name, "want the address of draft 2020-12 or 07, the same in the whole schema")
	}
	if id := k.member("$id"); id != nil && !k.refAlone() {
		k.id(id)
	}
	if k.draft == 7 {
		return
	}
	for _, name := range []string{"$anchor", "$dynamicAnchor"} {
		if anchor, ok := k.text(name); ok {
			k.anchor(k.member(name), anchor)
		}
	}
}

// refAlone reports whether the draft ignores the other keywords of a schema with a $ref.
func (k *keywords) refAlone() bool { return k.draft == 7 && k.member("$ref") != nil }

func (k *keywords) id(at *place) {
	text, ok := k.text("$id")
	if !ok {
		return
	}
	address, err := k.at.resource.base.Parse(text)
	if err != nil {
		k.fail(at, "%v", errors.Unwrap(err))
		return
	}
	name := address.Fragment
	address.Fragment, address.RawFragment = "", ""
	switch key := address.String(); {
	case name != "" && k.draft == 2020:
		k.fail(at, "want an address without a fragment")
		return
	case text == "", text[0] == '#':
	case k.resources[key] != nil:
		k.fail(at, "another schema has the same $id")
		return
	default:
		k.at.resource = &resource{address, k.at, map[string]*place{}}
		k.resources[key] = k.at.resource
	}
	if name != "" {
		k.anchor(at, name)
	}
}

func (k *keywords) anchor(at *place, name string) {
	anchors := k.at.resource.anchors
	if other := anchors[name]; other != nil && other != k.at {
		k.fail(at, "another schema has the same name")
		return
	}
	anchors[name] = k.at
}

// errForeign is the error of a reference to another schema.
var errForeign = errors.New("other schemas are not loaded: put this one into $defs")

// resolve returns the schema that a reference means, and compiles it if nothing did.
func (c *compiler) resolve(ref reference) *node {
	target, err := c.find(ref)
	if err != nil {
		c.fail(ref.at.child("$ref"), "%q: %v", clip(ref.text), err)
		return nil
	}
	in := ref.at.resource
	for p := target; p != nil; p = p.parent {
		if p.resource != nil {
			in = p.resource
			break
		}
	}
	return c.schema(target, in)
}

func (c *compiler) find(ref reference) (*place, error) {
	in := ref.at.resource
	address, err := in.base.Parse(ref.text)
	if err != nil {
		return nil, errors.Unwrap(err)
	}
	name := address.Fragment
	if !strings.HasPrefix(ref.text, "#") {
		address.Fragment, address.RawFragment = "", ""
		if in = c.resources[address.String()]; in == nil {
			return nil, errForeign
		}
	}
	if name == "" {
		return in.root, nil
	}
	if name[0] != '/' {
		if target := in.anchors[name]; target != nil {
			return target, nil
		}
		return nil, fmt.Errorf("no schema has the name %q", clip(name))
	}
	if !jsontext.Pointer(name).IsValid() {
		return nil, errors.New("the JSON pointer is malformed")
	}
	target := in.root
	for token := range jsontext.Pointer(name).Tokens() {
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
