package model

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/lazyregexp"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// value is a part of the JSON that a provider sent, to whose text it refers. Servers differ in what they send
// besides the answer: so a reader asks for what it needs, and a member that is missing is the zero value.
type value struct {
	raw  jsontext.Value
	name jsontext.Value // of a member
	all  []value        // the members of an object, or the values of a list
}

// lenient accepts JSON of providers that repeat members, or split a character between two events.
func lenient() json.Options {
	return json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// maxValues is how many values a text may have. Each takes more memory than its text.
const maxValues = 1 << 18

// parser reads the values of one text after another.
type parser struct {
	json    *jsontext.Decoder
	lenient json.Options
	data    []byte
	from    bytes.Buffer // the data
	left    int
	stack   []value // that belong to none yet
	kept    []value // that belong to one; their memory is that of the next text
}

// parse returns the first value in a text, and what follows it. ok is false if there is none.
func (p *parser) parse(data []byte) (v value, rest []byte, ok bool) {
	if p.json == nil {
		p.json, p.lenient = jsontext.NewDecoder(&p.from), lenient()
	}
	p.data, p.from, p.left, p.stack, p.kept = data, *bytes.NewBuffer(data), maxValues, p.stack[:0], p.kept[:0]
	p.json.Reset(&p.from, p.lenient)
	if err := p.value(nil); err != nil {
		return value{}, data, false
	}
	return p.stack[0], bytes.TrimSpace(data[p.json.InputOffset():]), true
}

// value adds the next value to the stack.
func (p *parser) value(name jsontext.Value) (err error) {
	if p.left--; p.left < 0 {
		return tooMuch("one event", maxValues, "values")
	}
	v := value{name: name}
	kind := p.json.PeekKind()
	if kind != '{' && kind != '[' {
		v.raw, err = p.json.ReadValue()
		p.stack = append(p.stack, v)
		return err
	}
	_, err = p.json.ReadToken()
	from, inside := p.json.InputOffset()-1, len(p.stack)
	for err == nil && p.json.PeekKind() != kind+2 { // its end
		name = nil
		if kind == '{' {
			name, err = p.json.ReadValue()
		}
		if err == nil {
			err = p.value(name)
		}
	}
	if err == nil {
		_, err = p.json.ReadToken()
	}
	kept := len(p.kept)
	p.kept = append(p.kept, p.stack[inside:]...)
	v.raw, v.all = p.data[from:p.json.InputOffset()], slices.Clip(p.kept[kept:])
	p.stack = append(p.stack[:inside], v)
	return err
}

// parse returns the one value that a text is, the zero value for any other text.
func parse(data []byte) value {
	v, rest, _ := new(parser).parse(data)
	if len(rest) > 0 {
		return value{}
	}
	return v
}

var noNumber = lazyregexp.Regexp{Text: `"(?:[^"\\]|\\.)*"|-?\b(?i:nan|inf(?:inity)?)\b`}

// withoutNaN puts null for the numbers that Python and C++ write and JSON does not have.
func withoutNaN(data []byte) []byte {
	return noNumber.Get().ReplaceAllFunc(data, func(found []byte) []byte {
		if found[0] == '"' {
			return found
		}
		return []byte("null")
	})
}

// at returns a member of an object, by its name in small letters. Capitals, underscores and dashes do not count.
func (v value) at(name string) value {
	for i := len(v.all) - 1; i >= 0; i-- { // the last counts
		if named := v.all[i].name; named != nil && same(named[1:len(named)-1], name) {
			return v.all[i]
		}
	}
	return value{}
}

func same(said []byte, name string) bool {
	at := 0
	for _, c := range said {
		if c == '_' || c == '-' {
			continue
		}
		if at < len(name) && name[at] == '_' {
			at++
		}
		if at == len(name) || c|0x20 != name[at] {
			return false
		}
		at++
	}
	return at == len(name)
}

func (v value) kind() jsontext.Kind { return v.raw.Kind() }

// has reports whether a value says something: it is no null, and neither false nor empty.
func (v value) has() bool {
	switch string(v.raw) {
	case "", "null", "false", `""`, "{}", "[]":
		return false
	}
	return true
}

// list returns the values of a list. An object counts as a list of one.
func (v value) list() []value {
	switch v.kind() {
	case '[':
		return v.all
	case '{':
		return []value{v}
	}
	return nil
}

// text decodes a string, and returns anything else as JSON text.
func (v value) text() string {
	switch {
	case len(v.raw) == 0, string(v.raw) == "null":
		return ""
	case v.raw[0] != '"':
		return string(v.raw)
	case bytes.IndexByte(v.raw, '\\') < 0 && utf8.Valid(v.raw):
		return string(v.raw[1 : len(v.raw)-1])
	}
	text, _ := jsontext.AppendUnquote(nil, v.raw) // what is invalid is replaced
	return string(text)
}

// count returns a whole number, which some servers write as a text or with a fraction. It is 0 for anything else.
func (v value) count() int64 {
	if n, err := strconv.ParseFloat(strings.Trim(string(v.raw), `"`), 64); err == nil && math.Abs(n) < 1<<53 {
		return int64(n)
	}
	return 0
}

// fails reports whether a member for an error has one. Some servers write an empty one, or one that says
// that there is none, in each event.
func (v value) fails() bool {
	switch v.kind() {
	case 't':
		return true
	case '0':
		return string(v.raw) != "0"
	case '"':
		return !slices.Contains([]string{"", "0", "none", "null", "ok", "success"},
			strings.ToLower(strings.TrimSpace(v.text())))
	}
	return slices.ContainsFunc(v.all, value.fails)
}

// word returns a word, which some servers put into an object or a list, or write as none.
func (v value) word() string {
	switch {
	case v.kind() == '[' && len(v.all) == 1:
		return v.all[0].word()
	case v.at("reason").has():
		return v.at("reason").text()
	case v.at("type").has():
		return v.at("type").text()
	case v.kind() == '{' && len(v.all) == 1 && v.all[0].kind() == '"':
		return v.all[0].text()
	}
	if word := v.text(); v.has() && !slices.Contains([]string{"null", "none"},
		strings.ToLower(strings.TrimSpace(word))) {
		return word
	}
	return ""
}

// content returns what a value says, and apart from it the thinking in it. It is a text, an object with
// one, or a list of these.
func (v value) content() (text, thinking string) {
	var said, thought strings.Builder
	v.say(&said, &thought)
	return said.String(), thought.String()
}

func (v value) say(text, thinking *strings.Builder) {
	switch v.kind() {
	case '"':
		text.WriteString(v.text())
	case '[':
		for _, part := range v.all {
			part.say(text, thinking)
		}
	case '{':
		if v.at("type").text() == "thinking" {
			v.at("thinking").say(thinking, thinking)
			return
		}
		for _, name := range []string{"text", "content", "refusal"} {
			before := text.Len()
			if v.at(name).say(text, thinking); text.Len() > before {
				break
			}
		}
	}
}

// usage returns what a member usage says on either wire, nil if it is no object.
func (v value) usage() *protocol.TokenUsage {
	if v.kind() != '{' {
		return nil
	}
	of := func(v value, names ...string) (most int64) {
		for _, name := range names {
			most = max(most, v.at(name).count())
		}
		return most
	}
	in, out := of(v, "prompt_tokens", "input_tokens"), of(v, "completion_tokens", "output_tokens")
	// the last is Kimi's
	u := &protocol.TokenUsage{InputTokens: in, OutputTokens: out, TotalTokens: of(v, "total_tokens"),
		CachedInputTokens: of(v, "cached_tokens")}
	if u.TotalTokens == 0 {
		u.TotalTokens = in + out
	}
	for _, name := range []string{"prompt_tokens_details", "input_tokens_details", "completion_tokens_details",
		"output_tokens_details"} {
		details := v.at(name)
		u.CachedInputTokens = max(u.CachedInputTokens, of(details, "cached_tokens"))
		u.ReasoningOutputTokens = max(u.ReasoningOutputTokens, of(details, "reasoning_tokens"))
	}
	return u
}

// pieces is a text that comes in pieces. Two of them may have a half of a character each.
type pieces struct {
	strings.Builder
	half []byte // as in JSON
}

// add adds a piece and returns it. A half of a character at its end is kept for the next one.
func (p *pieces) add(v value) string {
	if v.kind() == '"' {
		body := v.raw[1 : len(v.raw)-1]
		if len(p.half) > 0 {
			body = append(p.half, body...)
		}
		n := wholeCharacters(body)
		if n < len(body) || len(p.half) > 0 {
			p.half = bytes.Clone(body[n:])
			v.raw = slices.Concat(jsontext.Value(`"`), body[:n], jsontext.Value(`"`))
		}
	}
	text := v.text()
	p.WriteString(text)
	return text
}

// say adds what a value says, and returns it.
func (p *pieces) say(v value) string {
	if kind := v.kind(); kind != '{' && kind != '[' {
		return p.add(v)
	}
	text, _ := v.content()
	p.WriteString(text)
	return text
}

// end adds the character of which only a half has come, and returns the text.
func (p *pieces) end() string {
	if len(p.half) > 0 {
		p.half = nil
		p.WriteString("\uFFFD")
	}
	return p.String()
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
