package main

import (
	"maps"
	"slices"
	"strings"
)

// methods pairs every request and notification with its params and result.
func (b *builder) methods() (methods []*method, err error) {
	byName := make(map[string]*method)
	add := func(name string, client, server bool) error {
		m := byName[name]
		if m == nil {
			if m, err = b.method(name); err != nil {
				return err
			}
			for _, other := range slices.Sorted(maps.Keys(byName)) {
				if byName[other].name == m.name {
					return b.refuse(name+"/method", "the method %s is that of %s, too", m.name, other)
				}
			}
			byName[name] = m
		}
		m.client, m.server = m.client || client, m.server || server
		return nil
	}
	for _, union := range slices.Sorted(maps.Keys(messageUnions)) {
		row, names := messageUnions[union], []string(nil)
		switch u := b.types[union]; {
		case u == nil:
		case u.kind == kindAlias:
			names = []string{u.target}
		default:
			for _, a := range u.union.arms {
				names = append(names, a.name)
			}
		}
		for _, name := range names {
			if err := add(name, row.client, row.server); err != nil {
				return nil, err
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(b.extension)) {
		t := b.types[name]
		if t == nil || !slices.ContainsFunc(t.fields, func(f *field) bool { return f.json == "method" && f.constant }) {
			continue
		}
		request := strings.HasSuffix(name, "Request")
		if err := add(name, request, !request); err != nil {
			return nil, err
		}
	}
	return slices.SortedFunc(maps.Values(byName), func(x, y *method) int { return strings.Compare(x.name, y.name) }),
		nil
}

func (b *builder) method(definition string) (*method, error) {
	t := b.types[definition]
	m := new(method)
	for _, f := range t.fields {
		switch f.json {
		case "method":
			m.name = f.typ.constant
		case "params":
			m.params, m.required = f.typ.name, f.required
		}
	}
	if m.name == "" || m.params == "" {
		return nil, b.refuse(definition, "a message needs a constant method, and params")
	}
	if p := b.types[m.params]; p != nil && p.kind == kindUnion {
		m.params = "json.RawMessage" // a method needs a type that can decode itself
	}
	var err error
	if m.goName, err = goName(m.name); err != nil {
		return nil, err
	}
	if stem, ok := strings.CutSuffix(definition, "Request"); ok {
		m.result = b.resultOf(stem)
		r := b.types[m.result]
		if r == nil {
			return nil, b.refuse(definition, "no result")
		}
		m.union = r.kind == kindUnion
	}
	return m, nil
}

// resultOf returns the type of a request's result: that in its response if the schema
// describes the response, else the result of the same name, else EmptyResult.
func (b *builder) resultOf(stem string) string {
	if response := b.types[stem+"ResultResponse"]; response != nil {
		for _, f := range response.fields {
			if f.json == "result" {
				return f.typ.name
			}
		}
	}
	if b.types[stem+"Result"] != nil {
		return stem + "Result"
	}
	return "EmptyResult"
}

// dropMessages drops the types of whole messages, and what only they use: the envelope of a message is that of
// JSON-RPC, and its params and result have types of their own. A message that is part of another one stays.
func (b *builder) dropMessages(methods []*method) {
	used := make(map[string]bool)
	var use func(name string)
	useRef := func(r *ref) {
		for ; r != nil; r = r.elem {
			use(r.name)
		}
	}
	use = func(name string) {
		t := b.types[name]
		if t == nil || used[name] {
			return
		}
		used[name] = true
		use(t.target)
		useRef(&t.elem)
		for _, f := range t.fields {
			useRef(&f.typ)
		}
		if t.beside != nil {
			useRef(&t.beside.typ)
		}
		for _, a := range t.union.arms {
			use(a.name)
		}
		for _, list := range t.union.lists {
			use(list)
		}
	}
	for _, m := range methods {
		use(m.params)
		use(m.result)
	}
	for name, t := range b.types {
		definition, _, _ := strings.Cut(t.origin, "/")
		if !isMessage(definition) {
			use(name)
		}
	}
	maps.DeleteFunc(b.types, func(name string, _ *goType) bool { return !used[name] })
}

// isMessage reports whether a definition is one of whole messages.
func isMessage(definition string) bool {
	for _, end := range []string{"Request", "Notification", "ResultResponse", "ClientResult", "ServerResult"} {
		if strings.HasSuffix(definition, end) {
			return true
		}
	}
	return strings.HasPrefix(definition, "JSONRPC")
}
