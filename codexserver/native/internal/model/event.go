package model

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/lazyregexp"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
)

// Servers differ in what they send besides the answer. So a reader of an event takes the members that
// it needs, and leaves out what has another type.

// lenient accepts JSON of providers that repeat members, or split a character between two events.
var lenient = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// tolerant goes on after a member of another type. One object counts as a list of one, and a text in the
// place of a delta as its content. It is made for the first answer that needs it: most servers never meet one.
var tolerant = sync.OnceValue(func() json.Options {
	return json.JoinOptions(jsonv1.ReportErrorsWithLegacySemantics(true), json.WithUnmarshalers(json.JoinUnmarshalers(
		oneOf[chatChoice](), oneOf[chatCallDelta](), oneOf[jsontext.Value](),
		json.UnmarshalFromFunc(func(d *jsontext.Decoder, delta *chatDelta) error {
			if d.PeekKind() != '"' {
				return errors.ErrUnsupported
			}
			raw, err := d.ReadValue()
			delta.Content = raw.Clone()
			return err
		}),
	)))
})

// oneOf reads an object in the place of a list.
func oneOf[T any]() *json.Unmarshalers {
	return json.UnmarshalFromFunc(func(d *jsontext.Decoder, list *[]T) error {
		if d.PeekKind() != '{' {
			return errors.ErrUnsupported
		}
		var one T
		err := json.UnmarshalDecode(d, &one)
		*list = []T{one}
		return err
	})
}

// take decodes into v the members of an object that have its types, and reports whether data is JSON.
func take[T any](data []byte, v *T, how ...json.Options) bool {
	how = append(how, lenient)
	err := json.Unmarshal(data, v, how...)
	if err == nil {
		return true
	}
	if _, syntax := errors.AsType[*jsontext.SyntacticError](err); syntax {
		mended, ok := withoutNaN(data)
		return ok && take(mended, v, how...)
	}
	*v = *new(T)
	_, syntax := errors.AsType[*jsonv1.SyntaxError](json.Unmarshal(data, v, append(how, tolerant())...))
	return !syntax
}

// withoutNaN puts null for the numbers that Python and C++ write and JSON does not have. ok is false if there
// are none.
func withoutNaN(data []byte) (mended []byte, ok bool) {
	text := false
	for i := 0; i < len(data); i++ {
		if data[i] == '"' {
			text = !text
		}
		if text && data[i] == '\\' && i+1 < len(data) {
			mended = append(mended, data[i])
			i++
		} else if n := len(noNumber.Get().Find(data[i:])); n > 0 && !text {
			mended, ok = append(mended, "null"...), true
			i += n - 1
			continue
		}
		mended = append(mended, data[i])
	}
	return mended, ok
}

var noNumber = lazyregexp.Regexp{Text: `^-?(?i:nan|inf(?:inity)?)\b`}

// stream is an incoming response.
type stream struct {
	next    func() (sseEvent, error) // io.EOF at the end
	emit    func(Event)
	failure func(said []byte) error // the error for what the provider said
	hide    func(string) string     // removes secrets from the provider's words
	header  http.Header

	odd   []byte // the last event that was no part of an answer, and may say why
	queue []sseEvent
}

// object returns the next event that is a JSON object. At [DONE], and at the end of the stream, the
// error is io.EOF; done is true at [DONE].
func (s *stream) object() (e sseEvent, done bool, err error) {
	for {
		if e, err = s.event(); err != nil {
			return e, false, err
		}
		switch e.data = bytes.TrimSpace(e.data); {
		case len(e.data) == 0:
			continue
		case bytes.EqualFold(bytes.Trim(e.data, `"`), []byte("[DONE]")):
			return e, true, io.EOF
		case e.data[0] == '{':
			return e, false, nil
		case string(e.name) == "error", e.body:
			return e, false, s.failure(e.data)
		}
		s.odd = slices.Clone(e.data)
	}
}

// event returns the next event. One whose lines are objects each is several events: some servers
// leave out the empty line.
func (s *stream) event() (e sseEvent, err error) {
	if len(s.queue) > 0 {
		e, s.queue = s.queue[0], s.queue[1:]
		return e, nil
	}
	if e, err = s.next(); err != nil || e.body || bytes.IndexByte(e.data, '\n') < 0 || jsontext.Value(e.data).IsValid(lenient) {
		return e, err
	}
	s.split(e, bytes.Split(slices.Clone(e.data), []byte("\n")))
	return s.event()
}

// split takes an event as several ones. Only the last of them may lack a part.
func (s *stream) split(e sseEvent, parts [][]byte) {
	for i, part := range parts {
		s.queue = append(s.queue, sseEvent{name: slices.Clone(e.name), data: part, open: e.open && i == len(parts)-1})
	}
}

