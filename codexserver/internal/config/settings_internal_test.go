package config

import (
	"reflect"
	"strings"
	"testing"
)

// TestKeysAreNamed checks that a field becomes a key of the file only by its tag: the options of other
// packages are read from it, and a new field of theirs must not be a key by its name in Go.
func TestKeysAreNamed(t *testing.T) {
	seen := map[reflect.Type]bool{}
	var check func(r reflect.Type)
	check = func(r reflect.Type) {
		switch r.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map:
			check(r.Elem())
		case reflect.Struct:
			if _, reads := reflect.New(r).Interface().(interface{ UnmarshalJSON([]byte) error }); reads {
				return
			}
			if seen[r] || r.PkgPath() != "" && !strings.HasPrefix(r.PkgPath(), "github.com/codexmcp/codexmcp/") {
				return
			}
			seen[r] = true
			for field := range r.Fields() {
				tag, ok := field.Tag.Lookup("json")
				if field.IsExported() && !field.Anonymous && (!ok || tag == "") {
					t.Errorf("%v has a field %s without a tag", r, field.Name)
				}
				if tag != "-" {
					check(field.Type)
				}
			}
		}
	}
	check(reflect.TypeFor[Settings]())
	if len(seen) < 8 {
		t.Errorf("only %d types were checked", len(seen))
	}
}

// TestDefaultsPass checks the settings of an empty file, which are not checked at a start.
func TestDefaultsPass(t *testing.T) {
	if err := newSettings().check(); err != nil {
		t.Error(err)
	}
}
