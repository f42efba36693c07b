package mcptypes

import (
	"fmt"

	"github.com/codexmcp/codexmcp/mcptypes/internal/codec"
	"github.com/go-json-experiment/json/jsontext"
)

// RequestId names a JSON-RPC request: a string or an integer
// (https://modelcontextprotocol.io/specification/2025-06-18/basic#requests).
// It is comparable, so it can be a map key, and it keeps 1, "1" and integers
// beyond 2^53 apart. An integer may be written as 1.0 or 1e0; it reads as 1.
// The zero value is the absent id, which no request carries.
type RequestId struct{ v codec.Scalar }

// IntID returns the id that is the integer n.
func IntID(n int64) RequestId { return RequestId{codec.IntScalar(n)} }

// StringID returns the id that is the string s.
func StringID(s string) RequestId { return RequestId{codec.StringScalar(s)} }

// ParseRequestId reads one JSON value as an id. Its cost is bounded by the
// length of raw, whatever exponent a number in it has. Fractions, null,
// booleans, arrays and objects are refused.
func ParseRequestId(raw []byte) (RequestId, error) {
	v, err := codec.ParseScalar(raw)
	if err != nil {
		return RequestId{}, fmt.Errorf("mcptypes: request id: %w", err)
	}
	return RequestId{v}, nil
}

// IsZero reports whether the id is absent.
func (id RequestId) IsZero() bool { return id.v.IsZero() }

// Int returns the id as an integer; ok is false when it is something else or
// does not fit in an int64.
func (id RequestId) Int() (n int64, ok bool) { return id.v.Int() }

// Str returns the id as a string; ok is false when it is something else.
func (id RequestId) Str() (s string, ok bool) { return id.v.Str() }

// String returns the id as JSON, so that 1 and "1" print differently. The
// absent id prints as nothing.
func (id RequestId) String() string { return id.v.String() }

// AppendJSON appends the id to b; the absent id as null.
func (id RequestId) AppendJSON(b []byte) []byte { return id.v.AppendJSON(b) }

// MarshalJSON implements [encoding/json.Marshaler]. The absent id is an error.
func (id RequestId) MarshalJSON() ([]byte, error) { return id.v.MarshalJSON() }

// UnmarshalJSON implements [encoding/json.Unmarshaler].
func (id *RequestId) UnmarshalJSON(b []byte) error { return decode(b, id, false) }

// MarshalJSONTo implements json.MarshalerTo of go-json-experiment/json.
func (id RequestId) MarshalJSONTo(enc *jsontext.Encoder) error { return id.v.MarshalJSONTo(enc) }

// UnmarshalJSONFrom implements json.UnmarshalerFrom of go-json-experiment/json.
func (id *RequestId) UnmarshalJSONFrom(dec *jsontext.Decoder) error { return unmarshalFrom(dec, id) }

// ProgressToken ties progress notifications to the request that asked for them
// (https://modelcontextprotocol.io/specification/2025-06-18/basic/utilities/progress).
// It has the values of a [RequestId] but is a type of its own, since a token
// is chosen by the sender and need not be the id. The zero value is the absent
// token.
type ProgressToken struct{ v codec.Scalar }

// IntToken returns the token that is the integer n.
func IntToken(n int64) ProgressToken { return ProgressToken{codec.IntScalar(n)} }

// StringToken returns the token that is the string s.
func StringToken(s string) ProgressToken { return ProgressToken{codec.StringScalar(s)} }

// ParseProgressToken reads one JSON value as a token, as [ParseRequestId] does.
func ParseProgressToken(raw []byte) (ProgressToken, error) {
	v, err := codec.ParseScalar(raw)
	if err != nil {
		return ProgressToken{}, fmt.Errorf("mcptypes: progress token: %w", err)
	}
	return ProgressToken{v}, nil
}

// IsZero reports whether the token is absent.
func (t ProgressToken) IsZero() bool { return t.v.IsZero() }

// Int returns the token as an integer; ok is false when it is something else
// or does not fit in an int64.
func (t ProgressToken) Int() (n int64, ok bool) { return t.v.Int() }

// Str returns the token as a string; ok is false when it is something else.
func (t ProgressToken) Str() (s string, ok bool) { return t.v.Str() }

// String returns the token as JSON, so that 1 and "1" print differently. The
// absent token prints as nothing.
func (t ProgressToken) String() string { return t.v.String() }

// AppendJSON appends the token to b; the absent token as null.
func (t ProgressToken) AppendJSON(b []byte) []byte { return t.v.AppendJSON(b) }

// MarshalJSON implements [encoding/json.Marshaler]. The absent token is an
// error.
func (t ProgressToken) MarshalJSON() ([]byte, error) { return t.v.MarshalJSON() }

// UnmarshalJSON implements [encoding/json.Unmarshaler].
func (t *ProgressToken) UnmarshalJSON(b []byte) error { return decode(b, t, false) }

// MarshalJSONTo implements json.MarshalerTo of go-json-experiment/json.
func (t ProgressToken) MarshalJSONTo(enc *jsontext.Encoder) error { return t.v.MarshalJSONTo(enc) }

// UnmarshalJSONFrom implements json.UnmarshalerFrom of go-json-experiment/json.
func (t *ProgressToken) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	return unmarshalFrom(dec, t)
}

func (id *RequestId) decode(d *codec.Decoder) (err error) {
	id.v, err = d.Scalar()
	return err
}

func (id *RequestId) encode(e *codec.Encoder) { e.Scalar(id.v) }

func (t *ProgressToken) decode(d *codec.Decoder) (err error) {
	t.v, err = d.Scalar()
	return err
}

func (t *ProgressToken) encode(e *codec.Encoder) { e.Scalar(t.v) }
