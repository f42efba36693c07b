package mcp

import (
	"bytes"
	"crypto/sha256"
	stdjson "encoding/json"

	"github.com/go-json-experiment/json/jsontext"
)

// params are the params of tools/call.
type params struct {
	Name         *string
	Arguments    jsontext.Value
	RequestState *string
	Answers      map[string]jsontext.Value // inputResponses; package elicit decodes them
}

func newParams(raw stdjson.RawMessage) (*params, error) {
	m, err := members("", jsontext.Value(raw))
	if err != nil {
		return nil, err
	}
	p := &params{Arguments: m["arguments"]}
	for name, into := range map[string]**string{"name": &p.Name, "requestState": &p.RequestState} {
		if v, ok := m[name]; ok {
			if v.Kind() != '"' {
				return nil, invalid("/"+name, "want a string")
			}
			if err := decode(stdjson.RawMessage(v), into); err != nil {
				return nil, err
			}
		}
	}
	if v, ok := m["inputResponses"]; ok {
		if p.Answers, err = members("/inputResponses", v); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// members returns the members of an object at a path. It refuses duplicates of them, but
// ignores those within a member: an answer that cannot be read counts as a refusal, so that
// its question does not stay open.
func members(path string, raw jsontext.Value) (map[string]jsontext.Value, error) {
	d := jsontext.NewDecoder(bytes.NewBuffer(raw), jsontext.AllowDuplicateNames(true))
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return nil, invalid(path, "want an object")
	}
	m := map[string]jsontext.Value{}
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			return nil, invalid(path, "%v", err)
		}
		key := name.String()
		v, err := d.ReadValue()
		if err != nil {
			return nil, invalid(path+"/"+escape(key), "%v", err)
		}
		if _, twice := m[key]; twice {
			return nil, invalid(path+"/"+escape(key), "comes twice")
		}
		m[key] = v.Clone()
	}
	return m, nil
}

// digest returns the digest of the tool and its arguments, as RFC 8785 writes them.
func (p *params) digest() (digest, error) {
	canonical := p.Arguments.Clone()
	if err := canonical.Canonicalize(); err != nil {
		return digest{}, invalid("/arguments", "%v", err)
	}
	return sha256.Sum256(append([]byte(*p.Name+"\x00"), canonical...)), nil
}
