package model

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
)

// maxCalls is how many calls of tools a response may have, and maxItems how many items: each later request has them.
const maxCalls, maxItems = 128, 512

// call is a call that comes in pieces.
type call struct {
	id, name, index string
	arguments       pieces
	object          extent // of the arguments
	signs           signs

	beside, function beside
}

// extent follows JSON that comes in pieces as far as needed to know whether it is a whole object.
type extent struct {
	depth                int
	begun, text, escaped bool
}

func (e *extent) add(piece string) {
	for _, b := range []byte(piece) {
		switch {
		case e.escaped:
			e.escaped = false
		case e.text:
			e.escaped, e.text = b == '\\', b != '"'
		case b == '"':
			e.text = true
		case b == '{', b == '[':
			e.depth++
			e.begun = true
		case b == '}', b == ']':
			e.depth--
		}
	}
}

func (e *extent) whole() bool { return e.begun && e.depth == 0 }

// chatCalls are the calls of an answer. Pieces of one call should have the same index, and the first one
// its id and its name. But servers send index 0 or none for each call, no id, one id for several calls, a
// new one with each piece, the name with each piece, and whole calls again.
type chatCalls []*call

// add adds a piece to the call that it belongs to.
func (all *chatCalls) add(piece value) {
	function := piece.at("function")
	if !function.at("name").has() && function.at("arguments").raw == nil {
		function = piece
	}
	id, name, index, arguments, extra := piece.at("id").text(), function.at("name").text(), "",
		function.at("arguments"), piece.at("extra_content")
	if id == "" && name == "" && len(arguments.raw) == 0 && !extra.has() {
		return
	}
	if at := piece.at("index"); at.raw != nil && at.kind() != 'n' {
		index = strconv.FormatInt(at.count(), 10)
	}
	c := all.find(index, id)
	if c == nil || c.ends(id, name, index, arguments) {
		next := &call{index: index, id: id}
		switch {
		case c == nil:
		case name == "": // it comes again
			next.id, next.name = c.id, c.name
		case id == "" && index != "" && index == c.index: // if it is equal
			next.id = c.id
		}
		c = next
		*all = append(*all, c)
	}
	c.id = cmp.Or(c.id, id)
	if name != c.name { // some servers repeat it
		c.name += name
	}
	if c.object.whole() && c.arguments.String() == "{}" && arguments.has() { // it held the place of others
		c.arguments, c.object = pieces{}, extent{}
	}
	c.object.add(c.arguments.add(arguments))
	keep(&c.signs.ExtraContent, extra)
	keep(&c.signs.ThoughtSignature, function.at("thought_signature"))
	if piece.at("function").has() {
		c.function.add(piece.at("function"), knownOfFunctions)
		c.beside.add(piece, knownOfCalls)
	}
}

// keep keeps a value unless it is null.
func keep(in *jsontext.Value, v value) {
	if v.raw != nil && v.kind() != 'n' {
		*in = v.raw.Clone()
	}
}

// find returns the last of the calls that a piece fits best: by its id, else by its index.
func (all chatCalls) find(index, id string) (found *call) {
	best := 1
	for _, c := range all {
		fit := 0
		if index == "" || c.index == "" || index == c.index {
			fit++
		}
		if id != "" && id == c.id {
			fit += 2
		}
		if fit >= best {
			best, found = fit, c
		}
	}
	return found
}

// ends reports whether a piece that fits a call begins another one, because it has a second name or a
// second object as arguments.
func (c *call) ends(id, name, index string, arguments value) bool {
	whole := c.object.whole()
	if name == "" && (!whole || c.arguments.String() == "{}") {
		return false
	}
	more := strings.TrimSpace(arguments.text())
	begins, newID := strings.HasPrefix(more, "{"), id != "" && c.id != "" && id != c.id
	switch {
	case whole:
		return begins || name != "" && (more != "" || newID || name != c.name)
	case c.name == "":
		return false
	case newID:
		return begins || !c.object.begun || name != c.name
	case index != "" && c.index != "" && index != c.index:
		return name != c.name || begins && c.object.begun
	}
	return name != c.name && (c.object.begun || id != "" && c.id == "")
}

// argumentsOf returns the arguments of a call. Some models write their JSON as a text.
func argumentsOf(said string) string {
	var inner string
	if strings.HasPrefix(strings.TrimSpace(said), `"`) && json.Unmarshal([]byte(said), &inner) == nil &&
		jsontext.Value(inner).Kind() == '{' && jsontext.Value(inner).IsValid() {
		return inner
	}
	return said
}

// addOnce adds an item, unless it is a call that is there already: with its id, its name, and arguments that
// are equal as JSON.
func addOnce(items []protocol.ResponseItem, item protocol.ResponseItem) ([]protocol.ResponseItem, bool) {
	if call, ok := CallOf(item); ok && call.ID != "" &&
		slices.ContainsFunc(items, func(there protocol.ResponseItem) bool {
			other, _ := CallOf(there)
			return other.ID == call.ID && other.said() == call.said()
		}) {
		return items, false
	}
	return append(items, item), true
}

// said returns what a call calls.
func (c Call) said() string {
	f := c.Function()
	arguments := jsontext.Value(f.Arguments)
	if arguments.IsValid() {
		_ = arguments.Canonicalize() // it is valid
	}
	return f.Name + "\n" + string(arguments)
}

// maxCallID is how much of an id that comes again stays: OpenAI takes 64 bytes.
const maxCallID = 56

// nameCalls gives each call among the items an id that no other call has, also in the history: providers
// refuse an id that comes twice, from then on in each request.
func nameCalls(history, items []protocol.ResponseItem) {
	if !slices.ContainsFunc(items, isCall) {
		return
	}
	used := map[string]bool{}
	for _, before := range history {
		if call, ok := CallOf(before); ok {
			used[call.ID] = true
		}
	}
	for i, item := range items {
		if call, ok := CallOf(item); ok {
			if call.ID == "" {
				call.ID = fmt.Sprintf("call_%s_%d", uuid.NewString()[:8], i)
			}
			items[i] = named(item, unused(used, call.ID))
		}
	}
}

// unused returns an id, or one with a number if a call has that already, and adds it to those that are used. What is longer
// than each provider takes it stays whole: its end may be a signature.
func unused(used map[string]bool, id string) string {
	begin := id
	for n := 2; used[id]; n++ {
		if id = fmt.Sprintf("%s_%d", begin[:min(len(begin), maxCallID)], n); len(begin) > maxID {
			id = fmt.Sprintf("%d_%s", n, begin)
		}
	}
	used[id] = true
	return id
}
