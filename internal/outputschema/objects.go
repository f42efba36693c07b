package outputschema

// object is the keywords for objects.
func (k *keywords) object() {
	k.size("minProperties", "maxProperties", "properties", func(_ *run, value any) int {
		if object, ok := value.(map[string]any); ok {
			return len(object)
		}
		return -1
	})
	if at := k.member("required"); at != nil {
		k.required(k.strings(at))
	}
	k.properties()
	if names := k.schema("propertyNames"); names != nil {
		k.rule(func(r *run, value any) *FaultError {
			object, _ := value.(map[string]any)
			for _, name := range r.names(object) {
				if f := r.visit(names, name); f != nil {
					return fault("the property name '%s': %s", clip(name), f.Why)
				}
			}
			return nil
		})
	}
}

// required is the keyword required.
func (k *keywords) required(names []string) {
	k.rule(func(r *run, value any) *FaultError {
		object, ok := value.(map[string]any)
		if !ok {
			return nil
		}
		r.take(entryCost * len(names))
		var missing []string
		for _, name := range names {
			if _, ok := object[name]; !ok {
				missing = append(missing, name)
			}
		}
		if missing == nil {
			return nil
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
		patterns = append(patterns, family{k.pattern(at, text), k.compiler.schema(at)})
	})
	additional := k.schema("additionalProperties")
	if len(named) == 0 && patterns == nil && additional == nil {
		return
	}
	k.rule(func(r *run, value any) *FaultError {
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
				if f := r.visit(n, object[name]); f != nil {
					return f.below(name)
				}
			}
		}
		if excess != nil {
			return fault("additional %s not allowed", quoted(excess))
		}
		return nil
	})
}
