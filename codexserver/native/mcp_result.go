package native

import (
	"encoding/base64"
	stdjson "encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/native/internal/tool"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	// maxToolOutput bounds a tool's result or error for the model, in bytes.
	maxToolOutput = 256 << 10
	// maxBeside bounds the structured content beside data, in bytes: it may have the same data.
	maxBeside = 16 << 10
	// maxPictures bounds the pictures of a result, in number.
	maxPictures = 8
)

// resultOf returns what the model gets of a result of an MCP server, as JSON text, and its pictures as pictures:
//
//	the content has        structured content   the model gets
//	words                  any                  the blocks
//	neither words nor data none                 the blocks
//	neither words nor data any                  the structured content
//	data, but no words     none, or a long one  the blocks
//	data, but no words     a short one          the blocks, and the structured content in one more
//
// Remarks take the place of data that is no text. A call that failed without words begins with the report of that.
func resultOf(result stdjson.RawMessage) (out tool.Result) {
	var r struct {
		IsError    jsontext.Value `json:"isError"` // another type is none
		Content    jsontext.Value `json:"content"`
		Structured jsontext.Value `json:"structuredContent"`
	}
	failed := func() bool { return string(r.IsError) == "true" }
	if json.Unmarshal(result, &r) != nil || r.Content == nil && r.Structured == nil && !failed() {
		r.Content = jsontext.Value(result)
	}
	var blocks []jsontext.Value
	if r.Content != nil && json.Unmarshal(r.Content, &blocks) != nil { // null has no blocks
		return outputOf(out, "", r.Content)
	}
	words, data := plainBlocks(blocks, &out)
	structured := len(r.Structured) > 0 && r.Structured.Kind() != 'n'
	report := ""
	if failed() && !words {
		report = "tool call error: the tool failed"
		if !data && !structured {
			return tool.Result{Output: report + " and did not say why"}
		}
		report += ": "
	}
	switch {
	case words || !structured:
	case !data:
		return outputOf(out, report, r.Structured)
	case len(r.Structured) <= maxBeside:
		blocks = append(blocks, textBlock(string(r.Structured)))
	}
	content, _ := json.Marshal(blocks, jsontext.AllowInvalidUTF8(true)) // they were read
	return outputOf(out, report, content)
}

// plainBlocks puts remarks in the place of blocks with data, and adds their pictures to out. It returns whether a block has
// words, as one that cannot be read may have, and whether any had data.
func plainBlocks(blocks []jsontext.Value, out *tool.Result) (words, data bool) {
	for i, raw := range blocks {
		var b block
		if json.Unmarshal(raw, &b) != nil { // it stays as it is
			words = true
			continue
		}
		remark, replaced := b.plain(out)
		if replaced {
			blocks[i], data = textBlock(remark), true
		}
		words = words || !replaced && b.Type != "text" || strings.TrimSpace(b.Text) != ""
	}
	return words, data
}

// outputOf makes content the output of a result, after a report.
func outputOf(out tool.Result, report string, content jsontext.Value) tool.Result {
	if err := content.Compact(); err != nil {
		return tool.Result{Output: fmt.Sprintf("tool call error: the result cannot be read: %v", err)}
	}
	out.Output = report + cutOutput(string(content))
	return out
}

// textBlock returns a content block of text.
func textBlock(text string) jsontext.Value {
	block := map[string]string{"type": "text", "text": text}
	raw, _ := json.Marshal(block, json.Deterministic(true), jsontext.AllowInvalidUTF8(true)) // texts can be written
	return raw
}

// block is a content block of a result.
type block struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	Data     string `json:"data"`
	MIMEType string `json:"mimeType"`
	Resource struct {
		URI      string  `json:"uri"`
		MIMEType string  `json:"mimeType"`
		Blob     *string `json:"blob"`
	} `json:"resource"`
}

// plain returns the text in the place of a block with data, and adds a picture to out. ok is false
// for a block that stays as it is.
func (b *block) plain(out *tool.Result) (remark string, ok bool) {
	data, kind, what := b.Data, b.MIMEType, b.Type
	switch {
	case b.Resource.Blob != nil:
		data, kind, what = *b.Resource.Blob, b.Resource.MIMEType, "resource "+b.Resource.URI
	case data == "":
		return "", false
	}
	size := base64.StdEncoding.DecodedLen(len(data))
	remark = fmt.Sprintf("[%s, %s, about %d bytes: left out, because it is no text]", what, kind, size)
	shown := slices.Contains(tool.ImageTypes, kind) && size <= tool.MaxImage && len(out.Items) < maxPictures
	if _, err := base64.StdEncoding.DecodeString(data); err == nil && shown {
		remark = fmt.Sprintf("[%s, %s: it follows as a picture]", what, kind)
		image := protocol.ContentItem{Type: "input_image", ImageURL: "data:" + kind + ";base64," + data}
		out.Items = append(out.Items, protocol.MessageItem{Role: "user", Content: []protocol.ContentItem{image}})
	}
	if b.Text != "" {
		remark = b.Text + "\n" + remark
	}
	return remark, true
}

// cutOutput bounds a text of a server.
func cutOutput(text string) string {
	if len(text) <= maxToolOutput {
		return text
	}
	return strings.ToValidUTF8(text[:maxToolOutput], "") + fmt.Sprintf(" [cut: %d bytes in all]", len(text))
}
