package model

import (
	"slices"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

func isImage(c protocol.ContentItem) bool { return c.Type == "input_image" }

func hasImages(items []protocol.ResponseItem) bool {
	return slices.ContainsFunc(items, func(item protocol.ResponseItem) bool {
		m, ok := item.(protocol.MessageItem)
		return ok && slices.ContainsFunc(m.Content, isImage)
	})
}

// withoutImages returns a copy of a request with a remark in the place of each image.
func withoutImages(req *Request) *Request {
	text := *req
	text.Items = slices.Clone(req.Items)
	for i, item := range text.Items {
		m, ok := item.(protocol.MessageItem)
		if !ok || !slices.ContainsFunc(m.Content, isImage) {
			continue
		}
		m.Content = slices.Clone(m.Content)
		for k, c := range m.Content {
			if isImage(c) {
				m.Content[k] = protocol.ContentItem{Type: "input_text", Text: "\n[An image was here. It was left out, because this model cannot take images.]\n"}
			}
		}
		text.Items[i] = m
	}
	return &text
}
