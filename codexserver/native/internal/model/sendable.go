package model

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/outputschema"
	"github.com/codexmcp/codexmcp/internal/text"
	"github.com/go-json-experiment/json/jsontext"
)

// A model, a file of another program or a server can write a history that providers refuse, from then on in each
// request: a call with half an object as arguments, a name with a blank, an id that comes twice, a call without an output.
// Such a history is mended in the request alone. What providers take stays as it is, to the byte. A repair depends on
// nothing that comes later, but for the output of a call, so that a provider's cache has the beginning of each later request.

const (
	// maxName is the longest name of a call that OpenAI, Anthropic, Gemini and Bedrock take, and maxID the longest id that
	// the Responses API takes, in bytes. Gateways of Gemini have its signature in the id, which must stay whole for them.
	maxName, maxID = 64, 64
	// maxQuoted is how much is shown of arguments that are no object, in bytes.
	maxQuoted = 4 << 10
)

// noOutput is the output of a call that has none.
const noOutput = "aborted: there is no output of this call. It may have run, in whole or in part"

// known are the types of items that are sent, besides those of package protocol: what a provider of the Responses API does by
// itself and says. The other calls and outputs of that API are in pairs, of tools that no request offers.
var known = []string{"code_interpreter_call", "compaction", "file_search_call", "image_generation_call",
	"web_search_call"}

// codexOnly are the types of items that Codex keeps for itself.
var codexOnly = []string{"ghost_snapshot", "compaction_trigger", "context_compaction", "other"}

// mender makes what a request says first, and its items, as the provider takes them in a form.
type mender struct {
	form
	tools []Tool
	items []protocol.ResponseItem
	// the place of the output of a call, and of the call of an output; -1 without one
	pairs []int
	used  map[string]bool               // the ids of calls
	apart map[int]protocol.ResponseItem // outputs that stay at their place
	first string
	out   []protocol.ResponseItem
}

// history returns what a request says first, and its items, in this form.
func (f form) history(req *Request) (first string, items []protocol.ResponseItem) {
	m := mender{form: f, tools: req.Tools, items: req.Items, used: map[string]bool{},
		apart: map[int]protocol.ResponseItem{}, first: req.Instructions,
		out: make([]protocol.ResponseItem, 0, len(req.Items)+1)}
	m.pair()
	for i := 0; i < len(m.items); i++ {
		begin := i
		for i < len(m.items) && isCall(m.items[i]) {
			i++
		}
		m.calls(begin, i)
		if i < len(m.items) {
			m.other(i)
		}
	}
	m.unfinished()
	if req.OutputSchema != nil {
		m.first = join(m.first, outputschema.Words(req.OutputSchema))
	}
	return m.first, m.out
}

// pair finds the output of each call. Of calls with one id, those of an earlier response have none any more.
func (m *mender) pair() {
	m.pairs = make([]int, len(m.items))
	open, response := map[string][]int{}, 0 // where the response begins
	for i, item := range m.items {
		m.pairs[i] = -1
		if call, ok := CallOf(item); ok {
			if before := open[call.ID]; len(before) > 0 && before[0] < response {
				open[call.ID] = nil
			}
			open[call.ID] = append(open[call.ID], i)
		} else if answer, ok := AnswerOf(item); ok {
			if calls := open[answer.CallID]; len(calls) > 0 {
				m.pairs[i], m.pairs[calls[0]], open[answer.CallID] = calls[0], i, calls[1:]
			}
			response = i + 1
		} else if said, ok := item.(protocol.MessageItem); ok && said.Role != "assistant" {
			response = i + 1
		}
	}
}

// calls adds calls that stand together, and directly behind them their outputs: first those that are missing, then the others
// in their order, unless the provider takes them further on.
func (m *mender) calls(begin, end int) {
	type output struct {
		at   int // its place
		item protocol.ResponseItem
	}
	outputs := make([]output, 0, end-begin)
	for i := begin; i < end; i++ {
		call, _ := CallOf(m.items[i])
		item, said := m.fitting(m.items[i], call)
		call.ID = m.id(call.ID)
		m.out = append(m.out, named(item, call.ID))
		if at := m.pairs[i]; at >= 0 {
			answer, _ := AnswerOf(m.items[at])
			said += answer.Output
		} else {
			said += noOutput
		}
		if at := m.pairs[i]; at >= 0 && !m.has(outputsApart) {
			m.apart[at] = call.Answer(said)
		} else {
			outputs = append(outputs, output{at, call.Answer(said)})
		}
	}
	slices.SortStableFunc(outputs, func(a, b output) int { return a.at - b.at })
	for _, o := range outputs {
		m.out = append(m.out, o.item)
	}
}

