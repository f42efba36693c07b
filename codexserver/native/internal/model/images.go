package model

import (
	"errors"
	"net/http"
	"slices"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// errImages means that the model takes no images.
var errImages = errors.New("the model cannot take images")

// noImages are parts of messages, in the form of [overflow], of providers whose model takes no
// images. They count only if the request has one.
var noImages = [][]string{
	{"image input is not supported"},                  // llama.cpp
	{"support image input"},                           // OpenRouter, Ollama
	{"does not support images"},                       // LM Studio
	{"is not a multimodal model"},                     // vLLM
	{"unknown variant", "image"},                      // DeepSeek
	{"untagged enum chatcompletionrequestcontent"},    // DeepSeek, of 2025
	{"invalid type: sequence, expected a string"},     // DeepSeek, of 2025
	{"image_url is only supported by certain models"}, // OpenAI
	{"image input modality is not enabled"},           // Gemini
}

// refusesImages reports whether an answer with a status says that the model takes no images.
func refusesImages(status int, answer string) bool {
	switch status {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity,
		http.StatusInternalServerError, http.StatusNotImplemented:
		return says(answer, noImages)
	}
	return false
}

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
