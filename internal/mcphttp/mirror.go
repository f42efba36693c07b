package mcphttp

import (
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// mirrors are the headers in which a server's tools want arguments repeated (2026-07-28,
// x-mcp-header), by the tools' names. A client learns them from the lists that its caller
// requests. Tools without such arguments are not among them, unless they have the argument
// threadId and do not want it repeated.
type mirrors struct {
	mu    sync.Mutex
	tools map[string]mirror
	size  int // of the tools
}

// mirror says which headers repeat an argument: one its value, others those of its members.
type mirror struct {
	header  string            // without its prefix; "" for none
	members map[string]mirror // those with a header
	size    int               // of a tool, in bytes of its definition
}

// maxMirrors is the size of the tools that a client knows. It forgets them if they exceed that,
// and learns the next.
const maxMirrors = 1 << 20

// learn reads an answer to tools/list. It returns it without the tools whose annotations are
// not allowed.
func (k *mirrors) learn(answer []byte) []byte {
	var list struct {
		Result struct {
			Tools []jsontext.Value `json:"tools"`
		} `json:"result"`
	}
	if jsonv2.Unmarshal(answer, &list, lenient()) != nil {
		return answer // the client reports what is wrong
	}
	tools := list.Result.Tools
	kept := slices.DeleteFunc(slices.Clone(tools), func(tool jsontext.Value) bool { return !k.add(tool) })
	if len(kept) == len(tools) {
		return answer
	}
	message := top(answer)
	result := top(message["result"])
	exact := jsonv2.JoinOptions(lenient(), jsonv2.Deterministic(true))
	result["tools"], _ = jsonv2.Marshal(kept, exact) // its parts were read, so this cannot fail
	message["result"], _ = jsonv2.Marshal(result, exact)
	answer, _ = jsonv2.Marshal(message, exact)
	return answer
}

// add learns the headers of a tool. It returns false if its annotations are not allowed.
func (k *mirrors) add(tool jsontext.Value) bool {
	var t struct {
		Name   string `json:"name"`
		Schema any    `json:"inputSchema"`
	}
	if len(tool) > maxMirrors || jsonv2.Unmarshal(tool, &t, lenient()) != nil {
		return true // the client reports what is wrong
	}
	m, ok := annotated(t.Schema, root, map[string]bool{})
	m.size = len(tool)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.size -= k.tools[t.Name].size
	delete(k.tools, t.Name)
	object, _ := t.Schema.(map[string]any)
	arguments, _ := object["properties"].(map[string]any)
	if _, thread := arguments["threadId"]; !ok || len(m.members) == 0 && !thread {
		return ok
	}
	if k.size += m.size; k.size > maxMirrors || k.tools == nil {
		k.tools, k.size = map[string]mirror{}, m.size
	}
	k.tools[t.Name] = m
	return true
}

// place is where a schema is. Arguments and their members may be annotated. The way to them
// leads over properties alone.
type place int

const (
	root place = iota
	argument
	elsewhere
)

// annotated returns what the annotations of a schema ask for. ok is false if one is not
// allowed. seen are the headers, in lower case.
func annotated(schema any, at place, seen map[string]bool) (m mirror, ok bool) {
	ok = true
	inside := func(v any, at place) mirror {
		found, valid := annotated(v, at, seen)
		ok = ok && valid
		return found
	}
	if list, is := schema.([]any); is {
		for _, v := range list {
			inside(v, elsewhere)
		}
	}
	keywords, _ := schema.(map[string]any)
	for keyword, v := range keywords {
		switch keyword {
		case "x-mcp-header":
			m.header, _ = v.(string)
			lower := strings.ToLower(m.header)
			ok = ok && at == argument && lower != "" && !strings.ContainsFunc(lower, notInToken) && !seen[lower] &&
				(keywords["type"] == "string" || keywords["type"] == "integer" || keywords["type"] == "boolean")
			seen[lower] = true
		case "properties", "$defs", "definitions", "patternProperties", "dependentSchemas", "dependencies":
			below := elsewhere
			if keyword == "properties" && at != elsewhere {
				below, m.members = argument, map[string]mirror{}
			}
			schemas, _ := v.(map[string]any)
			for name, v := range schemas {
				if found := inside(v, below); below == argument && (found.header != "" || len(found.members) > 0) {
					m.members[name] = found
				}
			}
		case "const", "default", "enum", "examples": // data, which may look like a schema
		default:
			inside(v, elsewhere)
		}
	}
	return m, ok
}

// notInToken reports whether a header's name, in lower case, may not have a character.
func notInToken(r rune) bool {
	return notInHeader(r) && !strings.ContainsRune("!#$%&'*+.^_`|~", r)
}

// headers adds the headers that repeat the arguments of a call. It returns false if the tool is
// not among the known ones.
func (k *mirrors) headers(h http.Header, e *envelope, line []byte) bool {
	if e.method != "tools/call" || e.params.Name == nil {
		return false
	}
	k.mu.Lock()
	m, known := k.tools[*e.params.Name]
	k.mu.Unlock()
	var call struct {
		Params struct {
			Arguments jsontext.Value `json:"arguments"`
		} `json:"params"`
	}
	if len(m.members) > 0 && jsonv2.Unmarshal(line, &call, lenient()) == nil {
		m.headers(h, call.Params.Arguments)
	}
	return known
}

func (m *mirror) headers(h http.Header, value jsontext.Value) {
	text, kind := string(value), value.Kind()
	switch kind {
	case '{':
		values := top(value)
		for name, member := range m.members {
			member.headers(h, values[name])
		}
	case '"':
		_ = jsonv2.Unmarshal(value, &text, lenient()) // it is a string, so this cannot fail
	case '0':
		// An integer has one spelling. The server judges other numbers.
		if f, err := strconv.ParseFloat(text, 64); err == nil && f == math.Trunc(f) && math.Abs(f) < 1<<53 {
			text = strconv.FormatInt(int64(f), 10)
		}
	}
	if m.header != "" && strings.ContainsRune(`"0tf`, rune(kind)) {
		h.Set("Mcp-Param-"+m.header, coded(text))
	}
}