// other adds what is no call.
func (m *mender) other(i int) {
	switch item := m.items[i].(type) {
	case protocol.MessageItem:
		m.message(item)
		return
	case protocol.FunctionCallOutputItem, protocol.CustomToolCallOutputItem:
		if m.pairs[i] < 0 {
			m.message(remark("an output without its call"))
		} else if output := m.apart[i]; output != nil {
			m.unfinished()
			m.out = append(m.out, output)
		}
		return
	case protocol.ReasoningItem:
		unreadable := m.has(encrypted) && item.EncryptedContent != nil && *item.EncryptedContent != ""
		if unreadable || m.has(besideCalls) && isSigns(item) {
			return
		}
	case protocol.RawItem:
		if slices.Contains(codexOnly, item.Type) {
			return
		}
		if m.has(encrypted) && parse(item.Raw).at("encrypted_content").has() {
			m.message(remark("a summary that only another account can read"))
			return
		}
		if !slices.Contains(known, item.Type) {
			m.message(remark("an item of the type " + text.Brief(strings.ToValidUTF8(item.Type, "\uFFFD"), maxName)))
			return
		}
	}
	m.out = append(m.out, m.items[i])
}

// unfinished removes the thinking at the end, which nothing of its response follows: the Responses API refuses that.
func (m *mender) unfinished() {
	for end := len(m.out) - 1; end >= 0; end-- {
		if _, thinking := m.out[end].(protocol.ReasoningItem); !thinking {
			break
		}
		m.out = m.out[:end]
	}
}

// remark returns a message about what was left out.
func remark(what string) protocol.MessageItem {
	return protocol.MessageItem{Role: "user",
		Content: []protocol.ContentItem{{Type: "input_text", Text: "[Left out of this conversation: " + what + ".]"}}}
}

// id returns an id that no call before has.
func (m *mender) id(id string) string {
	name := strings.Map(func(r rune) rune {
		if !fitsInID(r) {
			return '_'
		}
		return r
	}, id)
	if m.has(shortIDs) {
		name = name[:min(len(name), maxID)]
	}
	if name == "" {
		name = "call"
	}
	if name = unused(m.used, name); m.has(idsOfCalls) {
		sum := sha256.Sum256([]byte(name)) // only keeps ids apart
		const most = 9                     // Mistral takes no other number
		return hex.EncodeToString(sum[:])[:most]
	}
	return name
}

func fitsInID(r rune) bool {
	return r > ' ' && r < 0x7f && r != '"' && r != '\'' && r != '`' && r != '\\' && r != '<' && r != '>'
}

// fitting returns a call with a name and arguments that providers take, and a remark for its output about arguments that
// are left out.
func (m *mender) fitting(item protocol.ResponseItem, call Call) (_ protocol.ResponseItem, remark string) {
	name := call.Name
	if !fits(name) {
		name = cmp.Or(offeredAs(name, m.tools), fittingName(name))
	}
	switch one := item.(type) {
	case protocol.FunctionCallItem:
		one.Name = name
		if arguments := jsontext.Value(one.Arguments); arguments.Kind() != '{' || !isSendable(arguments) {
			if said := strings.TrimSpace(one.Arguments); said != "" && said != "null" {
				remark = "[The arguments of this call were no JSON object. Call the tool again with one. They were:\n" +
					text.Brief(strings.ToValidUTF8(said, "\uFFFD"), maxQuoted) + "\n]\n"
			}
			one.Arguments = "{}"
		}
		return one, remark
	case protocol.CustomToolCallItem:
		one.Name = name
		return one, ""
	}
	return item, ""
}

// isSendable reports whether arguments are JSON when they are sent. Other bytes than UTF-8 are replaced then, but a half of
// a character in an escape is not, and llama.cpp refuses that.
func isSendable(arguments jsontext.Value) bool {
	again := jsontext.AllowDuplicateNames(true)
	return arguments.IsValid(again) || !utf8.Valid(arguments) &&
		jsontext.Value(bytes.ToValidUTF8(arguments, []byte("\uFFFD"))).IsValid(again)
}

