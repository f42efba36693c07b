package main

import (
	"fmt"
	"slices"
	"testing"

	"github.com/atombender/go-jsonschema/pkg/schemas"
)

// TestNoUnionIsAny finds the choices where the official schemas write them, and checks that none became raw JSON or an object without a type.
func TestNoUnionIsAny(t *testing.T) {
	t.Parallel()
	models, texts := map[string]*model{}, map[string][][]byte{}
	official, _ := official(t)
	for _, m := range official {
		models[m.version], texts[m.version] = m, [][]byte{upstream(t, m.version)}
	}
	texts["2026-07-28"] = append(texts["2026-07-28"], upstream(t, "tasks"))
	least := map[string]int{ // the choices that are found: unions, and places that have one
		"2024-11-05": 6, "2025-03-26": 6, "2025-06-18": 6, "2025-11-25": 13, "2026-07-28": 30,
	}
	for name, m := range models {
		kinds := map[string]ref{}
		for _, typ := range m.types {
			kinds[typ.origin] = ref{kind: refNamed, name: typ.name}
			for _, f := range typ.fields {
				at := typ.origin + "/" + f.json
				for r := &f.typ; r != nil; r = r.elem {
					kinds[at] = *r
					if r.kind != refNullable {
						at += "/*"
					}
				}
			}
		}
		found := 0
		for _, text := range texts[name] {
			for definition, d := range rawDefinitions(t, text) {
				if isMessage(definition) && kinds[definition].name == "" {
					continue
				}
				for _, at := range choices(definition, d) {
					r, ok := kinds[at]
					if found++; !ok {
						t.Errorf("%s: nothing was made of %s", name, at)
					} else if slices.Contains([]refKind{refAny, refObject, refMembers}, r.kind) {
						t.Errorf("%s: %s is %s", name, at, r)
					}
				}
			}
		}
		if found < least[name] {
			t.Errorf("%s: %d choices, want %d", name, found, least[name])
		}
	}
}

// choices returns the places of a schema that have several arms besides null.
func choices(at string, node any) (places []string) {
	m, ok := node.(map[string]any)
	if !ok {
		return nil
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		arms, _ := m[key].([]any)
		n := 0
		for _, a := range arms {
			arm, _ := a.(map[string]any)
			if arm["type"] != "null" {
				n++
			}
		}
		if n > 1 {
			places = append(places, at)
			for i, a := range arms { // those of other types are copies of definitions
				arm, _ := a.(map[string]any)
				if arm["properties"] == nil {
					continue
				}
				places = append(places, inside(fmt.Sprintf("%s/%s/%d", at, key, i), arm)...)
			}
		}
	}
	return append(places, inside(at, m)...)
}

// inside returns the choices of a schema's members and elements.
func inside(at string, m map[string]any) (places []string) {
	properties, _ := m["properties"].(map[string]any)
	for member, p := range properties {
		places = append(places, choices(at+"/"+member, p)...)
	}
	for _, key := range keywordSchema {
		places = append(places, choices(at+"/*", m[key])...)
	}
	return places
}

// TestCommonTags checks which members tell the arms of a choice apart: constants of all arms, which are not all the same.
// At most one arm may leave it out.
func TestCommonTags(t *testing.T) {
	arms := func(required ...bool) map[string]*schemas.Type {
		shapes := map[string]*schemas.Type{}
		for i, r := range required {
			shape := &schemas.Type{Properties: map[string]*schemas.Type{
				"kind": {Const: fmt.Sprint("k", i)}, "same": {Const: "s"}, "free": {},
			}}
			if r {
				shape.Required = []string{"kind", "same"}
			}
			shapes[fmt.Sprint("A", i)] = shape
		}
		return shapes
	}
	for _, tt := range []struct {
		required []bool
		want     []string
	}{
		{[]bool{true, true}, []string{"kind"}}, {[]bool{true, false}, []string{"kind"}},
		{[]bool{false, false}, nil}, {[]bool{false, true, false}, nil}, {[]bool{true}, []string{"kind", "same"}},
	} {
		b := &builder{shapes: arms(tt.required...)}
		u := &goType{}
		for i := range tt.required {
			u.union.arms = append(u.union.arms, &arm{name: fmt.Sprint("A", i)})
		}
		if got := b.commonTags(u); !slices.Equal(got, tt.want) {
			t.Errorf("required %v: %v, want %v", tt.required, got, tt.want)
		}
	}
	one, same := &arm{name: "a", tags: []string{"x"}}, &arm{name: "b", tags: []string{"y", "x"}}
	if !overlap([]*arm{one, same}) {
		t.Error("arms with the same tag do not overlap")
	}
	same.present = []string{"m"}
	if overlap([]*arm{one, same}) {
		t.Error("arms with the same tag and another member overlap")
	}
}
