// Package era determines to which versions of MCP a message belongs. The server asks it for
// each request, and HTTP before it passes one on.
package era

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/codexmcp/codexmcp/mcptypes/modern"
	"github.com/go-json-experiment/json/jsontext"
)

// Meta returns the _meta of a request of 2026-07-28, which has at least one of that era's
// members. It returns nil for any other request. Earlier messages on the connection do not
// matter. A request with duplicate members still belongs to that era, and its handler
// refuses it. server/discover without such members is an unknown method, as for older
// servers, so that clients recognize a legacy server.
func Meta(params json.RawMessage) jsontext.Value {
	d := jsontext.NewDecoder(bytes.NewBuffer(params), jsontext.AllowDuplicateNames(true),
		jsontext.AllowInvalidUTF8(true))
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return nil
	}
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			return nil
		}
		if name.String() != "_meta" {
			if d.SkipValue() != nil {
				return nil
			}
			continue
		}
		meta, err := d.ReadValue()
		if err != nil {
			return nil
		}
		if introduces(meta) {
			return meta.Clone()
		}
	}
	return nil
}

// ParamThread is the name with which clients of 2026-07-28 repeat the argument threadId of a
// call in an HTTP header, so that a proxy can find the server that has the thread. HeaderThread
// is the header.
const (
	ParamThread  = "Thread-Id"
	HeaderThread = "Mcp-Param-" + ParamThread
)

// Versions returns the versions of MCP that the server supports, newest first.
func Versions() []string {
	return []string{modern.ProtocolVersion, "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}
}

// introduces reports whether a _meta has a member of 2026-07-28.
func introduces(meta jsontext.Value) bool {
	return HasMember(meta, modern.MetaProtocolVersion, modern.MetaClientInfo, modern.MetaClientCapabilities)
}

// HasMember reports whether an object has a member with one of the names.
func HasMember(object jsontext.Value, names ...string) bool {
	d := jsontext.NewDecoder(bytes.NewBuffer(object), jsontext.AllowDuplicateNames(true),
		jsontext.AllowInvalidUTF8(true))
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return false
	}
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			return false
		}
		if slices.Contains(names, name.String()) {
			return true
		}
		if d.SkipValue() != nil {
			return false
		}
	}
	return false
}
