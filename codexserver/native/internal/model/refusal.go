package model

import (
	"bytes"
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/internal/lazyregexp"
	"github.com/codexmcp/codexmcp/internal/text"
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

// refusalOf returns what an answer or an event says.
func refusalOf(said []byte) (r refusal) {
	said = bytes.TrimSpace(said)
	v := parse(said)
	if v.raw == nil {
		v = parse(withoutNaN(said))
	}
	switch {
	case len(said) == 0:
	case said[0] == '<':
		r.explicit = true
		r.add(pageWords(said))
	case v.raw == nil:
		r.add(string(said))
	default:
		if r.walk(v, 0); len(r.words) == 0 {
			r.sentences(v, 0)
		}
	}
	return r
}

// add adds words that are not there yet.
func (r *refusal) add(words string) {
	words = strings.TrimSpace(strings.ToValidUTF8(words, "\uFFFD"))
	const most = 4 // an answer can have a list of errors
	if words != "" && len(r.words) < most && !strings.Contains(strings.Join(r.words, "\n"), words) {
		r.words = append(r.words, words)
	}
}

// ofAnswers are members with texts that are no words about a failure.
var ofAnswers = []string{"choices", "output", "response", "item", "part", "delta", "instructions", "input", "tools"}

// maxNested is how deep words are looked for, and maxParts in how many parts of a list.
const maxNested, maxParts = 4, 8

// sentences adds the texts of several words that a value has, but for those of an answer: a provider may
// say in any member what is wrong.
func (r *refusal) sentences(v value, depth int) {
	if said := v.text(); v.kind() == '"' && strings.Contains(strings.TrimSpace(said), " ") {
		r.add(said)
	}
	all := v.all
	if v.kind() == '[' {
		all = all[:min(len(all), maxParts)]
	}
	for _, one := range slices.SortedStableFunc(slices.Values(all),
		func(a, b value) int { return bytes.Compare(a.name, b.name) }) {
		if depth < maxNested && !slices.Contains(ofAnswers, value{raw: one.name}.text()) {
			r.sentences(one, depth+1)
		}
	}
}

// The members with which providers refuse.
var (
	refusalInside = []string{"error", "errors", "response", "choices", "base_resp"} // base_resp: MiniMax
	refusalBeside = []string{"detail", "details", "metadata"}
	refusalWords  = []string{"message", "msg", "error_message", "error_msg", "error_description", "description",
		"title", "raw"}
	refusalCodes = []string{"code", "error_code", "status_code"}
	refusalKinds = []string{"type", "status"}
	// retryDelay: Gemini
	refusalWaits = []string{"retry_delay", "retry_after", "retry_in", "reset_after", "wait_seconds"}
)

// walk reads a value of an answer in JSON. What is further inside counts first.
func (r *refusal) walk(v value, depth int) {
	switch {
	case depth > maxNested || !v.has():
	case v.kind() == '"':
		r.add(v.text())
	case v.kind() == '[':
		for _, one := range v.all[:min(len(v.all), maxParts)] {
			r.walk(one, depth+1)
		}
	case v.kind() == '{':
		r.members(v, depth)
	}
}

// members reads the members of an object.
func (r *refusal) members(v value, depth int) {
	failed := v.at("status_code").has() && string(v.at("status_code").raw) != "0"
	r.explicit = r.explicit || failed || v.at("error").fails() || v.at("errors").fails() ||
		string(v.at("success").raw) == "false" ||
		v.at("object").text() == "error" || v.at("type").text() == "error"
	for _, name := range refusalInside {
		r.walk(v.at(name), depth+1)
	}
	for _, name := range refusalCodes {
		r.code = cmp.Or(r.code, v.at(name).text())
	}
	for _, name := range refusalKinds {
		r.kind = cmp.Or(r.kind, v.at(name).text())
	}
	for _, name := range refusalWaits {
		wait := v.at(name)
		if wait.kind() == '{' { // as protobuf has it
			wait = wait.at("seconds")
		}
		r.after = cmp.Or(r.after, spanOf(wait.text()), spanOf(v.at(name+"_seconds").text()),
			spanOf(v.at(name+"_ms").text())/1000)
	}
	passed := http.Header{} // the headers that OpenRouter got
	for _, one := range v.at("headers").all {
		passed.Set(value{raw: one.name}.text(), one.text())
	}
	r.after = cmp.Or(r.after, retryAfter(passed))
	r.plan = cmp.Or(r.plan, v.at("plan_type").text())
	r.resets = cmp.Or(r.resets, spanOf(v.at("resets_in_seconds").text()))
	for _, name := range refusalWords {
		// That of a choice is an answer.
		if said := v.at(name); said.kind() == '"' || said.kind() == '{' && v.at("index").raw == nil &&
			v.at("finish_reason").raw == nil {
			r.walk(said, depth+1)
		}
	}
	if failed { // else it is of a success
		r.add(v.at("status_msg").text())
	}
	for _, name := range refusalBeside {
		r.walk(v.at(name), depth+1)
	}
}

var (
	title  = lazyregexp.Regexp{Text: `(?is)<title[^>]*>(.*?)</title>`}
	isHTML = lazyregexp.Regexp{Text: `(?i)<!doctype html|<html|<head|<body`}
	marks  = lazyregexp.Regexp{Text: `(?is)<(?:script|style)\b.*?</(?:script|style)>|<[^>]*>`}
)

// pageWords says what a page is, for which a proxy or a wrong address is the reason, and its title or else
// its text. XML that is no page has its text alone.
func pageWords(page []byte) (words string) {
	said := marks.Get().ReplaceAll(page, []byte(" "))
	if m := title.Get().FindSubmatch(page); m != nil {
		said = m[1]
	}
	const most = 300
	words = text.Brief(strings.Join(strings.Fields(string(said)), " "), most)
	if words != "" && !isHTML.Get().Match(page) {
		return words
	}
	return strings.TrimSuffix("an HTML page, perhaps the login page of a proxy or a network, "+
		"or base_url is wrong: "+words, ": ")
}

// refused converts what a provider said into an error. status is that of the answer, or 0 inside a
// stream.
func (c *Client) refused(status int, h http.Header, body []byte) error {
	r := refusalOf(body)
	whole := c.redact(strings.ToValidUTF8(strings.TrimSpace(string(body)), "\uFFFD"))
	words := shorten(c.redact(strings.Join(r.words, ": ")))
	is := func(words ...string) bool { return slices.Contains(words, r.code) || slices.Contains(words, r.kind) }
	e := &ProviderError{Status: status, Words: cmp.Or(words, shorten(whole)),
		After: cmp.Or(retryAfter(h), r.after, askedDelay(words))}
	if n, err := strconv.Atoi(r.code); status == 0 && err == nil && n >= 400 && n < 600 {
		e.Status = n
	}
	often := e.Status == http.StatusBadRequest || e.Status == http.StatusForbidden
	often = often && tooOften.said(text.Head(words, maxLimitWords)+" "+r.code+" "+r.kind)
	page, final := strings.HasPrefix(whole, "<"), !often && e.Status >= 300 && e.Status < 500 &&
		!slices.Contains(passing, e.Status)
	e.Elsewhere = often || slices.Contains(elsewhere, e.Status) || is(elsewhereCodes...)
	switch {
	case is("usage_limit_reached"):
		return &ProviderError{Words: shorten(c.redact(r.plan)), After: r.resets, Elsewhere: true, Limit: true}
	case isOverflow(e.Status, string(body), r):
		return fmt.Errorf("%w: %s", ErrContextWindow, e.Words)
	case status == 0 && is("insufficient_quota"):
		e.Status = 0
	case status == 0 && page:
		e.Status = http.StatusOK
	case final, is("insufficient_quota"):
		e.Hint = c.hint(e.Status)
	case status == 0:
		e.Status, e.Again = 0, !is("invalid_prompt", "invalid_request_error", "BadRequestError")
	default:
		e.Words, e.Again = words, true
	}
	return e
}

// maxLimitWords is how much of a provider's words may say that they are about a rate limit: what follows may quote a request
// that speaks of one.
const maxLimitWords = 200

// elsewhere are the statuses, and elsewhereCodes the codes, with which a provider says that the account has no
// credit, that the key is not accepted, or that there is no room now; 529 is none of the standard.
var (
	elsewhere = []int{
		http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusTooManyRequests, http.StatusServiceUnavailable,
		529,
	}
	elsewhereCodes = []string{
		"insufficient_quota", "rate_limit_exceeded", "server_is_overloaded", "server_overloaded", "overloaded_error",
		"slow_down",
	}
)

// passing are the statuses below 500 that a later request need not meet; 498 is Groq's for no room.
var passing = []int{http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly, http.StatusTooManyRequests,
	498}

// shorten returns as much of a provider's words as anybody reads.
func shorten(s string) string { return text.Brief(s, 2000) }

// draftReset is the time in the header RateLimit of drafts of the IETF.
var draftReset = lazyregexp.Regexp{Text: `(?:^|[;,\s])(?:reset|t)=(\d+)`}

// retryAfter returns how long the headers ask to wait, or 0.
func retryAfter(h http.Header) time.Duration {
	for _, name := range []string{"Retry-After-Ms", "X-Ms-Retry-After-Ms"} { // OpenAI; Azure
		if ms := spanOf(h.Get(name)); ms > 0 {
			return ms / 1000
		}
	}
	if value := h.Get("Retry-After"); value != "" {
		return spanOf(value)
	}
	var longest time.Duration
	if m := draftReset.Get().FindStringSubmatch(h.Get("Ratelimit")); m != nil {
		longest = spanOf(m[1])
	}
	for name := range h {
		// Each limit has a header with its end, and one with what is left of it.
		if !strings.Contains(name, "Ratelimit") || !strings.Contains(name, "Reset") {
			continue
		}
		left, err := strconv.ParseFloat(h.Get(strings.Replace(name, "Reset", "Remaining", 1)), 64)
		if err != nil || left <= 0 {
			longest = max(longest, spanOf(h.Get(name)))
		}
	}
	return longest
}

// spanOf reads a time to wait: seconds, a duration such as "1m3.5s", a date, or a time in seconds or
// milliseconds since 1970. It returns 0 for anything else, and for the past.
func spanOf(said string) time.Duration {
	if date, err := http.ParseTime(said); err == nil {
		return max(time.Until(date), 0)
	}
	if date, err := time.Parse(time.RFC3339, said); err == nil {
		return max(time.Until(date), 0)
	}
	if d, err := time.ParseDuration(said); err == nil {
		return max(d, 0)
	}
	s, err := strconv.ParseFloat(said, 64)
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
	asksToWait = lazyregexp.Regexp{Text: `(?i)\b(?:again|retry|wait|(?:available|allowed) in|resets? (?:in|after)|` +
		`cool-?down)\b[^.\d]{0,40}` +
		`(?:(\d+):(\d\d):(\d\d)\b|((?:(?:[\s,]|and\b)*\d+(?:\.\d+)?\s*(?:ms|milliseconds?|h|hrs?|hours?|m|mins?|` +
		`minutes?|s|secs?|seconds?))+)(?:[^a-z]|$))`}
	timeUnit = lazyregexp.Regexp{Text: `(\d+(?:\.\d+)?)\s*(ms|mil|[hms])`}
)

// askedDelay returns the time in a message such as "try again in 1m3.5s" or "retry after 3 seconds". It
// is 0 without one, and for hours, for which nobody waits.
func askedDelay(message string) time.Duration {
	for _, m := range asksToWait.Get().FindAllStringSubmatch(message, -1) {
		span := m[1] + "h" + m[2] + "m" + m[3] + "s"
		if m[4] != "" {
			span = ""
		}
		for _, part := range timeUnit.Get().FindAllStringSubmatch(strings.ToLower(m[4]), -1) {
			if part[2] == "h" {
				return 0
			}
			span += part[1] + strings.Replace(part[2], "mil", "ms", 1)
		}
		if d, err := time.ParseDuration(span); err == nil && d > 0 {
			return d
		}
	}
	return 0
}
