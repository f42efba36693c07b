package tools

import (
	"reflect"
	"slices"
	"testing"
)

// TestArgumentsAreRead checks that each tool reads the arguments that its definition has. Another one
// would be ignored, such as a sandbox that the caller asks for.
func TestArgumentsAreRead(t *testing.T) {
	for definition, arguments := range map[string]any{
		codexTool: codexArguments{}, replyTool: replyArguments{}, waitTool: waitArguments{}, showTool: showArguments{},
		reviewTool: reviewArguments{}, listTool: listArguments{}, interruptTool: names{}, modelsTool: struct{}{},
	} {
		in, err := inputOf(definition)()
		if err != nil {
			t.Fatal(err)
		}
		fields := reflect.VisibleFields(reflect.TypeOf(arguments))
		for name := range in.Properties {
			if !slices.ContainsFunc(fields, func(f reflect.StructField) bool { return f.Tag.Get("json") == name }) {
				t.Errorf("%T does not read %s", arguments, name)
			}
		}
	}
}
