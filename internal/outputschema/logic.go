package outputschema

// logic is the keywords that combine schemas for the same value.
func (k *keywords) logic() {
	for _, n := range k.schemaList("allOf") {
		k.rule(func(r *run, value any) *FaultError { return r.visit(n, value) })
	}
	k.choose(k.schemaList("anyOf"), false)
	k.choose(k.schemaList("oneOf"), true)
	if not := k.schema("not"); not != nil {
		k.rule(func(r *run, value any) *FaultError {
			if r.visit(not, value) == nil {
				return fault("the value fits the schema of not")
			}
			return nil
		})
	}
	k.condition(k.schema("if"), k.schema("then"), k.schema("else"))
}

// choose makes the rule that a value fits one of several schemas, and only one.
func (k *keywords) choose(schemas []*node, only bool) {
	if len(schemas) == 0 {
		return
	}
	k.rule(func(r *run, value any) *FaultError {
		var nearest *FaultError
		first := -1
		for i, n := range schemas {
			switch f := r.visit(n, value); {
			case f != nil:
				nearest = nearer(nearest, f)
			case !only:
				return nil
			case first >= 0:
				return fault("it fits the schemas %d and %d of oneOf, want only one", first, i)
			default:
				first = i
			}
		}
		if first >= 0 {
			return nil
		}
		return nearest
	})
}

// nearer returns the fault to report if a value fits none of several schemas: the one that
// lies deepest, because the others are of schemas that are not meant.
func nearer(f, other *FaultError) *FaultError {
	switch {
	case f == nil:
		return other
	case other == nil:
		return f
	case other.depth > f.depth:
		return other
	case f.depth == 0 && f.Why != other.Why:
		return fault("%s, or %s", f.Why, other.Why)
	}
	return f
}

func (k *keywords) condition(condition, then, otherwise *node) {
	if condition == nil {
		return
	}
	k.rule(func(r *run, value any) *FaultError {
		next := then
		if r.visit(condition, value) != nil {
			next = otherwise
		}
		if next == nil {
			return nil
		}
		return r.visit(next, value)
	})
}

// reference is the keyword $ref.
func (k *keywords) reference() {
	text, ok := k.text("$ref")
	if !ok {
		return
	}
	target := new(*node)
	k.refs = append(k.refs, reference{k.at, text, target})
	k.rule(func(r *run, value any) *FaultError { return r.visit(*target, value) })
}
