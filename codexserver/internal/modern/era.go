package modern

import (
	"bytes"
	"encoding/json"

	"github.com/codexmcp/codexmcp/mcptypes/modern"
	"github.com/go-json-experiment/json/jsontext"
)

// Meta returns the _meta of a request of this era: it has one of the members that
// say so. It returns nil for any other request. Nothing that was said before on
// the connection counts. Members that come twice do not make a request one of the
// older era: they are for its handler to refuse. server/discover without such members is
// an unknown method, as it was to the servers before: clients take that for a
// legacy server.
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
	d := jsontext.NewDecoder(bytes.NewBuffer(meta), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return false
	}
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			return false
		}
		switch name.String() {
		case modern.MetaProtocolVersion, modern.MetaClientInfo, modern.MetaClientCapabilities:
			return true
		}
		if d.SkipValue() != nil {
			return false
		}
	}
	return false
}
