package schematest

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// TestTags checks that each field has a json tag, and that its name is that under which the codec writes the field: the codec
// does not read the tags. It makes random instances until each field has had a value, and gives one to what no schema has.
func (p *Package) TestTags(t *testing.T) {
	tags := &tags{Package: p, left: make(map[string]bool), seen: make(map[reflect.Type]bool)}
	for _, make := range p.Definitions {
		tags.add(t, reflect.TypeOf(make()).Elem())
	}
	made := 0
	p.eachInstance(t, 30*len(p.Definitions), func(t *testing.T, r *instances, name string) {
		if len(tags.left) == 0 {
			return
		}
		made++
		tags.filling = made > 6*len(p.Definitions)
		in, ok := r.valid(name)
		if !ok {
			return
		}
		v := p.Definitions[name]()
		if err := p.Decode([]byte(in), v); err != nil {
			t.Fatalf("%s %s: %v", name, in, err)
		}
		tags.compare(t, reflect.ValueOf(v))
	})
	for _, field := range slices.Sorted(maps.Keys(tags.left)) {
		t.Errorf("%s had no value", field)
	}
}

// tags are those of a package's structs.
type tags struct {
	*Package
	left map[string]bool // fields that have had no value yet
	seen map[reflect.Type]bool

	filling bool // fields without a value get one
}

// member returns the name in a field's tag; ok is false for a field that is no member by itself.
func member(f reflect.StructField) (name string, ok bool) {
	name, _, _ = strings.Cut(f.Tag.Get("json"), ",")
	return name, name != "-"
}

// add notes the fields of t, if it is a struct, and of what it is made of. The arms of unions are definitions too.
func (c *tags) add(t *testing.T, of reflect.Type) {
	if c.seen[of] {
		return
	}
	c.seen[of] = true
	switch of.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		c.add(t, of.Elem())
	case reflect.Struct:
		for i := range of.NumField() {
			f := of.Field(i)
			if !f.IsExported() || f.Anonymous {
				continue // of a type that is written by hand
			}
			switch name, ok := member(f); {
			case name == "":
				t.Errorf("%v.%s has no tag", of, f.Name)
			case ok:
				c.left[of.String()+"."+f.Name] = true
			}
			c.add(t, f.Type)
		}
	}
}

// fill gives a value to the fields of a struct that have had none.
func (c *tags) fill(v reflect.Value) {
	for i := range v.NumField() {
		if f := v.Field(i); c.left[v.Type().String()+"."+v.Type().Field(i).Name] && f.CanSet() && f.IsZero() {
			for _, text := range []string{`{"x":1}`, `["x"]`, `1`} {
				if json.Unmarshal([]byte(text), f.Addr().Interface()) == nil {
					break
				}
				f.SetZero()
			}
			if f.IsZero() && f.Kind() == reflect.Pointer {
				f.Set(reflect.New(f.Type().Elem()))
			}
		}
	}
}

// compare encodes each struct in v, and compares the members with the fields of those names.
func (c *tags) compare(t *testing.T, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			c.compare(t, v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			c.compare(t, v.Index(i))
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			c.compare(t, v.MapIndex(key))
		}
	case reflect.Struct:
		if c.seen[v.Type()] {
			if c.filling {
				c.fill(v)
			}
			c.compareFields(t, v)
		}
	}
}

func (c *tags) compareFields(t *testing.T, v reflect.Value) {
	var members map[string]json.RawMessage
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name, ok := member(f)
		if !ok || !f.IsExported() || f.Anonymous || v.Field(i).IsZero() {
			continue
		}
		if members == nil {
			out, err := json.Marshal(v.Interface())
			if err == nil {
				err = json.Unmarshal(out, &members)
			}
			if err != nil {
				t.Fatalf("%v: %v", v.Type(), err)
			}
		}
		want, err := json.Marshal(v.Field(i).Interface())
		if err != nil { // a form value of this version alone, which only what is around it can write
			want = members[name]
		}
		if members[name] == nil || DiffJSON(t, string(want), string(members[name])) != "" {
			t.Fatalf("%v.%s is %s, and the member %s is %s", v.Type(), f.Name, want, name, members[name])
		}
		delete(c.left, v.Type().String()+"."+f.Name)
		c.compare(t, v.Field(i))
	}
}
