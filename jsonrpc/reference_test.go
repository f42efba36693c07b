package jsonrpc

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"unicode/utf8"

	"github.com/codexmcp/codexmcp/mcptypes"
	"github.com/go-json-experiment/json/jsontext"
)

// This file determines the meaning of a line in a second, slower way. It uses two JSON
// packages that the scanner does not use.

// reference is the expected result for a line.
type reference struct {
	kind                 kind
	id                   ID
	code                 Code // set for kindInvalid
	method               string
	params, result, errv string
}

func validText(line []byte) bool { return json.Valid(line) && utf8.Valid(line) }

// members returns the members of an object in order. ok is false for other values.
func members(line []byte) (names []string, values [][]byte, ok bool) {
	d := jsontext.NewDecoder(bytes.NewReader(line), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if d.PeekKind() != '{' {
		return nil, nil, false
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, nil, false
	}
	for d.PeekKind() != '}' {
		t, err := d.ReadToken()
		if err != nil {
			return nil, nil, false
		}
		names = append(names, t.String())
		v, err := d.ReadValue()
		if err != nil {
			return nil, nil, false
		}
		values = append(values, bytes.Clone(v))
	}
	return names, values, true
}

func depthOf(line []byte) int {
	d := jsontext.NewDecoder(bytes.NewReader(line), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	deepest := 0
	for {
		if _, err := d.ReadToken(); err != nil {
			if errors.Is(err, io.EOF) {
				return deepest
			}
			return -1
		}
		deepest = max(deepest, d.StackDepth())
	}
}

func refer(line []byte) reference {
	if !validText(line) {
		return reference{code: CodeParseError}
	}
	names, values, ok := members(line)
	if !ok {
		return reference{code: CodeInvalidRequest}
	}
	count := map[string]int{}
	value := map[string][]byte{}
	for i, n := range names {
		count[n]++
		value[n] = values[i]
	}
	r := reference{}
	dup := false
	for _, n := range []string{"jsonrpc", "id", "method", "params", "result", "error"} {
		dup = dup || count[n] > 1
	}
	var version, method string
	versionOK := json.Unmarshal(value["jsonrpc"], &version) == nil && value["jsonrpc"][0] == '"' && version == "2.0"
	id, idErr := mcptypes.ParseRequestID(value["id"])
	hasID := count["id"] > 0
	if hasID && idErr == nil && count["id"] == 1 {
		r.id = id
	}
	isMethod := count["method"] > 0 && value["method"][0] == '"'
	if isMethod {
		_ = json.Unmarshal(value["method"], &method)
		r.method = method
	}
	isResponse := count["result"]+count["error"] > 0
	params := value["params"]
	if len(params) > 0 && params[0] == 'n' {
		params = nil
	}
	r.params, r.result, r.errv = string(params), string(value["result"]), string(value["error"])
	good := !dup && versionOK
	switch {
	case count["method"] > 0:
		good = good && isMethod && !isResponse && (!hasID || idErr == nil) && (params == nil || params[0] == '{' || params[0] == '[')
		switch {
		case good && hasID:
			r.kind = kindRequest
		case good:
			r.kind = kindNotification
		case count["id"] > 1:
			r.code = CodeInvalidRequest
		case isMethod && !hasID:
			r.kind = kindIgnored
		default:
			r.code = CodeInvalidRequest
		}
	case isResponse:
		r.kind = kindResponse
		if r.id.IsZero() || count["result"] > 0 && count["error"] > 0 || dup {
			r.kind = kindIgnored
		}
	default:
		r.code = CodeInvalidRequest
	}
	return r
}
