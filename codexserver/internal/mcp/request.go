package mcp

import (
	"bytes"
	"context"
	stdjson "encoding/json"
	"fmt"

	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/era"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// The supported extensions.
const (
	extensionTasks  = modern.ExtensionTasks
	extensionEvents = "io.github.codexmcp/events"
)

// request is one request with its _meta.
type request struct {
	ctx    context.Context
	rpc    *jsonrpc.Request
	meta   modern.RequestMetaObject
	client elicit.Client
	// canAsk reports whether the client can be asked. tasks and events report whether it supports tasks
	// and codex/event.
	canAsk, tasks, events bool
	// bare reports that the client declares no capability and asks for no progress.
	bare bool
}

// newRequest returns a request with its _meta. It checks the version first, because in another version the other
// members may have another meaning. If asks is false, the client is treated as one without elicitation.
func newRequest(ctx context.Context, r *jsonrpc.Request, meta jsontext.Value, asks bool) (*request, error) {
	m, err := members("/_meta", meta)
	if err != nil {
		return nil, err
	}
	version, err := textIn(m, "/_meta", modern.MetaProtocolVersion)
	switch {
	case err != nil:
		return nil, err
	case version != modern.ProtocolVersion:
		return nil, unsupportedVersion(version)
	}
	capabilities, ok := m[modern.MetaClientCapabilities]
	switch {
	case !ok:
		return nil, Invalid(metaCapabilities, "missing")
	case capabilities.Kind() != '{':
		return nil, Invalid(metaCapabilities, "want an object")
	}
	q := &request{ctx: ctx, rpc: r, client: elicit.RequestClient(stdjson.RawMessage(meta))}
	if err := q.meta.UnmarshalJSON([]byte(meta)); err != nil {
		return nil, Invalid("/_meta", "%v", err)
	}
	q.bare = len(bytes.TrimSpace(capabilities[1:len(capabilities)-1])) == 0 && q.meta.ProgressToken == nil
	if !asks {
		q.client.Capabilities = nil
	}
	q.canAsk = q.client.CanAsk()
	_, q.tasks = q.meta.ClientCapabilities.Extensions[extensionTasks]
	_, q.events = q.meta.ClientCapabilities.Extensions[extensionEvents]
	return q, nil
}

// needTasks fails if the request does not declare tasks.
func (q *request) needTasks() error {
	if q.tasks {
		return nil
	}
	e := jsonrpc.Errorf(modern.CodeMissingRequiredClientCapability,
		"params%s: the request does not declare the extension %s", metaCapabilities, extensionTasks)
	e.Data = stdjson.RawMessage(`{"requiredCapabilities":{"extensions":{"` + extensionTasks + `":{}}}}`)
	return e
}

// metaCapabilities is where a request has the capabilities of its client.
const metaCapabilities = jsontext.Pointer("/_meta/io.modelcontextprotocol~1clientCapabilities")

func unsupportedVersion(asked string) error {
	path := jsontext.Pointer("/_meta").AppendToken(modern.MetaProtocolVersion)
	e := jsonrpc.Errorf(modern.CodeUnsupportedProtocolVersion,
		"params%s: %q is not served by requests of their own", path, asked)
	e.Data, _ = json.Marshal(struct { // strings always encode
		Supported []string `json:"supported"`
		Requested string   `json:"requested"`
	}{era.Versions(), asked}, jsontext.AllowInvalidUTF8(true))
	return e
}

// textIn returns a member of the object at a path, which must be a string.
func textIn(m map[string]jsontext.Value, path jsontext.Pointer, name string) (text string, err error) {
	v, ok := m[name]
	path = path.AppendToken(name)
	switch {
	case !ok:
		return "", Invalid(path, "missing")
	case v.Kind() != '"':
		return "", Invalid(path, "want a string")
	}
	_ = json.Unmarshal(v, &text) // [members] has read it
	return text, nil
}

// members returns the members of an object at a path. It refuses duplicates of them, but
// ignores those within a member: an answer that cannot be read counts as a refusal, so that
// its question does not stay open.
func members(path jsontext.Pointer, raw jsontext.Value) (map[string]jsontext.Value, error) {
	d := jsontext.NewDecoder(bytes.NewBuffer(raw), jsontext.AllowDuplicateNames(true))
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return nil, Invalid(path, "want an object")
	}
	m := map[string]jsontext.Value{}
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			return nil, Invalid(path, "%v", err)
		}
		key := name.String()
		v, err := d.ReadValue()
		if err != nil {
			return nil, Invalid(path.AppendToken(key), "%v", err)
		}
		if _, twice := m[key]; twice {
			return nil, Invalid(path.AppendToken(key), "comes twice")
		}
		m[key] = v.Clone()
	}
	return m, nil
}

// Invalid returns the error for params with a missing or wrong member.
func Invalid(path jsontext.Pointer, format string, args ...any) error {
	e := jsonrpc.Errorf(modern.CodeInvalidParams, "params%s: %s", path, fmt.Sprintf(format, args...))
	data := map[string]jsontext.Pointer{"path": path}
	e.Data, _ = json.Marshal(data, jsontext.AllowInvalidUTF8(true)) // a string always encodes
	return e
}