// fits reports whether each provider takes the name of a tool.
func fits(name string) bool {
	if name == "" || len(name) > maxName || name[0] == '-' || name[0] >= '0' && name[0] <= '9' { // the first for Gemini
		return false
	}
	for _, b := range []byte(name) {
		if !(b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || b == '_' || b == '-') {
			return false
		}
	}
	return true
}

// fittingName makes a name that fits of one that does not.
func fittingName(name string) string {
	name = strings.Map(func(r rune) rune {
		if fits("_" + string(r)) {
			return r
		}
		return '_'
	}, name[:min(len(name), maxName)])
	if !fits(name) {
		name = ("_" + name)[:min(len(name)+1, maxName)]
	}
	return name
}

func isRole(role string) bool {
	return role == "user" || role == "assistant" || role == "developer" || role == "system"
}

// betweenToolAndUser is the message of the assistant for providers that want one.
const betweenToolAndUser = "I have read the result."

// message adds a message with a role that providers know, parts of the types of that role, and pictures that say what they
// are.
func (m *mender) message(msg protocol.MessageItem) {
	if !isRole(msg.Role) { // whoever wrote it is not the user
		msg.Role = "assistant"
	}
	if msg.Role == "assistant" && isBlank(msg.Content) { // Claude and Bedrock refuse it
		return
	}
	if msg.Role != "assistant" {
		m.unfinished()
	}
	if m.has(phases) {
		msg.Phase = ""
	}
	for i, part := range msg.Content {
		if fits := fittingPart(part, msg.Role); fits != part {
			msg.Content = slices.Clone(msg.Content)
			msg.Content[i] = fits
		}
	}
	var before protocol.ResponseItem
	end := len(m.out) - 1
	if end >= 0 {
		before = m.out[end]
	}
	last, follows := before.(protocol.MessageItem)
	_, answered := AnswerOf(before)
	switch {
	case m.has(rolesInARow) && (msg.Role == "developer" || msg.Role == "system"):
		m.first = join(m.first, Text(msg.Content))
		return
	case m.has(rolesInARow) && follows && msg.Role == last.Role:
		msg.Content, m.out = joinParts(last.Content, msg.Content), m.out[:end]
	case m.has(userAfterTool) && answered && msg.Role == "user":
		m.out = append(m.out, assistantMessage(betweenToolAndUser))
	}
	if m.has(images) {
		msg.Content = withoutImages(msg.Content)
	}
	m.out = append(m.out, msg)
}

// isBlank reports whether parts are texts with nothing to read.
func isBlank(parts []protocol.ContentItem) bool {
	return !slices.ContainsFunc(parts, func(p protocol.ContentItem) bool {
		return strings.TrimSpace(p.Text) != "" || p.Type != "output_text" && p.Type != "input_text"
	})
}

// fittingPart returns a part as a message of the role can have it.
func fittingPart(part protocol.ContentItem, role string) protocol.ContentItem {
	kind := "input_text"
	if role == "assistant" {
		kind = "output_text"
	}
	switch {
	case part.Type == kind:
	case part.Type == "input_image" && kind == "input_text" && part.ImageURL != "":
		part.ImageURL = pictureURL(part.ImageURL)
	case part.Text != "":
		part = protocol.ContentItem{Type: kind, Text: part.Text}
	default:
		part = protocol.ContentItem{Type: kind, Text: "[Left out: " +
			text.Brief(strings.ToValidUTF8(part.Type, "\uFFFD"), maxName) + "]"}
	}
	return part
}

// pictureURL returns a data URL with the type that the first bytes of its picture say.
func pictureURL(url string) string {
	head, data, ok := strings.Cut(url, ";base64,")
	if kind, is := strings.CutPrefix(head, "data:"); ok && is {
		const enough = 24
		begin, _ := base64.StdEncoding.DecodeString(data[:min(len(data), enough)]) // what cannot be decoded has no type
		if found := http.DetectContentType(begin); strings.HasPrefix(found, "image/") && found != kind {
			return "data:" + found + ";base64," + data
		}
	}
	return url
}
