package model

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"html"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/internal/lazyregexp"
	"github.com/go-json-experiment/json/jsontext"
)

// refusal is what a provider says in an answer that is none, wherever it says it.
type refusal struct {
	words      []string // for people
	code, kind string
	after      time.Duration // that it asks to wait, or 0
	explicit   bool          // it says that it is an error
	plan       string
	resets     time.Duration
}

// read adds what an answer or an event says.
func (r *refusal) read(said []byte) {
	switch said = bytes.TrimSpace(said); {
	case len(said) == 0:
	case said[0] == '<':
		r.explicit = true
		r.add(pageWords(said))
	case jsontext.Value(said).IsValid(lenient):
		r.walk(said, 0)
	default:
		r.add(string(said))
	}
}

// add adds words that are not there yet.
func (r *refusal) add(words string) {
	words = strings.TrimSpace(strings.ToValidUTF8(words, "\uFFFD"))
	const most = 4 // an answer can have a list of errors
	if words != "" && len(r.words) < most && !strings.Contains(strings.Join(r.words, "\n"), words) {
		r.words = append(r.words, words)
	}
}

// The members with which providers refuse, in lower case, without underscores and dashes.
var (
	refusalInside = []string{"error", "errors", "response", "choices", "baseresp"} // baseresp: MiniMax
	refusalBeside = []string{"detail", "details", "metadata"}
	refusalWords  = []string{"message", "msg", "errormessage", "errormsg", "errordescription", "description", "title", "raw"}
	refusalCodes  = []string{"code", "errorcode", "statuscode"}
	refusalKinds  = []string{"type", "status"}
	refusalWaits  = []string{"retrydelay", "retryafter"} // retryDelay: Gemini
)

// walk reads a value of an answer in JSON. What is further inside counts first.
func (r *refusal) walk(raw jsontext.Value, depth int) {
	if depth > maxNested || !has(raw) {
		return
	}
	switch raw.Kind() {
	case '"':
		r.add(textOf(raw))
	case '[':
		var all []jsontext.Value
		take(raw, &all)
		for _, one := range all[:min(len(all), 8)] {
			r.walk(one, depth+1)
		}
	case '{':
		var members map[string]jsontext.Value
		take(raw, &members)
		m := make(map[string]jsontext.Value, len(members))
		for name, value := range members {
			m[strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(name))] = value
		}
		r.members(m, depth)
	}
}

// members reads the members of an object.
func (r *refusal) members(m map[string]jsontext.Value, depth int) {
	failed := has(m["statuscode"]) && string(m["statuscode"]) != "0"
	r.explicit = r.explicit || failed || has(m["error"]) || has(m["errors"]) || string(m["success"]) == "false" ||
		textOf(m["object"]) == "error" || textOf(m["type"]) == "error"
	for _, name := range refusalInside {
		r.walk(m[name], depth+1)
	}
	for _, name := range refusalCodes {
		r.code = cmp.Or(r.code, textOf(m[name]))
	}
	for _, name := range refusalKinds {
		r.kind = cmp.Or(r.kind, textOf(m[name]))
	}
	for _, name := range refusalWaits {
		r.after = cmp.Or(r.after, spanOf(textOf(m[name])))
	}
	r.plan = cmp.Or(r.plan, textOf(m["plantype"]))
	r.resets = cmp.Or(r.resets, spanOf(textOf(m["resetsinseconds"])))
	for _, name := range refusalWords {
		if m[name].Kind() == '"' {
			r.add(textOf(m[name]))
		}
	}
	if failed { // else it is of a success
		r.add(textOf(m["statusmsg"]))
	}
	for _, name := range refusalBeside {
		r.walk(m[name], depth+1)
	}
}

var title = lazyregexp.Regexp{Text: `(?is)<title[^>]*>(.*?)</title>`}

// pageWords says what a page is, for which a proxy or a wrong address is the reason.
func pageWords(page []byte) string {
	words := "an HTML page, perhaps the login page of a proxy or a network, or base_url is wrong"
	if m := title.Get().FindSubmatch(page); m != nil {
		words += ": " + strings.Join(strings.Fields(html.UnescapeString(string(m[1]))), " ")
	}
	return words
}

