package model

import (
	"slices"
	"strings"
)

// Cut is why a response ended early: one of these, or the provider's word.
type Cut string

// Why a response ended early.
const (
	// CutLength is the limit of output tokens, or the end of the context window.
	CutLength Cut = "length"
	// CutFilter is a filter of contents.
	CutFilter Cut = "content_filter"
	// CutEmpty is a whole response without text and calls. The clients of this package
	// set it.
	CutEmpty Cut = "empty"
)

// The words of providers for why a response ended, in lower case.
var (
	wholeWords = []string{
		"", "stop", "tool_calls", "function_call", // OpenAI
		"end_turn", "stop_sequence", "tool_use", // Anthropic, Bedrock
		"eos", "eos_token", // Together, TGI, watsonx
		"complete", "tool_call", // Cohere
		"completed", // the status of the Responses API
	}
	lengthWords = []string{"length", "max_tokens", "max_output_tokens", "model_length", "token_limit",
		"model_context_window_exceeded"}
	filterWords = []string{
		"content_filter", "content_filtered", "refusal", "sensitive", "guardrail_intervened",
		"safety", "image_safety", "prohibited_content", "blocklist", "spii", "recitation", // Gemini
	}
	errorWords = []string{"error", "insufficient_system_resource", "network_error"}
)

// cutOf translates why a response ended, in the words of any provider. A word that is not known is not
// that of a whole one. The error is that of a response that failed. hide removes secrets.
func cutOf(reason string, hide func(string) string) (Cut, error) {
	word := strings.ReplaceAll(strings.ToLower(strings.TrimSpace(reason)), "-", "_")
	switch {
	case slices.Contains(wholeWords, word):
		return "", nil
	case slices.Contains(lengthWords, word):
		return CutLength, nil
	case slices.Contains(filterWords, word), strings.HasPrefix(word, "content_filter:"):
		return CutFilter, nil
	case slices.Contains(errorWords, word):
		return "", broken("the provider ended the answer: " + word)
	}
	return Cut(shorten(hide(reason))), nil
}
