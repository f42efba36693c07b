package main

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// hoister collects the definitions of a schema: those in its container, those in containers
// within that, the root if it is more than a container, and each other place that a $ref names.
type hoister struct {
	root        map[string]any
	owner       string // the pointer to the definition that is being read
	container   string
	names       map[string]string // of definitions, by JSON pointer
	pointers    map[string]string // by name
	definitions map[string]any
	ignored     []string // the pointers to the keywords that say nothing about what is valid
}

// hoist returns the definitions of a schema. Every $ref in them has the form #/$defs/<name>.
func hoist(tree any) *hoister {
	root, _ := tree.(map[string]any)
	key, top := definitionsOf(tree)
	h := &hoister{root, "", "#/" + key, make(map[string]string), make(map[string]string), make(map[string]any), nil}
	for _, inside := range []bool{false, true} { // the names of the container come first
		for _, name := range slices.Sorted(maps.Keys(top)) {
			inner := namespace(top[name])
			if inner == nil && !inside {
				h.add(h.container+"/"+escape(name), top[name], name)
			}
			for _, n := range slices.Sorted(maps.Keys(inner)) {
				if inside {
					h.add(h.container+"/"+escape(name)+"/"+escape(n), inner[n], n, name+" "+n)
				}
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(root)) {
		says := key == "$ref" || key == "enum" || slices.Contains(keywordSchema, key) || slices.Contains(keywordList, key) || slices.Contains(keywordWhole, key)
		if says || key == "properties" || len(top) == 0 && slices.Contains([]string{"type", "const", "not", "if"}, key) {
			h.addRoot()
			break
		}
	}
	for _, name := range slices.Sorted(maps.Keys(h.definitions)) {
		h.owner = h.pointers[name]
		h.definitions[name] = h.rename(h.definitions[name])
	}
	return h
}

// addRoot adds the schema itself as a definition.
func (h *hoister) addRoot() {
	plain := maps.Clone(h.root)
	for _, key := range []string{"definitions", "$defs", "$schema", "$id"} {
		delete(plain, key)
	}
	title, _ := plain["title"].(string)
	h.add("#", plain, cmp.Or(title, "Root"), "Root")
}

// add adds the definition at a pointer under the first name that is free, or that of an equal
// definition.
func (h *hoister) add(pointer string, node any, names ...string) {
	for _, name := range append(names, pointer) {
		old, taken := h.definitions[name]
		if taken && canonical(old) != canonical(node) {
			continue
		}
		if h.names[pointer] = name; !taken {
			h.definitions[name], h.pointers[name] = node, pointer
		}
		return
	}
}

// namespace returns the definitions in a member of the container that is a container itself, or
// nil for a schema.
func namespace(node any) map[string]any {
	inner, ok := node.(map[string]any)
	if !ok || len(inner) == 0 {
		return nil
	}
	for name, d := range inner {
		if _, ok := d.(map[string]any); !ok || slices.Contains(keywordSchema, name) || slices.Contains(keywordMap, name) {
			return nil
		}
	}
	if checkKeywords(node, "") == nil {
		return nil
	}
	return inner
}

// rename returns a schema whose $ref name definitions; it adds the places that no definition has.
func (h *hoister) rename(node any) any {
	switch node := node.(type) {
	case []any:
		list := make([]any, len(node))
		for i, v := range node {
			list[i] = h.rename(v)
		}
		return list
	case map[string]any:
		out := make(map[string]any, len(node))
		for key, v := range node {
			switch pointer, isText := v.(string); {
			case slices.Contains([]string{"const", "enum", "default", "examples"}, key):
				out[key] = v
			case slices.Contains(keywordMap, key), key == "patternProperties", key == "dependentSchemas": // a name may be that of a keyword
				members, isMap := v.(map[string]any)
				inner := make(map[string]any, len(members))
				for name, m := range members {
					inner[name] = h.rename(m)
				}
				if out[key] = inner; !isMap {
					out[key] = v
				}
			case key == "$ref" && isText && strings.HasPrefix(pointer, "#"):
				out[key] = h.target(pointer)
			default:
				out[key] = h.rename(v)
			}
		}
		return out
	}
	return node
}

// target returns the $ref to the definition at a pointer, or the pointer if nothing is there.
func (h *hoister) target(pointer string) string {
	if name, ok := h.names[pointer]; ok {
		return "#/$defs/" + name
	}
	if text, err := url.PathUnescape(pointer); err == nil && h.names[text] != "" {
		return "#/$defs/" + h.names[text]
	}
	node := h.lookUp(pointer)
	if within := h.owner + pointer[1:]; node == nil && pointer != "#" && h.lookUp(within) != nil {
		pointer = within // some generators write a definition as if it were a file of its own
		if name, ok := h.names[pointer]; ok {
			return "#/$defs/" + name
		}
		node = h.lookUp(pointer)
	}
	if pointer == "#" {
		h.addRoot()
	} else if node != nil {
		parts := strings.Split(pointer, "/")
		last := parts[len(parts)-1]
		h.add(pointer, node, last, strings.Join(parts[max(0, len(parts)-3):], " "), fmt.Sprintf("%s %d", last, len(h.names)))
		h.definitions[h.names[pointer]] = h.rename(node)
	} else {
		return strings.Replace(pointer, "#/definitions/", "#/$defs/", 1)
	}
	return "#/$defs/" + h.names[pointer]
}

// lookUp returns the part of the schema at a pointer, or nil.
func (h *hoister) lookUp(pointer string) any {
	var node any = h.root
	for part := range strings.SplitSeq(strings.TrimPrefix(pointer, "#/"), "/") {
		part = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
		switch n := node.(type) {
		case map[string]any:
			node = n[part]
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(n) {
				return nil
			}
			node = n[i]
		default:
			return nil
		}
	}
	return node
}