// refused converts what a provider said into an error. status is that of the answer, or 0 inside a
// stream.
func (c *Client) refused(status int, h http.Header, body []byte) error {
	var r refusal
	r.read(body)
	streamed := status == 0
	if n, err := strconv.Atoi(r.code); streamed && err == nil && n >= 400 && n < 600 {
		status = n
	}
	text := c.redact(strings.ToValidUTF8(strings.TrimSpace(string(body)), "\uFFFD"))
	words := shorten(c.redact(strings.Join(r.words, ": ")))
	page := strings.HasPrefix(text, "<")
	after := cmp.Or(retryAfter(h), r.after, askedDelay(words))
	is := func(words ...string) bool { return slices.Contains(words, r.code) || slices.Contains(words, r.kind) }
	switch noCredit := is("insufficient_quota"); {
	case is("usage_limit_reached"):
		return &UsageLimitError{Plan: shorten(c.redact(r.plan)), ResetsIn: r.resets}
	case isOverflow(status, string(body), &r):
		return fmt.Errorf("%w: %s", ErrContextWindow, cmp.Or(words, shorten(text)))
	case noCredit && streamed:
		return &QuotaError{Message: words}
	case streamed && page:
		return &StatusError{Code: http.StatusOK, Body: words}
	case noCredit, status >= 300 && status < 500 && status != http.StatusTooManyRequests && status != http.StatusRequestTimeout:
		if streamed || page {
			text = words
		}
		return &StatusError{Code: status, Body: text, Hint: c.hint(status)}
	case streamed && is("invalid_prompt", "invalid_request_error", "BadRequestError"):
		return errors.New("the provider refused the request: " + words)
	case streamed:
		busy := is(busyCodes...) || slices.Contains(busyStatus, status)
		return &StreamError{Reason: cmp.Or(words, shorten(text)), After: after, Busy: busy}
	}
	return &RetryLimitError{Code: status, Message: words, After: after}
}

func shorten(s string) string {
	const most = 2000
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// resets are headers that say when a limit ends, each with the one that says what is left of it.
var resets = [][2]string{
	{"X-Ratelimit-Reset-Requests", "X-Ratelimit-Remaining-Requests"}, // OpenAI, Groq
	{"X-Ratelimit-Reset-Tokens", "X-Ratelimit-Remaining-Tokens"},
	{"X-Ratelimit-Reset", "X-Ratelimit-Remaining"}, // OpenRouter
	{"Ratelimit-Reset", "Ratelimit-Remaining"},
}

// retryAfter returns how long the headers ask to wait, or 0.
func retryAfter(h http.Header) time.Duration {
	if ms := spanOf(h.Get("Retry-After-Ms")); ms > 0 { // Azure, OpenAI
		return ms / 1000
	}
	if value := h.Get("Retry-After"); value != "" {
		return spanOf(value)
	}
	var longest time.Duration
	for _, limit := range resets {
		if h.Get(limit[1]) == "0" {
			longest = max(longest, spanOf(h.Get(limit[0])))
		}
	}
	return longest
}

// spanOf reads a time to wait: seconds, a duration such as "1m3.5s", a date, or a time in seconds or
// milliseconds since 1970. It returns 0 for anything else, and for the past.
func spanOf(text string) time.Duration {
	if date, err := http.ParseTime(text); err == nil {
		return max(time.Until(date), 0)
	}
	if d, err := time.ParseDuration(text); err == nil {
		return max(d, 0)
	}
	s, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil || !(s > 0):
		return 0
	case s > 1e11:
		return max(time.Until(time.UnixMilli(int64(min(s, 1e15)))), 0)
	case s > 1e8:
		return max(time.Until(time.Unix(int64(s), 0)), 0)
	}
	return time.Duration(min(s, 1e6) * float64(time.Second))
}

var (
	asksToWait = lazyregexp.Regexp{Text: `(?i)\b(?:again|retry|wait)\b[^.\d]{0,40}`}
	timeUnit   = lazyregexp.Regexp{Text: `(?i)^(?:[\s,]|and\b)*(\d+(?:\.\d+)?)\s*(ms|milliseconds?|h|hrs?|hours?|m|mins?|minutes?|s|secs?|seconds?)(?:[^a-z]|$)`}
)

// askedDelay returns the time in a message such as "try again in 1m3.5s" or "retry after 3 seconds". It
// is 0 without one, and for hours, for which nobody waits.
func askedDelay(message string) time.Duration {
	for _, at := range asksToWait.Get().FindAllStringIndex(message, -1) {
		var sum float64
		for rest := message[at[1]:]; ; {
			m := timeUnit.Get().FindStringSubmatchIndex(rest)
			if m == nil {
				break
			}
			n, _ := strconv.ParseFloat(rest[m[2]:m[3]], 64) // it has the form of a number
			switch unit := strings.ToLower(rest[m[4]:m[5]]); {
			case strings.HasPrefix(unit, "ms"), strings.HasPrefix(unit, "mil"):
				n /= 1000
			case unit[0] == 'h':
				return 0
			case unit[0] == 'm':
				n *= 60
			}
			sum += n
			rest = rest[m[5]:]
		}
		if sum > 0 {
			return time.Duration(min(sum, 1e6) * float64(time.Second))
		}
	}
	return 0
}
