package model

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/lazyregexp"
	"github.com/go-json-experiment/json/jsontext"
)

// form says what a request lacks because the provider refuses it.
type form struct {
	without
	tools []string // the names of those that the provider refuses
}

type without uint

const (
	usageOption   without = 1 << iota // stream_options
	effort                            // reasoning_effort, and reasoning in the Responses API
	reasoning                         // the reasoning of messages
	signsOfCalls                      // what Gemini sent with calls
	images                            // remarks take their place, also of one that is broken
	nullContent                       // a text takes its place
	rolesInARow                       // messages of one role in a row, and system messages behind the first; the Chat wire never has them
	userAfterTool                     // a message of the assistant comes between them
	strictMember                      // of tools
	wholeSchemas                      // only the plain members of schemas
	emptyContent                      // a word takes its place
	systemRole                        // the first message of the user has the instructions; the Chat wire alone
	answerSchema                      // the instructions have it
	idsOfCalls                        // nine letters and digits take their place
	extras                            // what no answer needs in the Responses API; the Chat wire never has it
)

func (w without) has(one without) bool { return w&one != 0 }

// forms are what providers refuse, each with parts of what they say, in the form of [overflow], and
// whether a request has it. The first row that fits counts.
var forms = []struct {
	without without
	said    [][]string
	but     string // what it does not say; "" is nothing
	in      func(*Request) bool
}{
	{images, [][]string{
		{"image input is not supported"},                  // llama.cpp
		{"support image input"},                           // OpenRouter, Ollama
		{"does not support images"},                       // LM Studio
		{"is not a multimodal model"},                     // vLLM
		{"unknown variant", "image"},                      // DeepSeek
		{"untagged enum chatcompletionrequestcontent"},    // DeepSeek, of 2025
		{"invalid type: sequence, expected a string"},     // DeepSeek, of 2025
		{"image_url is only supported by certain models"}, // OpenAI
		{"image input modality is not enabled"},           // Gemini
		{"unsupported image"}, {"invalid image"},          // OpenAI, of one that is broken
		{"could not process image"},       // Anthropic
		{"unable to process input image"}, // Gemini
		{"failed to load image"},          // llama.cpp
		{"cannot identify image"},         // vLLM
	}, "", func(r *Request) bool { return hasImages(r.Items) }},
	{usageOption, [][]string{{"stream_options"}, {"include_usage"}}, "", func(*Request) bool { return true }},
	{effort, [][]string{{"effort"}, {"reasoning.summary"}, {"encrypted content"}, {"encrypted_content"}, {"support thinking"}, {"think value"}}, "", wantsEffort}, // the last two are Ollama's
	// Gemini wants them: it says that one is missing.
	{signsOfCalls, [][]string{{"extra_content"}, {"thought_signature"}}, "missing", func(r *Request) bool { return hasSigns(r.Items) }},
	{reasoning, [][]string{{"reasoning"}}, "", func(r *Request) bool { return reasoningMember(r.Items) != "" }},
	{effort, [][]string{{"reasoning"}}, "", wantsEffort},
	{answerSchema, [][]string{{"response_format"}, {"json_schema"}, {"text.format"}, {"structured output"}}, "Invalid schema", func(r *Request) bool { return r.OutputSchema != nil }},
	{idsOfCalls, [][]string{{"tool call id"}, {"tool_call_id"}, {"tool_call.id"}, {"tool_use.id"}, {"tool_use_id"}, {"call_id"}, {"tool_calls", ".id"}, {"tool_calls", "].id"}}, "", func(r *Request) bool { return slices.ContainsFunc(r.Items, isCall) }},
	{strictMember, [][]string{{"strict"}}, "", func(r *Request) bool { return len(r.Tools) > 0 }},
	{wholeSchemas, aboutTools, "response_format", func(r *Request) bool { return len(r.Tools) > 0 }},
	{systemRole, [][]string{{"system role"}, {"role system"}, {"role 'system'"}, {"support 'system'"}}, "", func(*Request) bool { return true }},
	{rolesInARow, [][]string{{"role"}, {"alternat"}, {"system message"}, {"developer"}, {"template"}, {"jinja"}, {"order"}}, "", func(r *Request) bool { return repeatsRoles(r.Items) }},
	{userAfterTool, [][]string{{"role"}, {"alternat"}, {"template"}, {"jinja"}, {"order"}, {"after", "tool"}, {"follow", "tool"}}, "", func(r *Request) bool { return asksAfterTool(r.Items) }},
	{nullContent, [][]string{{"content"}, {"null"}, {"none"}, {"template"}, {"jinja"}}, "", func(r *Request) bool { return slices.ContainsFunc(r.Items, isCall) }},
	{emptyContent, [][]string{{"content", "empty"}, {"content", "at least 1"}, {"content", "required"}}, "", func(r *Request) bool { return slices.ContainsFunc(r.Items, isCall) }},
	{systemRole, [][]string{{"system"}}, "", func(*Request) bool { return true }},
	// Other words about pictures, and about a content that is no text.
	{images, [][]string{{"image"}, {"vision"}, {"multimodal"}, {"multi-modal"}, {"content", "string"}, {"content type"}}, "", func(r *Request) bool { return hasImages(r.Items) }},
	{extras, [][]string{
		{"prompt_cache_key"}, {"parallel_tool_calls"}, {"tool_choice"}, {"verbosity"}, {"parameter", "reasoning"}, {"reasoning", "a valid"}, {"'include'"}, {"\"include\""}, {"`include`"},
		// OpenAI says other things about it, and would keep the conversation without it.
		{"store", "unknown"}, {"store", "unsupported"}, {"store", "unrecognized"}, {"store", "extra"},
	}, "", func(*Request) bool { return true }},
}

