package outputschema

import (
	"maps"
	"slices"
	"strconv"
)

// object is the keywords for objects.
func (k *keywords) object() {
	k.size("minProperties", "maxProperties", "properties", func(_ *run, value any) int {
		if object, ok := value.(map[string]any); ok {
			return len(object)
		}
		return -1
	})
	if at := k.member("required"); at != nil {
		k.required(k.strings(at), nil)
	}
	k.properties()
	if names := k.schema("propertyNames"); names != nil {
		k.rule(func(r *run, value any, _ tokens) *FaultError {
			object, _ := value.(map[string]any)
			for _, name := range r.names(object) {
				if f := r.visit(names, name, nil); f != nil {
					return fault("the property name '%s': %s", clip(name), f.Why)
				}
			}
			return nil
		})
	}
	k.dependencies()
}

// required is the keyword required, or its part that depends on another property.
func (k *keywords) required(names []string, because *string) {
	k.rule(func(r *run, value any, _ tokens) *FaultError {
		object, ok := value.(map[string]any)
		if !ok {
			return nil
		}
		if because != nil {
			if _, ok := object[*because]; !ok {
				return nil
			}
		}
		r.take(entryCost * len(names))
		var missing []string
		for _, name := range names {
			if _, ok := object[name]; !ok {
				missing = append(missing, name)
			}
		}
		switch {
		case missing == nil:
			return nil
		case because != nil:
			return fault("with property '%s', missing %s", clip(*because), quoted(missing))
		}
		return fault("missing %s", quoted(missing))
	})
}

// quoted lists names of properties.
func quoted(names []string) string {
	words := "property "
	if len(names) > 1 {
		words = "properties "
	}
	for i, name := range names {
		if len(words) > maxFault {
			break
		}
		if i > 0 {
			words += ", "
		}
		words += "'" + clip(name) + "'"
	}
	return words
}

// properties is the keywords properties, patternProperties and additionalProperties.
func (k *keywords) properties() {
	type family struct {
		*pattern
		*node
	}
	var patterns []family
	named := k.schemaMap("properties")
	k.members("patternProperties", func(text string, at *place) {
		patterns = append(patterns, family{k.pattern(at, text), k.compiler.schema(at, k.at.resource)})
	})
	additional := k.schema("additionalProperties")
	if len(named) == 0 && patterns == nil && additional == nil {
		return
	}
	k.rule(func(r *run, value any, done tokens) *FaultError {
		object, _ := value.(map[string]any)
		var excess []string
		for _, name := range r.names(object) {
			var schemas []*node
			if n := named[name]; n != nil {
				schemas = append(schemas, n)
			}
			for _, p := range patterns {
				if p.match(r, name) {
					schemas = append(schemas, p.node)
				}
			}
			switch {
			case schemas != nil || additional == nil:
			case additional.never:
				excess = append(excess, name)
				continue
			default:
				schemas = append(schemas, additional)
			}
			for _, n := range schemas {
				if f := r.visit(n, object[name], nil); f != nil {
					return f.below(name)
				}
				r.add(done, name)
			}
		}
		if excess != nil {
			return fault("additional %s not allowed", quoted(excess))
		}
		return nil
	})
}

// dependencies is the keywords dependentRequired, dependentSchemas and dependencies, the
// older keyword for both.
func (k *keywords) dependencies() {
	schemas := map[string]*node{}
	if k.draft == 2020 {
		k.members("dependentRequired", func(name string, at *place) { k.required(k.strings(at), &name) })
		schemas = k.schemaMap("dependentSchemas")
	}
	k.members("dependencies", func(name string, at *place) {
		if kindOf(at.value) == "array" {
			k.required(k.strings(at), &name)
		} else {
			schemas[name] = k.compiler.schema(at, k.at.resource)
		}
	})
	for _, name := range slices.Sorted(maps.Keys(schemas)) {
		k.rule(func(r *run, value any, done tokens) *FaultError {
			object, _ := value.(map[string]any)
			if _, ok := object[name]; !ok {
				return nil
			}
			return r.visit(schemas[name], value, done)
		})
	}
}

// unevaluated is the keywords for what no other keyword evaluated. Their rules come last.
func (k *keywords) unevaluated() {
	items, properties := k.schema("unevaluatedItems"), k.schema("unevaluatedProperties")
	if items == nil && properties == nil {
		return
	}
	k.at.node.collect = true
	k.rule(func(r *run, value any, done tokens) *FaultError {
		switch value := value.(type) {
		case []any:
			for i, item := range value {
				if f := r.rest(items, strconv.Itoa(i), item, done); f != nil {
					return f
				}
			}
		case map[string]any:
			for _, name := range r.names(value) {
				if f := r.rest(properties, name, value[name], done); f != nil {
					return f
				}
			}
		}
		return nil
	})
}

// rest checks a member or an item if nothing evaluated it.
func (r *run) rest(schema *node, token string, value any, done tokens) *FaultError {
	r.take(entryCost)
	if schema == nil || done[token] {
		return nil
	}
	if schema.never {
		return fault("'%s' is not allowed", clip(token))
	}
	if f := r.visit(schema, value, nil); f != nil {
		return f.below(token)
	}
	r.add(done, token)
	return nil
}
