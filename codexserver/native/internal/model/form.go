package model

import (
	"bytes"
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/lazyregexp"
	"github.com/codexmcp/codexmcp/internal/stack"
	"github.com/codexmcp/codexmcp/internal/text"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// form says what a request lacks because the provider refuses it.
type form struct {
	without
	tools []string // the names of those that the provider refuses
}

type without uint

const (
	usageOption without = 1 << iota // stream_options
	effort                          // reasoning_effort, and reasoning in the Responses API
	reasoning                       // the reasoning of messages
	besideCalls                     // what the provider's messages and calls had beside what we know
	images                          // remarks take their place, also of one that is broken
	nullContent                     // a text takes its place
	// messages of one role in a row, and system messages behind the first; the Chat wire never has them
	rolesInARow
	userAfterTool // a message of the assistant comes between them
	strictMember  // of tools
	wholeSchemas  // only the plain members of schemas
	emptyContent  // a word takes its place
	systemRole    // the first message of the user has the instructions; the Chat wire alone
	answerSchema  // which the instructions have, too
	shortIDs      // of ids of calls, what is over 64 bytes
	idsOfCalls    // nine letters and digits take their place
	extras        // what no answer needs in the Responses API; the Chat wire never has it
	noStream      // the whole answer comes at once
	encrypted     // thinking that the provider alone can read
	phases        // the phase of messages
	signatures    // calls without what Gemini wants with them: its word for none takes its place
	outputNames   // outputs without the name of their tool
	noToolChoice  // tools whose use is forbidden, unless it needs them
	needsTools    // a history with calls but no tools
	descriptions  // of tools, none and long ones
	// outputs elsewhere than directly behind their calls; the Chat wire never has them
	outputsApart
)

func (w without) has(one without) bool { return w&one != 0 }

// otherForm returns the form in which a request is sent again that the provider refused in this one, nil for none.
func (a *attempt) otherForm(status int, answer string) *form {
	switch status {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity,
		http.StatusInternalServerError, http.StatusNotImplemented:
	default:
		return nil
	}
	body := func(f form) (body []byte) {
		stack.Apart(func() { body, _ = a.client.wire(f).body(a.req) }) // the one that was sent could be encoded
		return body
	}
	now := body(a.form)
	aboutTools, tried := false, a.form.without|tooLong|tooOften|badKey|noScope
	for _, words := range refusals {
		if !words.in(answer) {
			continue
		}
		if aboutTools = aboutTools || words.means == wholeSchemas; tried.has(words.means) {
			continue
		}
		tried |= words.means
		if next := (form{a.form.without | words.means, a.form.tools}); !bytes.Equal(body(next), now) {
			return &next
		}
	}
	if refused := a.form.refusedTools(answer, a.req.Tools); aboutTools && len(refused) > 0 {
		return &form{a.form.without, slices.Concat(a.form.tools, refused)}
	}
	return nil
}

// toolIndex is how a refusal names a tool by its place among those of the request.
var toolIndex = lazyregexp.Regexp{Text: `\b(?:tools|function_declarations)[.\[](\d+)`}

// refusedTools returns the names of the tools that a refusal names, or of all if it names none. Only
// those of MCP servers count.
func (f form) refusedTools(answer string, tools []Tool) (named []string) {
	places := toolIndex.Get().FindAllStringSubmatch(answer, -1)
	words := strings.FieldsFunc(answer,
		func(r rune) bool { return r != '_' && r != '-' && !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	var all []string
	for i, t := range f.offered(tools) {
		if !t.Foreign {
			continue
		}
		all = append(all, t.Name)
		// The innermost place counts: Gemini has all functions in one tool.
		if slices.Contains(words, t.Name) || len(places) > 0 && places[len(places)-1][1] == strconv.Itoa(i) {
			named = append(named, t.Name)
		}
	}
	const most = 16 // so many are named one after another
	if named == nil || len(f.tools) >= most {
		return all
	}
	return named
}

// toolsOf returns the tools of a request, and whether their use is forbidden. Without a way to forbid it there are no tools,
// unless the provider wants them.
func (f form) toolsOf(req *Request, noChoice bool) (tools []Tool, forbidden bool) {
	noChoice = noChoice || req.Ignored
	if req.NoCalls && noChoice && !f.has(needsTools) {
		return nil, false
	}
	return f.offered(req.Tools), req.NoCalls && !noChoice
}

// offered returns the tools that the provider does not refuse.
func (f form) offered(tools []Tool) []Tool {
	return slices.DeleteFunc(slices.Clone(tools),
		func(t Tool) bool { return t.Foreign && slices.Contains(f.tools, t.Name) })
}

// maxDescription is the longest description of a tool that OpenAI takes.
const maxDescription = 1024

// functionTool is a function as the model sees it.
type functionTool struct {
	Name        string         `json:"name"`
	Description string         `json:"description"`
	Strict      *bool          `json:"strict,omitzero"`
	Parameters  jsontext.Value `json:"parameters"`
}

// function returns a tool in this form. Its arguments are by default an empty object.
func (f form) function(t Tool) *functionTool {
	own := &functionTool{Name: t.Name, Description: t.Description, Parameters: jsontext.Value(t.Parameters)}
	if !f.has(strictMember) {
		own.Strict = new(false)
	}
	if f.has(descriptions) {
		own.Description = text.Brief(cmp.Or(strings.TrimSpace(t.Description), t.Name), maxDescription-len("…"))
	}
	switch {
	case f.has(wholeSchemas):
		own.Parameters = plainSchema(t.Parameters)
	case len(t.Parameters) == 0:
		own.Parameters = jsontext.Value(`{"type":"object","properties":{}}`)
	}
	return own
}

// schemaFormat is the form of the answer.
type schemaFormat struct {
	Type   string         `json:"type,omitzero"`
	Name   string         `json:"name"`
	Strict bool           `json:"strict"`
	Schema jsontext.Value `json:"schema"`
}

// holds reports whether a request holds the model to the schema of the answer. One that may call does not: a provider that
// obeys a schema from the first token on would let the model call nothing.
func (f form) holds(req *Request) bool {
	return req.OutputSchema != nil && req.NoCalls && !f.has(answerSchema)
}

func formatOf(req *Request) schemaFormat {
	// providers require a name
	return schemaFormat{Name: "codex_output_schema", Strict: true, Schema: jsontext.Value(req.OutputSchema)}
}

// join returns two texts with an empty line between them.
func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n\n" + b
}

// joinParts returns the parts of two messages. Texts that meet become one.
func joinParts(a, b []protocol.ContentItem) []protocol.ContentItem {
	if len(a) == 0 || len(b) == 0 || isImage(a[len(a)-1]) || isImage(b[0]) {
		return slices.Concat(a, b)
	}
	a = slices.Concat(a, b[1:])
	end := len(a) - len(b)
	a[end].Text = join(a[end].Text, b[0].Text)
	return a
}

func isImage(c protocol.ContentItem) bool { return c.Type == "input_image" }

// withoutImages returns parts with a remark in the place of each image.
func withoutImages(parts []protocol.ContentItem) []protocol.ContentItem {
	parts = slices.Clone(parts)
	for i, c := range parts {
		if isImage(c) {
			parts[i] = protocol.ContentItem{Type: "input_text",
				Text: "\n[An image was here. It was left out, because this model cannot take images.]\n"}
		}
	}
	return parts
}

// plainSchema returns a schema of an object with the members that each provider reads: it leaves out
// the rest, and adds what some require.
func plainSchema(schema []byte) jsontext.Value {
	s := parse(schema)
	if s.at("type").text() != "object" {
		s = value{}
	}
	plain := plainPart(s, 0)
	plain["type"] = "object"
	if plain["properties"] == nil {
		plain["properties"] = map[string]any{}
	}
	// texts and objects can be written
	schemaText, _ := json.Marshal(plain, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	return schemaText
}

// plainPart returns a part of a schema with a type. Any text is better than a part that cannot be said.
func plainPart(s value, depth int) map[string]any {
	const most = 8 // further inside is any text
	kind := ""
	if one := s.at("type"); one.kind() == '"' {
		kind = one.text()
	}
	for _, one := range s.at("type").all { // such as ["string", "null"]
		if one.kind() == '"' && one.text() != "null" {
			kind = cmp.Or(kind, one.text())
		}
	}
	for _, name := range []string{"any_of", "one_of", "all_of"} { // the first that is no null
		for _, option := range s.at(name).all {
			if inside := plainPart(option, depth+1); kind == "" && inside["type"] != "null" && depth < most {
				return inside
			}
		}
	}
	plain := map[string]any{"type": "string"}
	if text := s.at("description"); text.kind() == '"' {
		plain["description"] = text.text()
	}
	switch properties := s.at("properties").all; {
	case depth > most:
	case kind == "object" || len(properties) > 0:
		all, required := map[string]any{}, []string(nil)
		for _, p := range properties {
			all[value{raw: p.name}.text()] = plainPart(p, depth+1)
		}
		for _, name := range s.at("required").all {
			if all[name.text()] != nil {
				required = append(required, name.text())
			}
		}
		if plain["type"], plain["properties"] = "object", all; required != nil {
			plain["required"] = required
		}
	case kind == "array":
		plain["type"], plain["items"] = "array", plainPart(s.at("items"), depth+1)
	case kind == "integer", kind == "number", kind == "boolean", kind == "null":
		plain["type"] = kind
	default:
		var enum []string
		for _, one := range s.at("enum").all {
			if one.kind() != '"' {
				return plain
			}
			enum = append(enum, one.text())
		}
		if enum != nil {
			plain["enum"] = enum
		}
	}
	return plain
}