func wantsEffort(r *Request) bool { return r.Effort != "" || r.Reasoning != nil }

// aboutTools are parts of refusals of a tool.
var aboutTools = [][]string{{"schema"}, {"parameters"}, {"function_declaration"}, {"tools["}, {"tools."}, {"tools", "too long"}, {"tools", "too many"}, {"tools", "maximum"}, {"tools", "at most"}}

// other returns the form in which a request is sent again that the provider refused in this one. ok is
// false if there is none.
func (f form) other(status int, answer string, req *Request) (next form, ok bool) {
	switch status {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity,
		http.StatusInternalServerError, http.StatusNotImplemented:
	default:
		return f, false
	}
	for _, one := range forms {
		if !f.has(one.without) && one.in(req) && says(answer, one.said) && (one.but == "" || !strings.Contains(answer, one.but)) {
			f.without |= one.without
			return f, true
		}
	}
	if !f.has(wholeSchemas) || !says(answer, aboutTools) || strings.Contains(answer, "response_format") {
		return f, false
	}
	refused := f.refusedTools(answer, req.Tools)
	f.tools = append(slices.Clone(f.tools), refused...)
	return f, len(refused) > 0
}

// toolIndex is how a refusal names a tool by its place among those of the request.
var toolIndex = lazyregexp.Regexp{Text: `\b(?:tools|function_declarations)[.\[](\d+)`}

