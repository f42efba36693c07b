package model

import (
	"net/http"
	"slices"
	"strings"
)

// overflow are parts of messages, in lower case, of providers whose model cannot hold the
// request. All parts of a row occur in a message. testdata/errors.json has the messages and
// their sources.
var overflow = [][]string{
	{"context_length_exceeded"},                           // OpenAI
	{"exceed_context_size"},                               // llama.cpp
	{"available context size"},                            // llama.cpp
	{"maximum context length"},                            // vLLM, OpenRouter, DeepSeek, Mistral
	{"greater than the context length"},                   // LM Studio
	{"loaded with context length"},                        // LM Studio
	{"n_keep", "n_ctx"},                                   // LM Studio
	{"prompt is too long"},                                // Anthropic
	{"exceed context limit"},                              // Anthropic
	{"exceed", "context window"},                          // llama-cpp-python
	{"contextwindowexceeded"},                             // LiteLLM
	{"input token", "exceed", "maximum number of tokens"}, // Gemini
}

// maxOverflow is how much of an answer is compared. What follows may quote the request.
const maxOverflow = 2000

// isOverflow reports whether an answer with a status, or an error in a stream with status
// 0, says that the model cannot hold the request.
func isOverflow(status int, answer string) bool {
	switch status {
	case 0, http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity, http.StatusInternalServerError:
	default:
		return false
	}
	return says(answer, overflow)
}

// says reports whether an answer has all the parts of one of the rows.
func says(answer string, rows [][]string) bool {
	answer = strings.ToLower(answer[:min(len(answer), maxOverflow)])
	return slices.ContainsFunc(rows, func(parts []string) bool {
		return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(answer, part) })
	})
}
