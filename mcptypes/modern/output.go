package modern

import jsonv2 "github.com/go-json-experiment/json"

// NewOutput returns the result of a tool whose output is v: v as structured content, and its JSON
// as text for clients that read only texts, as the specification recommends.
func NewOutput[T any](v T) (*CallToolResult, error) {
	text, err := jsonv2.Marshal(v, jsonv2.Deterministic(true))
	if err != nil {
		return nil, err
	}
	return &CallToolResult{Content: Text(string(text)), StructuredContent: text}, nil
}

// OutputOf decodes the structured content of a result, which must have one. Names match exactly,
// as in [Decode].
func OutputOf[T any](r *CallToolResult) (v T, err error) {
	if r.StructuredContent == nil {
		return v, &DecodeError{Package: "modern", Path: "/structuredContent", Msg: "required, but absent"}
	}
	return v, jsonv2.Unmarshal(r.StructuredContent, &v)
}