// refusedTools returns the names of the tools that a refusal names, or of all if it names none. Only
// those of MCP servers count.
func (f form) refusedTools(answer string, tools []Tool) (named []string) {
	places := toolIndex.Get().FindAllStringSubmatch(answer, -1)
	words := strings.FieldsFunc(answer, func(r rune) bool { return r != '_' && r != '-' && !unicode.IsLetter(r) && !unicode.IsDigit(r) })
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

// offered returns the tools that the provider does not refuse.
func (f form) offered(tools []Tool) []Tool {
	return slices.DeleteFunc(slices.Clone(tools), func(t Tool) bool { return t.Foreign && slices.Contains(f.tools, t.Name) })
}

// schema returns the schema of a tool's arguments, by default that of an empty object.
func (f form) schema(t Tool) jsontext.Value {
	switch {
	case f.has(wholeSchemas):
		return jsontext.Value(plainSchema(t.Parameters))
	case len(t.Parameters) == 0:
		return jsontext.Value(`{"type":"object","properties":{}}`)
	}
	return jsontext.Value(t.Parameters)
}

// instructions returns what a request says first: its instructions, and the schema of the answer where the
// provider takes none.
func (f form) instructions(req *Request, text string) string {
	if req.OutputSchema == nil || !f.has(answerSchema) {
		return text
	}
	return join(text, "Your last message is only JSON that follows this schema, with nothing around it:\n"+string(req.OutputSchema))
}

// id returns the id of a call.
func (f form) id(id string) string {
	if !f.has(idsOfCalls) {
		return id
	}
	sum := sha256.Sum256([]byte(id)) // only keeps ids apart
	const most = 9                   // Mistral takes no other number
	return hex.EncodeToString(sum[:])[:most]
}

// withIDs returns the items with the ids of calls that the provider takes.
func (f form) withIDs(items []protocol.ResponseItem) []protocol.ResponseItem {
	if !f.has(idsOfCalls) {
		return items
	}
	items = slices.Clone(items)
	for i, item := range items {
		switch item := item.(type) {
		case protocol.FunctionCallOutputItem:
			item.CallID = f.id(item.CallID)
			items[i] = item
		case protocol.CustomToolCallOutputItem:
			item.CallID = f.id(item.CallID)
			items[i] = item
		default:
			if id, ok := callID(item); ok {
				items[i] = named(item, f.id(id))
			}
		}
	}
	return items
}

// formError asks for another attempt, in another form.
type formError struct{ next form }

func (*formError) Error() string { return "the provider refused the form of the request" }

// asksAfterTool reports whether a message of the user follows the output of a call.
func asksAfterTool(items []protocol.ResponseItem) bool {
	output := false
	for _, item := range items {
		switch item := item.(type) {
		case protocol.FunctionCallOutputItem, protocol.CustomToolCallOutputItem:
			output = true
		case protocol.MessageItem:
			if output && item.Role == "user" {
				return true
			}
			output = false
		default:
			output = false
		}
	}
	return false
}

// repeatsRoles reports whether messages of one role follow each other, or one belongs to the system message.
func repeatsRoles(items []protocol.ResponseItem) bool {
	last := ""
	for _, item := range items {
		m, _ := item.(protocol.MessageItem)
		if isSystem(m.Role) || m.Role != "" && m.Role == last {
			return true
		}
		last = m.Role
	}
	return false
}

// alternating returns the items with one message in place of those of one role in a row, and without those
// that belong to the system message.
func alternating(items []protocol.ResponseItem) (all []protocol.ResponseItem) {
	var last protocol.MessageItem // at the end of all
	for _, item := range items {
		m, ok := item.(protocol.MessageItem)
		switch {
		case ok && isSystem(m.Role):
			continue
		case ok && m.Role == last.Role:
			m.Content = joinParts(last.Content, m.Content)
			all = all[:len(all)-1]
			item = m
		}
		all, last = append(all, item), m
	}
	return all
}

// joinParts returns the parts of two messages. Texts that meet become one.
func joinParts(a, b []protocol.ContentItem) []protocol.ContentItem {
	a = slices.Clone(a)
	if end := len(a) - 1; end >= 0 && len(b) > 0 && a[end].Type == b[0].Type && a[end].ImageURL == "" && b[0].ImageURL == "" {
		a[end].Text, b = join(a[end].Text, b[0].Text), b[1:]
	}
	return append(a, b...)
}

// apart returns the items with a message of the assistant between the output of a call and a message of the user.
func apart(items []protocol.ResponseItem) (all []protocol.ResponseItem) {
	for i, item := range items {
		if i > 0 && asksAfterTool(items[i-1:i+1]) {
			all = append(all, protocol.MessageItem{Role: "assistant", Content: []protocol.ContentItem{{Type: "output_text", Text: betweenToolAndUser}}})
		}
		all = append(all, item)
	}
	return all
}

// plainSchema returns a schema of an object with the members that each provider reads: it leaves out
// the rest, and adds what some require.
func plainSchema(schema json.RawMessage) json.RawMessage {
	var s map[string]any
	if json.Unmarshal(schema, &s) != nil || s["type"] != "object" {
		s = map[string]any{}
	}
	delete(s, "enum")
	plain := plainPart(s, 0)
	plain["type"] = "object"
	if _, ok := plain["properties"]; !ok {
		plain["properties"] = map[string]any{}
	}
	text, err := json.Marshal(plain)
	if err != nil {
		return nil
	}
	return text
}

// plainPart returns a part of a schema with a type. Any text is better than a part that cannot be said.
func plainPart(part any, depth int) map[string]any {
	s, _ := part.(map[string]any)
	kind, ok := s["type"].(string)
	kinds, _ := s["type"].([]any) // such as ["string", "null"]
	for _, one := range kinds {
		if word, _ := one.(string); word != "null" && !ok {
			kind, ok = word, word != ""
		}
	}
	if !ok {
		for _, name := range []string{"anyOf", "oneOf", "allOf"} { // the first that is no null
			options, _ := s[name].([]any)
			for _, option := range options {
				if inside := plainPart(option, depth+1); inside["type"] != "null" && depth < maxNested {
					return inside
				}
			}
		}
	}
	plain := map[string]any{"type": "string"}
	if text, ok := s["description"].(string); ok {
		plain["description"] = text
	}
	switch properties, _ := s["properties"].(map[string]any); {
	case depth > 2*maxNested:
	case kind == "object" || len(properties) > 0:
		all := map[string]any{}
		for name, property := range properties {
			all[name] = plainPart(property, depth+1)
		}
		plain["type"], plain["properties"] = "object", all
		required, _ := s["required"].([]any)
		if required = slices.DeleteFunc(required, func(name any) bool { word, _ := name.(string); return all[word] == nil }); len(required) > 0 {
			plain["required"] = required
		}
	case kind == "array":
		plain["type"], plain["items"] = "array", plainPart(s["items"], depth+1)
	case kind == "integer", kind == "number", kind == "boolean", kind == "null":
		plain["type"] = kind
	default:
		enum, _ := s["enum"].([]any)
		if len(enum) > 0 && !slices.ContainsFunc(enum, func(one any) bool { _, text := one.(string); return !text }) {
			plain["enum"] = enum
		}
	}
	return plain
}
