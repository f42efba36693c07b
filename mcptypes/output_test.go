package mcptypes_test

import (
	"fmt"
	"testing"

	"github.com/codexmcp/codexmcp/mcptypes"
)

// weather is the output of a tool.
type weather struct {
	City    string  `json:"city"`
	Degrees float64 `json:"degrees"`
}

// A tool writes its output from a Go type, and its caller reads it into one.
func ExampleNewOutput() {
	result, err := mcptypes.NewOutput(weather{City: "Bern", Degrees: 7.5})
	if err != nil {
		fmt.Println(err)
		return
	}
	text, err := mcptypes.Encode(result)
	fmt.Println(string(text), err)
	fmt.Println(mcptypes.OutputOf[weather](result))
	// Output:
	// {"content":[{"type":"text","text":"{\"city\":\"Bern\",\"degrees\":7.5}"}],"structuredContent":{"city":"Bern","degrees":7.5}} <nil>
	// {Bern 7.5} <nil>
}

func TestOutputErrors(t *testing.T) {
	for _, content := range []string{``, `{"city":1}`, `{"city":"a","city":"b"}`, `{`, `[]`} {
		r := &mcptypes.CallToolResult{}
		if content != "" {
			r.StructuredContent = []byte(content)
		}
		if v, err := mcptypes.OutputOf[weather](r); err == nil {
			t.Errorf("%q is %v", content, v)
		}
	}
	if _, err := mcptypes.NewOutput(make(chan int)); err == nil {
		t.Error("a channel has become structured content")
	}
	list, err := mcptypes.NewOutput([]int{1})
	if err != nil {
		t.Fatal(err)
	}
	if text, err := mcptypes.Encode(list); err == nil {
		t.Errorf("a list has become %s", text)
	}
}
