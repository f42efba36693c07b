package model

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// A provider's message, and each call in it, can have members beside those that this package knows, such as the signature of
// thinking that Claude or Gemini wants back. They are kept with the message, and go back to the same provider and model as they
// came.

// maxBeside is how much such a member may have, in bytes: thinking can be as long as an answer. maxNames is how many there are.
const maxBeside, maxNames = 1 << 20, 64

// beside are the members of an object beside those that are known.
type beside struct {
	names []string // in the order in which they came
	all   map[string]*kept
	size  int // of all pieces that were added to those of the message or the call itself
}

// kept is a value that comes in pieces: a text, an object, a list, or another value, which is raw.
type kept struct {
	text   *pieces
	object *beside
	list   []*kept
	raw    jsontext.Value
	size   int // of all pieces
}

// The members that this package knows, or that say nothing: they are not kept, and none of a file is sent.
var (
	knownOfMessages = []string{
		"role", "content", "refusal", "tool_calls", "function_call", "tool_call_id", "name",
		"reasoning", "reasoning_content",
		"id", "index", "type", "object", "audio", "annotations", "finish_reason",
	}
	knownOfCalls     = []string{"id", "index", "type", "function", "extra_content", "custom"}
	knownOfFunctions = []string{"id", "index", "type", "name", "arguments", "thought_signature"}
)

// isKnown reports whether a member has one of the names, as [value.at] compares them.
func isKnown(name string, known []string) bool {
	return slices.ContainsFunc(known, func(one string) bool { return same([]byte(name), one) })
}

// add adds the members of a piece of an object.
func (b *beside) add(piece value, known []string) {
	for _, member := range piece.all {
		name := (value{raw: member.name}).text()
		full := b.all[name] == nil && len(b.names) == maxNames
		if full || member.name == nil || !member.has() || isKnown(name, known) {
			continue
		}
		one := b.member(name)
		before := one.size
		one.add(member, name, true)
		b.size += one.size - before
	}
}

// member returns a member, which is new unless it has come before.
func (b *beside) member(name string) *kept {
	if b.all == nil {
		b.all = map[string]*kept{}
	}
	one := b.all[name]
	if one == nil {
		one = &kept{}
		b.names, b.all[name] = append(b.names, name), one
	}
	return one
}

// inPieces are texts that come in pieces also inside of other members. Others come whole.
var inPieces = []string{"text", "summary", "data", "thinking"}

// add adds a piece of a member. Top is true for one of the message or the call itself.
func (k *kept) add(v value, name string, top bool) {
	const each = 64 // a value takes more memory than its text
	if k.size += len(v.raw) + each; k.size > maxBeside {
		*k = kept{size: k.size} // a part of a signature is worth nothing
		return
	}
	switch v.kind() {
	case '"':
		switch said := v.text(); {
		case k.text == nil || !top && !slices.Contains(inPieces, name) && said != "":
			k.text = &pieces{}
			k.text.add(v)
		case top && said == k.text.String() && !strings.HasSuffix(name, "text"): // it comes again
		case top || slices.Contains(inPieces, name):
			k.text.add(v)
		}
	case '{':
		if k.object == nil {
			k.object = &beside{}
		}
		signed, again := v.at("signature").has(), k.object.said("thinking")
		for _, member := range v.all {
			inside := (value{raw: member.name}).text()
			if whole := inside == "thinking" && signed && again != "" && member.text() == again; !whole {
				k.object.member(inside).add(member, inside, false)
			}
		}
	case '[':
		for _, one := range v.all {
			end := len(k.list) - 1
			if end < 0 || !k.list[end].goesOn(one) {
				k.list = append(k.list, &kept{})
				end++
			}
			k.list[end].add(one, "", false)
		}
		if v.all == nil && k.list == nil {
			k.list = []*kept{}
		}
	case 'n':
		if k.raw == nil {
			k.raw = jsontext.Value("null")
		}
	default:
		k.raw = v.raw.Clone()
	}
}

// goesOn reports whether a piece is one of the same part of a list: with its type, and its index if parts have one. Thinking
// without an index goes on until its signature.
func (k *kept) goesOn(piece value) bool {
	if k.object == nil || piece.kind() != '{' || k.object.said("type") != piece.at("type").text() {
		return false
	}
	if index := piece.at("index"); index.raw != nil {
		return k.object.said("index") == index.text()
	}
	return k.object.all["thinking"] != nil && k.object.said("signature") == ""
}

// said returns the text of a member, or its JSON.
func (b *beside) said(name string) string {
	switch one := b.all[name]; {
	case one == nil, one.text == nil && one.raw.Kind() == 'n':
		return ""
	case one.text != nil:
		return one.text.String()
	default:
		return string(one.raw)
	}
}

// json returns the members as an object, nil without any.
func (b *beside) json() jsontext.Value {
	if out := b.append(nil, true); len(out) > len("{}") {
		return out
	}
	return nil
}

func (b *beside) append(out []byte, top bool) []byte {
	out = append(out, '{')
	for _, name := range b.names {
		one := b.all[name]
		if top && one.size > maxBeside {
			continue
		}
		if out[len(out)-1] != '{' {
			out = append(out, ',')
		}
		out, _ = jsontext.AppendQuote(out, name) // what is invalid is replaced
		out = one.append(append(out, ':'))
	}
	return append(out, '}')
}

func (k *kept) append(out []byte) []byte {
	switch {
	case k.text != nil:
		out, _ = jsontext.AppendQuote(out, k.text.end()) // what is invalid is replaced
		return out
	case k.object != nil:
		return k.object.append(out, false)
	case k.list != nil:
		out = append(out, '[')
		for i, one := range k.list {
			if i > 0 {
				out = append(out, ',')
			}
			out = one.append(out)
		}
		return append(out, ']')
	case k.raw != nil:
		return append(out, k.raw...)
	}
	return append(out, "null"...)
}

// allowed returns members of a file that may go back: not those that a request has anyway.
func allowed(members jsontext.Value, known []string) jsontext.Value {
	if len(members) == 0 || len(members) > 2*maxBeside {
		return nil
	}
	var b beside
	b.add(parse(members), known)
	return b.json()
}
