package rollout

import (
	stdjson "encoding/json"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// readItem reads an item. Codex writes the output of an MCP server's tool or of an image as a list of parts: the item then has
// their texts, and pictures are messages with their pictures. What else other programs write is read, too.
func readItem(raw jsontext.Value) (item protocol.ResponseItem, pictures []protocol.ResponseItem, err error) {
	if item, err = protocol.ParseItem(stdjson.RawMessage(raw)); err == nil {
		return item, nil, nil
	}
	var read struct {
		Type      string         `json:"type"`
		Role      string         `json:"role"`
		Name      string         `json:"name"`
		CallID    string         `json:"call_id"`
		Arguments jsontext.Value `json:"arguments"`
		Content   jsontext.Value `json:"content"`
		Output    jsontext.Value `json:"output"`
	}
	if json.Unmarshal(raw, &read, jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true)) != nil {
		return nil, nil, err
	}
	switch read.Type {
	case "message":
		return protocol.MessageItem{Role: read.Role, Content: parts(read.Content)}, nil, nil
	case "function_call":
		return protocol.FunctionCallItem{Name: read.Name, Arguments: said(read.Arguments), CallID: read.CallID}, nil,
			nil
	case "function_call_output", "custom_tool_call_output":
	default:
		return nil, nil, err
	}
	var texts []string
	for _, part := range parts(read.Output) {
		switch {
		case part.Type == "input_image" && part.ImageURL != "":
			texts = append(texts, "[image: it follows as a picture]")
			pictures = append(pictures, protocol.MessageItem{Role: "user",
				Content: []protocol.ContentItem{{Type: part.Type, ImageURL: part.ImageURL}}})
		case part.Text != "":
			texts = append(texts, part.Text)
		default:
			texts = append(texts, "["+part.Type+": left out]")
		}
	}
	output := protocol.FunctionCallOutputItem{CallID: read.CallID, Output: strings.Join(texts, "\n")}
	if read.Type == "custom_tool_call_output" {
		return protocol.CustomToolCallOutputItem(output), pictures, nil
	}
	return output, pictures, nil
}

// parts returns the parts of a content. What is no list of them is one text.
func parts(v jsontext.Value) (all []protocol.ContentItem) {
	if json.Unmarshal(v, &all, jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true)) != nil {
		return []protocol.ContentItem{{Type: "input_text", Text: said(v)}}
	}
	return all
}

// said returns the text that a value is, or its JSON.
func said(v jsontext.Value) (text string) {
	if json.Unmarshal(v, &text, jsontext.AllowInvalidUTF8(true)) != nil {
		return string(v)
	}
	return text
}
