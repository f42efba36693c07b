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
	if id, ok := idOf(m.requestID); ok && m.method == "notifications/cancelled" { // it needs no answer
		delete(u.ids, id)
	}
	if id, ok := idOf(m.id); ok && m.method != "" {
		if u.ids == nil {
			u.ids = map[jsonrpc.ID]bool{}
		}
		u.ids[id] = true
	}
}

// received records a message of the server.
func (u *unanswered) received(m message) {
	if id, ok := idOf(m.id); ok && m.method == "" {
		u.mu.Lock()
		defer u.mu.Unlock()
		delete(u.ids, id)
	}
}

// all returns the ids of the requests without an answer.
func (u *unanswered) all() []jsonrpc.ID {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.SortedFunc(maps.Keys(u.ids), func(a, b jsonrpc.ID) int { return slices.Compare([]byte(a.String()), []byte(b.String())) })
}

// idOf returns an id. What is none has no answer either.
func idOf(text []byte) (id jsonrpc.ID, ok bool) {
	return id, len(text) > 0 && id.UnmarshalJSON(text) == nil
}

// message has what [reader] finds of a message.
type message struct {
	method        string
	id, requestID []byte // JSON
}

// reader finds the messages in lines of JSON-RPC, without keeping more of them than the
// members that [message] names. It leaves out lines that are not one object, such as batches:
// the server refuses them in an answer without an id. The zero value is ready.
type reader struct {
	each func(message)

	depth   int  // of the brackets: 1 in the message, 2 in the value of a member
	begun   bool // the message has begun
	broken  bool // the line is not one object
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
			if r.begun && r.depth == 0 && !r.broken {
				r.each(r.now)
			}
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
	if r.depth == 0 && c > ' ' {
		r.broken = r.broken || r.begun || c != '{'
		r.begun = true
	}
	switch c {
	case '"':
		r.text = true
		r.add(c)
	case '{', '[':
		r.depth++
		r.name, r.keep, r.value = c == '{' && r.depth <= 2, false, r.value[:0]
	case ':':
		if r.name {
			r.path[r.depth-1] = string(r.value)
			r.name, r.keep, r.value = false, r.wanted(), r.value[:0]
		}
	case ',', '}', ']':
		if r.keep {
			r.found()
		}
		r.keep, r.value = false, r.value[:0]
		if c == ',' {
			r.name = r.depth == 1 || r.depth == 2 && r.path[0] == `"params"`
			break
		}
		r.depth = max(r.depth-1, 0)
		r.name = false
	case ' ', '\t', '\r':
	default:
		r.add(c)
	}
}

// wanted reports whether the value of the member that has just been named is kept.
func (r *reader) wanted() bool {
	switch r.path[r.depth-1] {
	case `"id"`, `"method"`:
		return r.depth == 1
	case `"requestId"`:
		return r.depth == 2 && r.path[0] == `"params"`
	}
	return false
}

// found takes the kept value.
func (r *reader) found() {
	value := slices.Clone(r.value)
	switch name := r.path[r.depth-1]; {
	case name == `"method"`:
		r.now.method = string(value[min(1, len(value)):max(len(value)-1, min(1, len(value)))])
	case name == `"id"`:
		r.now.id = value
	default:
		r.now.requestID = value
	}
}
