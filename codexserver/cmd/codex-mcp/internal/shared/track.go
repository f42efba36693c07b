package shared

import (
	"bytes"
	"maps"
	"slices"
	"sort"
	"sync"

	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// unanswered has the ids of the client's requests that the server has not answered. It is
// safe for concurrent use. The zero value is ready.
type unanswered struct {
	mu  sync.Mutex
	ids map[jsonrpc.ID]bool
}

// sent records a line of the client.
func (u *unanswered) sent(line []byte) {
	m := read(line)
	u.mu.Lock()
	defer u.mu.Unlock()
	if id, ok := m.cancelled(); ok { // it needs no answer
		delete(u.ids, id)
	}
	if id, ok := idOf(m.ID); ok && m.Method != nil {
		if u.ids == nil {
			u.ids = map[jsonrpc.ID]bool{}
		}
		u.ids[id] = true
	}
}

// received records a line of the server.
func (u *unanswered) received(line []byte) {
	m := read(line)
	if id, ok := idOf(m.ID); ok && m.Method == nil {
		u.mu.Lock()
		defer u.mu.Unlock()
		delete(u.ids, id)
	}
}

// all returns the ids of the requests without an answer.
func (u *unanswered) all() []jsonrpc.ID {
	u.mu.Lock()
	defer u.mu.Unlock()
	ids := slices.Collect(maps.Keys(u.ids))
	sort.SliceStable(ids, func(i, j int) bool { return ids[i].String() < ids[j].String() })
	return ids
}

// idOf returns an id. What is none has no answer either.
func idOf(text []byte) (id jsonrpc.ID, ok bool) {
	return id, len(text) > 0 && id.UnmarshalJSON(text) == nil
}

// message has the members of a message that [unanswered] needs, nil those that are missing.
type message struct {
	ID     jsontext.Value `json:"id"`
	Method jsontext.Value `json:"method"`
	Params jsontext.Value `json:"params"`
}

// lenient accepts what the server has to refuse.
func lenient() json.Options {
	return json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// read reads a line of JSON-RPC. One that is not one object, such as a batch, has no members: the
// server refuses it in an answer without an id.
func read(line []byte) (m message) {
	if json.Unmarshal(line, &m, lenient()) != nil {
		return message{}
	}
	return m
}

// cancelled returns the id of the request that the message cancels.
func (m *message) cancelled() (id jsonrpc.ID, ok bool) {
	var method string
	var params struct {
		RequestID jsontext.Value `json:"requestId"`
	}
	if json.Unmarshal(m.Method, &method, lenient()) != nil || method != mcptypes.NotificationsCancelled.Name() ||
		json.Unmarshal(m.Params, &params, lenient()) != nil {
		return id, false
	}
	return idOf(params.RequestID)
}

// lines cuts what it reads into lines. It leaves out one that is longer than most.
type lines struct {
	each  func(line []byte)
	most  int
	begun []byte // of the line that has not ended
	over  bool   // it is too long
}

// maxLine is the longest message that the server accepts, in bytes.
const maxLine = 64 << 20

// read reads more of the lines.
func (l *lines) read(b []byte) {
	for len(b) > 0 {
		part, rest, whole := bytes.Cut(b, []byte("\n"))
		if l.over = l.over || len(l.begun)+len(part) > l.most; l.over {
			l.begun = nil
		} else if !whole || len(l.begun) > 0 {
			l.begun = append(l.begun, part...)
			part = l.begun
		}
		if !whole {
			return
		}
		if !l.over {
			l.each(part)
		}
		*l, b = lines{each: l.each, most: l.most}, rest
	}
}
