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

// resultOf returns what the model gets of a result of an MCP server: its content blocks as JSON text,
// and its pictures as pictures. Remarks take the place of other data that is no text. Without a text it
// also gets the structured content, and reads that a call failed which did.
func resultOf(result stdjson.RawMessage) (out tool.Result) {
	var r struct {
		IsError    jsontext.Value `json:"isError"` // another type is none
		Content    jsontext.Value `json:"content"`
		Structured jsontext.Value `json:"structuredContent"`
	}
	if json.Unmarshal(result, &r) != nil || r.Content == nil && r.Structured == nil && string(r.IsError) != "true" {
		r.Content = jsontext.Value(result)
	}
	var blocks []jsontext.Value
	failed := ""
	if r.Content == nil || json.Unmarshal(r.Content, &blocks) == nil { // null has no blocks
		blank, data := true, false
		for i, raw := range blocks {
			var b block
			if json.Unmarshal(raw, &b) != nil { // it stays as it is
				blank = false
				continue
			}
			remark, ok := b.plain(&out)
			if ok {
				blocks[i], data = textBlock(remark), true
			}
			blank = blank && (ok || b.Type == "text") && strings.TrimSpace(b.Text) == ""
		}
		structured := blank && len(r.Structured) > 0 && r.Structured.Kind() != 'n'
		if structured && data && len(r.Structured) <= maxBeside {
			blocks = append(blocks, textBlock(string(r.Structured)))
		}
		if blank && string(r.IsError) == "true" {
			failed = "tool call error: the tool failed"
			if !data && !structured {
				return tool.Result{Output: failed + " and did not say why"}
			}
			failed += ": "
		}
		r.Content, _ = json.Marshal(blocks, jsontext.AllowInvalidUTF8(true)) // they were read
		if structured && !data {
			r.Content = r.Structured
		}
	}
	if err := r.Content.Compact(); err != nil {
		return tool.Result{Output: fmt.Sprintf("tool call error: the result cannot be read: %v", err)}
	}
	out.Output = failed + cutOutput(string(r.Content))
	return out
}

// textBlock returns a content block of text.
func textBlock(text string) jsontext.Value {
	raw, _ := json.Marshal(map[string]string{"type": "text", "text": text}, json.Deterministic(true), jsontext.AllowInvalidUTF8(true)) // texts can be written
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
	if _, err := base64.StdEncoding.DecodeString(data); err == nil && slices.Contains(tool.ImageTypes, kind) && size <= tool.MaxImage && len(out.Items) < maxPictures {
		remark = fmt.Sprintf("[%s, %s: it follows as a picture]", what, kind)
		out.Items = append(out.Items, protocol.MessageItem{Role: "user", Content: []protocol.ContentItem{{Type: "input_image", ImageURL: "data:" + kind + ";base64," + data}}})
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
