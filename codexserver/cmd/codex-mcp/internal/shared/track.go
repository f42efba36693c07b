package shared

import (
	"maps"
	"slices"
	"sync"

	"github.com/codexmcp/codexmcp/jsonrpc"
)

// unanswered has the ids of the client's requests that the server has not answered. It is
// safe for concurrent use. The zero value is ready.
type unanswered struct {
	mu  sync.Mutex
	ids map[jsonrpc.ID]bool
}

// sent records a message of the client.
func (u *unanswered) sent(m message) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case m.method == "notifications/cancelled": // it needs no answer
		delete(u.ids, idOf(m.requestID))
	case m.method != "" && len(m.id) > 0:
		if u.ids == nil {
			u.ids = map[jsonrpc.ID]bool{}
		}
		u.ids[idOf(m.id)] = true
	}
}

// received records a message of the server.
func (u *unanswered) received(m message) {
	if m.method == "" && len(m.id) > 0 {
		u.mu.Lock()
		defer u.mu.Unlock()
		delete(u.ids, idOf(m.id))
	}
}

// all returns the ids of the requests without an answer.
func (u *unanswered) all() []jsonrpc.ID {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.SortedFunc(maps.Keys(u.ids), func(a, b jsonrpc.ID) int { return slices.Compare([]byte(a.String()), []byte(b.String())) })
}

// idOf returns an id. It returns the zero one for what is no id, which has no answer either.
func idOf(text []byte) (id jsonrpc.ID) {
	if id.UnmarshalJSON(text) != nil {
		return jsonrpc.ID{}
	}
	return id
}

// message has what [reader] finds of a message.
type message struct {
	method        string
	id, requestID []byte // JSON
}

// reader finds the messages in lines of JSON-RPC, without keeping more of them than the
// members that [message] names. It does not check the JSON: the server does that, and a
// message that it does not understand has an answer without an id. The zero value is ready.
type reader struct {
	each func(message)

	depth   int  // of the brackets
	base    int  // the depth around messages: 1 in a batch
	text    bool // within a string
	escaped bool
	name    bool      // the next string is a member's name
	keep    bool      // the value is kept
	path    [2]string // the names around: of a member of the message, and in its value
	value   []byte
	now     message
}

// maxKept is the length of the longest name or value that is kept.
const maxKept = 4 << 10

// read reads more of the lines.
func (r *reader) read(b []byte) {
	for _, c := range b {
		switch {
		case c == '\n': // JSON escapes it in strings
			*r = reader{each: r.each, value: r.value[:0]}
		case r.text:
			r.add(c)
			switch {
			case r.escaped:
				r.escaped = false
			case c == '\\':
				r.escaped = true
			case c == '"':
				r.text = false
			}
		default:
			r.structure(c)
		}
	}
}

// add adds a character to the name or value.
func (r *reader) add(c byte) {
	if (r.name || r.keep) && len(r.value) < maxKept {
		r.value = append(r.value, c)
	}
}

// structure reads a character outside strings.
func (r *reader) structure(c byte) {
	level := r.depth - r.base // 1: in the message, 2: in the value of a member
	switch c {
	case '"':
		r.text = true
		r.add(c)
	case '{', '[':
		if c == '[' && r.depth == 0 {
			r.base = 1
		}
		r.depth++
		r.name, r.keep, r.value = c == '{' && (level == 0 || level == 1), false, r.value[:0]
	case ':':
		if r.name {
			r.path[level-1] = string(r.value)
			r.name, r.keep, r.value = false, r.wanted(level), r.value[:0]
		}
	case ',', '}', ']':
		if r.keep {
			r.found(level)
		}
		r.keep, r.value = false, r.value[:0]
		if c == ',' {
			r.name = level == 1 || level == 2 && r.path[0] == `"params"`
			break
		}
		r.depth = max(r.depth-1, 0)
		r.name = false
		if c == '}' && level == 1 {
			r.each(r.now)
			r.now = message{}
		}
	case ' ', '\t', '\r':
	default:
		r.add(c)
	}
}

// wanted reports whether the value of the member that has just been named is kept.
func (r *reader) wanted(level int) bool {
	switch r.path[level-1] {
	case `"id"`, `"method"`:
		return level == 1
	case `"requestId"`:
		return level == 2 && r.path[0] == `"params"`
	}
	return false
}

// found takes the kept value.
func (r *reader) found(level int) {
	value := slices.Clone(r.value)
	switch name := r.path[level-1]; {
	case name == `"method"`:
		r.now.method = string(value[min(1, len(value)):max(len(value)-1, min(1, len(value)))])
	case name == `"id"`:
		r.now.id = value
	default:
		r.now.requestID = value
	}
}
