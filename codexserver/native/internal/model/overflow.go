package model

import (
	"net/http"
	"slices"
	"strings"
)

// The words of a message that is new: it measures what was sent, by its length or its tokens, and
// finds it too long. It is about nothing else that has a limit.
var (
	sent = []string{"input", "prompt", "context", "conversation", "history", "sequence", "message", "request",
		"total", "content", "text", "token limit"}
	beyond = []string{"exceed", "longer than", "greater than", "larger than", "more than", "less than", "fewer than",
		"too long", "too large", "too big", "too many", "maximum", "at most", "limit", "range", "must be <",
		"should be [", " > ", "not fit"}
	lengths = []string{"length", "longer than", "window", "size", "limit", "too long", "too large", "too big",
		"too many tokens"}
	others = []string{
		"max_tokens", "max_completion_tokens", "max_output_tokens", "output token", "completion token", "budget",
		"per minute", "per hour", "per day", "month", "daily", "rate limit", "rate_limit", "quota", "balance", "credit",
		"took too long",
		"array too long", "string too long", "string_above", "array_above", "cache_key", "tool", "function", "metadata",
		"stop sequence", "image", "audio", "video", " file", "timed out", "timeout",
	}
)

// isOverflow reports whether an answer with a status, or an error in a stream with status 0, says that
// the model cannot hold the request. r is what was read of it.
func isOverflow(status int, answer string, r refusal) bool {
	switch status {
	case http.StatusRequestEntityTooLarge:
		return true
	case 0, http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusInternalServerError:
	default:
		return false
	}
	named := []string{r.code, r.kind}
	if slices.ContainsFunc(named, func(code string) bool {
		code = strings.ToLower(code)
		return strings.Contains(code, "context_length") || strings.Contains(code, "context_window")
	}) {
		return true
	}
	words := strings.Join(r.words, " ")
	return tooLong.said(answer) || tooLong.said(words) ||
		tooMuchSent(words+" "+strings.ReplaceAll(r.code+" "+r.kind, "_", " "))
}

func tooMuchSent(words string) bool {
	words = strings.ToLower(words[:min(len(words), maxCompared)])
	any := func(of []string) bool {
		return slices.ContainsFunc(of, func(word string) bool { return strings.Contains(words, word) })
	}
	return any(sent) && any(beyond) && !any(others) &&
		(strings.Contains(words, "token") || any(sent[:6]) && any(lengths))
}
