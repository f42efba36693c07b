package mcphttp

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	"github.com/codexmcp/codexmcp/internal/era"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// kind is the kind of a message.
type kind int

const (
	request kind = iota
	notification
	response
)

// envelope is the part of a client's message that this package uses.
type envelope struct {
	kind   kind
	id     jsonrpc.ID
	method string
	params params
	meta   jsontext.Value // the _meta of a request of 2026-07-28, else nil
	reads  bool           // a call of a tool that only reads, see [Service]
	stream *stream        // of a request: the one with its answer
}

// params are the members of params that this package uses. A member of an unexpected type
// is nil.
type params struct {
	Name, URI, TaskID, RequestState *string
	ThreadID                        *string    // the argument
	Answers                         bool       // inputResponses or requestState occurs, of any type
	RequestID                       jsonrpc.ID // of notifications/cancelled
	ProgressToken                   string     // as JSON; "" for none
}

// lenient accepts duplicate members and invalid UTF-8: the code that decodes the message
// refuses them.
func lenient() jsonv2.Options {
	return jsonv2.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// parseFor is parse for a message to a service.
func parseFor(own Service, body []byte) (envelope, *jsonrpc.Error) {
	e, fault := parse(body)
	e.reads = e.method == "tools/call" && e.params.Name != nil && own.Reads(*e.params.Name)
	return e, fault
}

// parse reads the envelope of one message. If it fails, the error is the answer, and the
// envelope has the id if that could be read.
func parse(body []byte) (envelope, *jsonrpc.Error) {
	m, fault := jsonrpc.Parse(body)
	e := envelope{id: m.ID, method: m.Method}
	switch raw := jsontext.Value(body); {
	case fault != nil && raw.Kind() == '[' && utf8.Valid(body) && raw.IsValid(lenient()):
		return e, errBatch
	case fault != nil:
		return e, fault
	case m.Result != nil || m.Error != nil:
		e.kind = response
		return e, nil
	case e.id.IsZero():
		e.kind = notification
	}
	e.readParams(jsontext.Value(m.Params))
	return e, nil
}

// readParams reads the members of params. It ignores faults: the method reports them.
func (e *envelope) readParams(raw jsontext.Value) {
	if raw.Kind() != '{' {
		return
	}
	if e.kind == request {
		e.meta = era.Meta(json.RawMessage(raw))
	}
	m := top(raw)
	e.params = params{
		Name: text(m["name"]), URI: text(m["uri"]), TaskID: text(m["taskId"]), RequestState: text(m["requestState"]),
		ThreadID: text(member(m["arguments"], "threadId")), ProgressToken: scalar(member(m["_meta"], "progressToken")),
	}
	_, e.params.Answers = m["inputResponses"]
	if _, ok := m["requestState"]; ok {
		e.params.Answers = true
	}
	if v, ok := m["requestId"]; ok {
		e.params.RequestID, _ = mcptypes.ParseRequestID(v) // the peer reports an invalid one
	}
}

// text returns a string, nil for other values.
func text(v jsontext.Value) *string {
	var s string
	if v.Kind() != '"' || jsonv2.Unmarshal(v, &s, lenient()) != nil {
		return nil
	}
	return &s
}

// member returns a member of an object, nil for other values and if it is missing. It skips the other members, which
// may be long.
func member(object jsontext.Value, name string) jsontext.Value {
	d := jsontext.NewDecoder(bytes.NewBuffer(object), lenient())
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return nil
	}
	for d.PeekKind() == '"' {
		key, err := d.ReadToken()
		if err != nil {
			return nil
		}
		if key.String() == name {
			v, _ := d.ReadValue() // nil with an error
			return v.Clone()
		}
		if d.SkipValue() != nil {
			return nil
		}
	}
	return nil
}

// top returns the members of an object; of what is none, what could be read. Of two with one name it has the last.
func top(object []byte) map[string]jsontext.Value {
	members := map[string]jsontext.Value{}
	_ = jsonv2.Unmarshal(object, &members, lenient())
	return members
}

// scalar returns a string or an integer as JSON in its only spelling, "" for other values.
func scalar(v jsontext.Value) string {
	id, err := mcptypes.ParseRequestID(v)
	if err != nil {
		return ""
	}
	return id.String()
}

// versionOf returns the version in the answer to initialize, "" if that is an error.
func versionOf(m *jsonrpc.Message) string {
	if version := text(member(jsontext.Value(m.Result), "protocolVersion")); version != nil {
		return *version
	}
	return ""
}
