package tools

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"
)

// TestArgumentsAreRead checks that each tool reads the arguments that its definition has. Another one
// would be ignored, such as a sandbox that the caller asks for.
func TestArgumentsAreRead(t *testing.T) {
	for _, one := range all {
		in, err := one.input()
		if err != nil {
			t.Fatal(err)
		}
		arguments, err := one.decode(json.RawMessage(`{}`))
		if arguments == nil {
			t.Fatal(err)
		}
		fields := reflect.VisibleFields(reflect.TypeOf(arguments).Elem())
		for name := range in.Properties {
			if !slices.ContainsFunc(fields, func(f reflect.StructField) bool { return f.Tag.Get("json") == name }) {
				t.Errorf("%T does not read %s", arguments, name)
			}
		}
	}
}
