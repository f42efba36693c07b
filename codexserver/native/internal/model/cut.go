package model

import "strings"

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

// cutOf translates why a response ended, in the words of any provider. A word that is not known
// is that of a whole one. The error is that of a response that failed.
func cutOf(reason string) (Cut, error) {
	switch word := strings.ToLower(reason); word {
	case "length", "max_tokens", "max_output_tokens", "model_length":
		return CutLength, nil
	case "content_filter", "safety", "sensitive", "refusal":
		return CutFilter, nil
	case "error", "insufficient_system_resource", "network_error":
		return "", &StreamError{Reason: "the provider ended the answer: " + word}
	}
	return "", nil
}