// unread returns the error for an object that is no JSON, nil if nothing is lost with it, as with several
// objects one after another.
func (s *stream) unread(e sseEvent) error {
	if parts := valuesOf(e.data); len(parts) > 1 {
		s.split(e, parts)
		return nil
	}
	switch {
	case e.body:
		return s.failure(e.data)
	case e.open:
		return nil
	}
	return &StreamError{Reason: "event cannot be read: " + shorten(string(e.data))}
}

// valuesOf returns the values that a text has one after another, nil if it has anything else.
func valuesOf(data []byte) (parts [][]byte) {
	d := jsontext.NewDecoder(bytes.NewReader(data), lenient)
	for {
		raw, err := d.ReadValue()
		switch {
		case errors.Is(err, io.EOF):
			return parts
		case err != nil:
			return nil
		}
		parts = append(parts, slices.Clone(raw))
	}
}

// closed returns the error for a stream that ended with err before the answer was whole.
func (s *stream) closed(err error, reason string) error {
	if !errors.Is(err, io.EOF) {
		return err
	}
	var said refusal
	if said.read(s.odd); len(said.words) > 0 {
		return s.failure(s.odd)
	}
	return &StreamError{Reason: reason}
}

// trouble returns the error in an event that is no part of an answer, nil if it is none.
func (s *stream) trouble(e sseEvent) error {
	var said refusal
	said.read(e.data)
	if said.explicit || string(e.name) == "error" || e.body {
		return s.failure(e.data)
	}
	if len(said.words) > 0 {
		s.odd = slices.Clone(e.data)
	}
	return nil
}

// count is a number, which some servers write as a text or with a fraction. It is 0 for anything else.
type count int64

// UnmarshalJSONFrom implements [json.UnmarshalerFrom].
func (c *count) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	raw, err := d.ReadValue()
	if err != nil {
		return err
	}
	*c = 0
	if n, err := strconv.ParseFloat(strings.Trim(string(raw), `"`), 64); err == nil && math.Abs(n) < 1<<53 {
		*c = count(n)
	}
	return nil
}

// usage has the members of both wires.
type usage struct {
	PromptTokens     count        `json:"prompt_tokens"`
	InputTokens      count        `json:"input_tokens"`
	CompletionTokens count        `json:"completion_tokens"`
	OutputTokens     count        `json:"output_tokens"`
	TotalTokens      count        `json:"total_tokens"`
	CachedTokens     count        `json:"cached_tokens"` // Kimi
	PromptDetails    usageDetails `json:"prompt_tokens_details"`
	InputDetails     usageDetails `json:"input_tokens_details"`
	CompletionDetail usageDetails `json:"completion_tokens_details"`
	OutputDetails    usageDetails `json:"output_tokens_details"`
}

type usageDetails struct {
	CachedTokens    count `json:"cached_tokens"`
	ReasoningTokens count `json:"reasoning_tokens"`
}

// usageOf returns what a member usage says, nil if it is no object.
func usageOf(raw jsontext.Value) *protocol.TokenUsage {
	var u usage
	if raw.Kind() != '{' || !take(raw, &u) {
		return nil
	}
	in, out := max(u.PromptTokens, u.InputTokens), max(u.CompletionTokens, u.OutputTokens)
	return &protocol.TokenUsage{
		InputTokens:           int64(in),
		CachedInputTokens:     int64(max(u.PromptDetails.CachedTokens, u.InputDetails.CachedTokens, u.CachedTokens)),
		OutputTokens:          int64(out),
		ReasoningOutputTokens: int64(max(u.CompletionDetail.ReasoningTokens, u.OutputDetails.ReasoningTokens)),
		TotalTokens:           int64(cmp.Or(u.TotalTokens, in+out)),
	}
}

func isLimit(err error) bool {
	_, ok := errors.AsType[*LimitError](err)
	return ok
}

// has reports whether a member says something: it is no null, and neither false nor empty.
func has(raw jsontext.Value) bool {
	switch string(raw) {
	case "", "null", "false", `""`, "{}", "[]":
		return false
	}
	return true
}

// fails reports whether a member for an error has one. Some servers write an empty one, or one that says
// that there is none, in each event.
func fails(raw jsontext.Value, depth int) bool {
	if !has(raw) || depth > maxNested {
		return false
	}
	switch raw.Kind() {
	case '0':
		return string(raw) != "0"
	case '"':
		return !slices.Contains([]string{"", "0", "none", "null", "ok", "success"}, strings.ToLower(strings.TrimSpace(textOf(raw))))
	case '[':
		var all []jsontext.Value
		take(raw, &all)
		return slices.ContainsFunc(all, func(one jsontext.Value) bool { return fails(one, depth+1) })
	case '{':
		var members map[string]jsontext.Value
		take(raw, &members)
		for _, one := range members {
			if fails(one, depth+1) {
				return true
			}
		}
		return false
	}
	return true
}

