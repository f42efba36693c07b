package model

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/internal/lazyregexp"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
)

// cut converts io.EOF into a StreamError and returns other errors unchanged.
func cut(err error, reason string) error {
	if errors.Is(err, io.EOF) {
		return &StreamError{Reason: reason}
	}
	return err
}

func isLimit(err error) bool {
	var limit *LimitError
	return errors.As(err, &limit)
}

// failure returns the error that the provider sent inside the stream.
func (s *stream) failure(raw jsontext.Value) error {
	words := func(text string) string { return shorten(s.hide(text)) }
	var reply struct {
		Type    jsontext.Value `json:"type"`
		Code    jsontext.Value `json:"code"`
		Message jsontext.Value `json:"message"`
	}
	if isOverflow(0, string(raw)) {
		return fmt.Errorf("%w: %s", ErrContextWindow, words(wordsOf(raw)))
	}
	if raw.Kind() != '{' || json.Unmarshal(raw, &reply, lenient) != nil {
		return &StreamError{Reason: words(textOf(raw))}
	}
	message := words(textOf(reply.Message))
	code := cmp.Or(textOf(reply.Code), textOf(reply.Type))
	switch code {
	case "insufficient_quota":
		return &QuotaError{Message: message}
	case "invalid_prompt", "invalid_request_error":
		return fmt.Errorf("the provider refused the request: %s", message)
	}
	if message == "" {
		message = words(string(raw))
	}
	return &StreamError{Reason: message, After: askedDelay(message), Busy: slices.Contains(busyCodes, code)}
}

// wordsOf returns the provider's message in an answer that is not a stream, or the answer
// itself if it is plain text.
func wordsOf(body []byte) string {
	var answer struct {
		Error   jsontext.Value `json:"error"`
		Message jsontext.Value `json:"message"`
		Detail  jsontext.Value `json:"detail"`
	}
	text := strings.ToValidUTF8(strings.TrimSpace(string(body)), "\uFFFD")
	if json.Unmarshal(body, &answer, lenient) != nil {
		if strings.HasPrefix(text, "<") {
			return "" // an HTML page
		}
		return text
	}
	var inner struct {
		Message jsontext.Value `json:"message"`
	}
	if answer.Error.Kind() == '{' && json.Unmarshal(answer.Error, &inner, lenient) == nil && len(inner.Message) > 0 {
		return textOf(inner.Message)
	}
	for _, raw := range []jsontext.Value{answer.Error, answer.Message, answer.Detail} {
		if words := textOf(raw); words != "" {
			return words
		}
	}
	return text
}

func shorten(s string) string {
	const most = 2000
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

var tryAgain = lazyregexp.Regexp{Text: `(?i)try again in (\d+(?:\.\d+)?)\s*(ms|s|seconds?|minutes?)\b`}

// askedDelay returns the time in a message such as "try again in 1.3s", or 0.
func askedDelay(message string) time.Duration {
	m := tryAgain.Get().FindStringSubmatch(message)
	if m == nil {
		return 0
	}
	n, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		return 0
	}
	unit := time.Second
	switch m[2][0] {
	case 'm', 'M':
		unit = time.Minute
		if m[2] == "ms" {
			unit = time.Millisecond
		}
	}
	return time.Duration(min(n, 1e6) * float64(unit))
}

// newCallID returns an id for a call that the provider sent without one.
func newCallID(i int) string {
	return fmt.Sprintf("call_%s_%d", uuid.NewString()[:8], i)
}
