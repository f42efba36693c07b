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
	{"passed", "input tokens", "context length is"},       // vLLM
	{"message size", "exceeds limit"},                     // Moonshot
	{"greater than the context length"},                   // LM Studio
	{"loaded with context length"},                        // LM Studio
	{"n_keep", "n_ctx"},                                   // LM Studio
	{"prompt is too long"},                                // Anthropic
	{"exceed context limit"},                              // Anthropic
	{"exceed", "context window"},                          // llama-cpp-python
	{"contextwindowexceeded"},                             // LiteLLM
	{"input token", "exceed", "maximum number of tokens"}, // Gemini
	{"reduce the length of the messages"},                 // Cerebras, Groq
	{"expected maxlength", "actual"},                      // Bedrock
	{"prompt too long"},
	{"prompt", "n_ctx"},           // llama.cpp
	{"sum of prompt length"},      // TensorRT-LLM
	{"exceed max message tokens"}, // Doubao
	{"payload size exceeds"},      // Gemini
	{"context size", "exceeded"},  // llama.cpp
	{"context shift is disabled"}, // llama.cpp
	{"compared to kv size"},       // llama.cpp
	{"input characters"},          // Qianfan
	{"超长"}, {"过长"},                // GLM, Hunyuan
	{"输入", "超"}, {"上下文", "超"}, {"长度", "超过"},
}

// The words of a message that is new: it measures what was sent, by its length or its tokens, and
// finds it too long. It is about nothing else that has a limit.
var (
	sent    = []string{"input", "prompt", "context", "conversation", "history", "sequence", "message", "request", "total", "content", "text", "token limit"}
	beyond  = []string{"exceed", "longer than", "greater than", "larger than", "more than", "less than", "fewer than", "too long", "too large", "too big", "too many", "maximum", "at most", "limit", "range", "must be <", "should be [", " > ", "not fit"}
	lengths = []string{"length", "longer than", "window", "size", "limit", "too long", "too large", "too big", "too many tokens"}
	others  = []string{
		"max_tokens", "max_completion_tokens", "max_output_tokens", "output token", "completion token", "budget",
		"per minute", "per hour", "per day", "month", "daily", "rate limit", "rate_limit", "quota", "balance", "credit", "took too long",
		"array too long", "string too long", "string_above", "array_above", "cache_key", "tool", "function", "metadata", "stop sequence", "image", "audio", "video", " file", "timed out", "timeout",
	}
)

// maxOverflow is how much of an answer is compared. What follows may quote the request.
const maxOverflow = 2000

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
	if slices.ContainsFunc(named, func(code string) bool { return says(code, [][]string{{"context_length"}, {"context_window"}}) }) {
		return true
	}
	words := strings.Join(r.words, " ")
	return says(answer, overflow) || says(words, overflow) || tooMuchSent(words+" "+strings.ReplaceAll(r.code+" "+r.kind, "_", " "))
}

func tooMuchSent(words string) bool {
	words = strings.ToLower(words[:min(len(words), maxOverflow)])
	any := func(of []string) bool {
		return slices.ContainsFunc(of, func(word string) bool { return strings.Contains(words, word) })
	}
	return any(sent) && any(beyond) && !any(others) && (strings.Contains(words, "token") || any(sent[:6]) && any(lengths))
}

// says reports whether an answer has all the parts of one of the rows.
func says(answer string, rows [][]string) bool {
	answer = strings.ToLower(answer[:min(len(answer), maxOverflow)])
	return slices.ContainsFunc(rows, func(parts []string) bool {
		return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(answer, part) })
	})
}