// quoted returns a value as a text: what an object or a list says, and a number in its digits.
func quoted(raw jsontext.Value) jsontext.Value {
	switch raw.Kind() {
	case '{', '[':
		text, _ := contentOf(raw, 0)
		raw, _ = jsontext.AppendQuote(nil, text)
	case '0':
		raw, _ = jsontext.AppendQuote(nil, string(raw))
	}
	return raw
}

// textOf decodes a string, and returns anything else as JSON text.
func textOf(raw jsontext.Value) string {
	if len(raw) == 0 || string(raw) == "null" {
		return ""
	}
	if raw.Kind() == '"' {
		var s string
		if json.Unmarshal(raw, &s, lenient) == nil {
			return s
		}
	}
	return string(raw)
}

// wordOf returns a word, which some servers put into an object or a list, or write as none.
func wordOf(raw jsontext.Value) string {
	switch raw.Kind() {
	case '[':
		var all []jsontext.Value
		if take(raw, &all); len(all) == 1 {
			return wordOf(all[0])
		}
	case '{':
		var o map[string]jsontext.Value
		take(raw, &o)
		for _, name := range []string{"reason", "type"} {
			if has(o[name]) {
				return textOf(o[name])
			}
		}
		for _, one := range o {
			if len(o) == 1 && one.Kind() == '"' {
				return textOf(one)
			}
		}
	}
	if !has(raw) {
		return ""
	}
	if word := textOf(raw); !slices.Contains([]string{"null", "none"}, strings.ToLower(strings.TrimSpace(word))) {
		return word
	}
	return ""
}

// maxNested is how deep texts are looked for.
const maxNested = 4

// contentOf returns what a value says, and apart from it the thinking in it. It is a text, an object with
// one, or a list of these.
func contentOf(raw jsontext.Value, depth int) (text, thinking string) {
	if depth > maxNested {
		return "", ""
	}
	switch raw.Kind() {
	case '"':
		return textOf(raw), ""
	case '[':
		var parts []jsontext.Value
		take(raw, &parts)
		for _, part := range parts {
			t, th := contentOf(part, depth+1)
			text, thinking = text+t, thinking+th
		}
	case '{':
		var o struct {
			Type     jsontext.Value `json:"type"`
			Text     jsontext.Value `json:"text"`
			Content  jsontext.Value `json:"content"`
			Refusal  jsontext.Value `json:"refusal"`
			Thinking jsontext.Value `json:"thinking"`
		}
		take(raw, &o)
		for _, member := range []jsontext.Value{o.Text, o.Content, o.Refusal} {
			if text, thinking = contentOf(member, depth+1); text != "" {
				break
			}
		}
		if textOf(o.Type) == "thinking" {
			t, th := contentOf(o.Thinking, depth+1)
			text, thinking = "", t+th
		}
	}
	return text, thinking
}

// reasoningOf returns all that a value says.
func reasoningOf(raw jsontext.Value) string {
	text, thinking := contentOf(raw, 0)
	return text + thinking
}

// pieces is a text that comes in pieces. Two of them may have a half of a character each.
type pieces struct {
	strings.Builder
	half []byte // as in JSON
}

// add adds a piece and returns it. A half of a character at its end is kept for the next one.
func (p *pieces) add(raw jsontext.Value) string {
	if raw.Kind() == '"' {
		body := raw[1 : len(raw)-1]
		if len(p.half) > 0 {
			body = append(p.half, body...)
		}
		n := wholeCharacters(body)
		if n < len(body) || len(p.half) > 0 {
			p.half = bytes.Clone(body[n:])
			raw = append(append(append(make(jsontext.Value, 0, n+2), '"'), body[:n]...), '"')
		}
	}
	text := textOf(raw)
	p.WriteString(text)
	return text
}

// end adds the character of which only a half has come.
func (p *pieces) end() {
	if len(p.half) > 0 {
		p.half = nil
		p.WriteString("\uFFFD")
	}
}

// wholeCharacters returns how many bytes of a JSON string come before half a character at its end:
// the first of two escapes of surrogates, or a part of UTF-8.
func wholeCharacters(b []byte) int {
	n := len(b)
	if n >= 6 && b[n-6] == '\\' && b[n-5] == 'u' && b[n-4]|0x20 == 'd' && strings.IndexByte("89abAB", b[n-3]) >= 0 {
		before := len(b[:n-6]) - len(bytes.TrimRight(b[:n-6], `\`))
		if before%2 == 0 { // else the backslash is escaped
			return n - 6
		}
	}
	for i := min(utf8.UTFMax-1, n); i > 0; i-- {
		if !utf8.FullRune(b[n-i:]) {
			return n - i
		}
	}
	return n
}
