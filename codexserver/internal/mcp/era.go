package mcp

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/codexmcp/codexmcp/mcptypes/modern"
	"github.com/go-json-experiment/json/jsontext"
)

// Meta returns the _meta of a request of this era, which has at least one of the era's
// members. It returns nil for any other request. Earlier messages on the connection do not
// matter. A request with duplicate members still belongs to this era, and its handler
// refuses it. server/discover without such members is an unknown method, as for older
// servers, so that clients recognize a legacy server.
func Meta(params json.RawMessage) jsontext.Value {
	d := jsontext.NewDecoder(bytes.NewBuffer(params), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
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

// introduces reports whether a _meta has a member of this era.
func introduces(meta jsontext.Value) bool {
	return hasMember(meta, modern.MetaProtocolVersion, modern.MetaClientInfo, modern.MetaClientCapabilities)
}

// hasMember reports whether an object has a member with one of the names.
func hasMember(object jsontext.Value, names ...string) bool {
	d := jsontext.NewDecoder(bytes.NewBuffer(object), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
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
