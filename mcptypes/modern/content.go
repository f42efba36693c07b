package modern

import "encoding/json"

// Text returns one text block for each string. Most results have such content.
func Text(s ...string) []ContentBlock {
	blocks := make([]ContentBlock, len(s))
	for i, text := range s {
		blocks[i] = &TextContent{Text: text}
	}
	return blocks
}

// NewOutput returns the result of a tool whose output is any JSON value: as structured content, and as
// text for clients that read only texts, as the specification recommends.
func NewOutput(output json.RawMessage) *CallToolResult {
	return &CallToolResult{Content: Text(string(output)), StructuredContent: output}
}
