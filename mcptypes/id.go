package mcptypes

import (
	"fmt"

	"github.com/codexmcp/codexmcp/mcptypes/internal/codec"
)

// RequestID names a JSON-RPC request: a string or an integer
// (https://modelcontextprotocol.io/specification/2025-06-18/basic#requests).
// It is comparable, so it can be a map key, and it keeps 1, "1" and integers beyond 2^53
// apart. 1.0 and 1e0 are read as the integer 1. The zero value is the absent id, which no
// request has.
type RequestID struct{ v codec.Scalar }

// IntID returns the integer n as an id.
func IntID(n int64) RequestID { return RequestID{codec.IntScalar(n)} }

// StringID returns the string s as an id.
func StringID(s string) RequestID { return RequestID{codec.StringScalar(s)} }

// ParseRequestID reads one JSON value as an id. The cost depends only on the length of raw,
// not on the exponent of a number. Fractions, null, booleans, arrays and objects are
// errors.
func ParseRequestID(raw []byte) (RequestID, error) {
	v, err := codec.ParseScalar(raw)
	if err != nil {
		return RequestID{}, fmt.Errorf("mcptypes: request id: %w", err)
	}
	return RequestID{v}, nil
}

// IsZero reports whether the id is absent.
func (id RequestID) IsZero() bool { return id.v.IsZero() }

// Int returns the id as an integer; ok is false if it is a string, absent, or does not fit
// in an int64.
func (id RequestID) Int() (n int64, ok bool) { return id.v.Int() }

// Str returns the id as a string; ok is false if it is an integer or absent.
func (id RequestID) Str() (s string, ok bool) { return id.v.Str() }

// String returns the id as JSON, so that 1 and "1" print differently. For the absent id it
// returns "".
func (id RequestID) String() string { return id.v.String() }

// AppendJSON appends the id to b, or null for the absent id.
func (id RequestID) AppendJSON(b []byte) []byte { return id.v.AppendJSON(b) }

// MarshalJSON implements [encoding/json.Marshaler]. The absent id is an error.
func (id RequestID) MarshalJSON() ([]byte, error) { return marshal(&id) }

// UnmarshalJSON implements [encoding/json.Unmarshaler].
func (id *RequestID) UnmarshalJSON(b []byte) error { return unmarshal(b, id) }

// ProgressToken connects progress notifications with the request that asked for them
// (https://modelcontextprotocol.io/specification/2025-06-18/basic/utilities/progress). It
// has the values and the methods of a [RequestID], but is a separate type: the sender chooses the
// token, which may differ from the id. The zero value is the absent token.
type ProgressToken struct{ RequestID }

// IntToken returns the integer n as a token.
func IntToken(n int64) ProgressToken { return ProgressToken{IntID(n)} }

// StringToken returns the string s as a token.
func StringToken(s string) ProgressToken { return ProgressToken{StringID(s)} }

// ParseProgressToken reads one JSON value as a token, as [ParseRequestID] does.
func ParseProgressToken(raw []byte) (ProgressToken, error) {
	v, err := codec.ParseScalar(raw)
	if err != nil {
		return ProgressToken{}, fmt.Errorf("mcptypes: progress token: %w", err)
	}
	return ProgressToken{RequestID{v}}, nil
}

func (id *RequestID) decode(d *codec.Decoder) error { return codec.ReadScalar(&id.v, d) }

func (id *RequestID) encode(e *codec.Encoder) { e.Scalar(id.v) }
