package mcptypes

import (
	"bytes"
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// RequestId names a JSON-RPC request: a string or an integer
// (https://modelcontextprotocol.io/specification/2025-06-18/basic#requests).
// It is comparable, so it can be a map key, and it keeps 1, "1" and integers
// beyond 2^53 apart. An integer may be written as 1.0 or 1e0; it reads as 1.
// The zero value is the absent id, which no request carries.
type RequestId struct{ v scalar }

// IntID returns the id that is the integer n.
func IntID(n int64) RequestId { return RequestId{scalar{num: n, kind: kindInt}} }

// StringID returns the id that is the string s.
func StringID(s string) RequestId { return RequestId{scalar{str: s, kind: kindString}} }

// ParseRequestId reads one JSON value as an id. Its cost is bounded by the
// length of raw, whatever exponent a number in it has. Fractions, null,
// booleans, arrays and objects are refused.
func ParseRequestId(raw []byte) (RequestId, error) {
	v, err := parseScalar(raw)
	return RequestId{v}, err
}

// IsZero reports whether the id is absent.
func (id RequestId) IsZero() bool { return id.v.kind == kindAbsent }

// Int returns the id as an integer; ok is false when it is something else or
// does not fit in an int64.
func (id RequestId) Int() (n int64, ok bool) { return id.v.num, id.v.kind == kindInt }

// Str returns the id as a string; ok is false when it is something else.
func (id RequestId) Str() (s string, ok bool) { return id.v.text() }

// String returns the id as JSON, so that 1 and "1" print differently. The
// absent id prints as nothing.
func (id RequestId) String() string { return id.v.print() }

// AppendJSON appends the id to b; the absent id as null.
func (id RequestId) AppendJSON(b []byte) []byte { return id.v.append(b) }

// MarshalJSON implements [encoding/json.Marshaler]. The absent id is an error.
func (id RequestId) MarshalJSON() ([]byte, error) { return id.v.marshal() }

// UnmarshalJSON implements [encoding/json.Unmarshaler].
func (id *RequestId) UnmarshalJSON(b []byte) error { return decode(b, id, false) }

// MarshalJSONTo implements json.MarshalerTo of go-json-experiment/json.
func (id RequestId) MarshalJSONTo(enc *jsontext.Encoder) error { return id.v.marshalTo(enc) }

// UnmarshalJSONFrom implements json.UnmarshalerFrom of go-json-experiment/json.
func (id *RequestId) UnmarshalJSONFrom(dec *jsontext.Decoder) error { return unmarshalFrom(dec, id) }

// ProgressToken ties progress notifications to the request that asked for them
// (https://modelcontextprotocol.io/specification/2025-06-18/basic/utilities/progress).
// It has the values of a [RequestId] but is a type of its own, since a token
// is chosen by the sender and need not be the id. The zero value is the absent
// token.
type ProgressToken struct{ v scalar }

// IntToken returns the token that is the integer n.
func IntToken(n int64) ProgressToken { return ProgressToken{scalar{num: n, kind: kindInt}} }

// StringToken returns the token that is the string s.
func StringToken(s string) ProgressToken { return ProgressToken{scalar{str: s, kind: kindString}} }

// ParseProgressToken reads one JSON value as a token, as [ParseRequestId] does.
func ParseProgressToken(raw []byte) (ProgressToken, error) {
	v, err := parseScalar(raw)
	return ProgressToken{v}, err
}

// IsZero reports whether the token is absent.
func (t ProgressToken) IsZero() bool { return t.v.kind == kindAbsent }

// Int returns the token as an integer; ok is false when it is something else
// or does not fit in an int64.
func (t ProgressToken) Int() (n int64, ok bool) { return t.v.num, t.v.kind == kindInt }

// Str returns the token as a string; ok is false when it is something else.
func (t ProgressToken) Str() (s string, ok bool) { return t.v.text() }

// String returns the token as JSON, so that 1 and "1" print differently. The
// absent token prints as nothing.
func (t ProgressToken) String() string { return t.v.print() }

// AppendJSON appends the token to b; the absent token as null.
func (t ProgressToken) AppendJSON(b []byte) []byte { return t.v.append(b) }

// MarshalJSON implements [encoding/json.Marshaler]. The absent token is an
// error.
func (t ProgressToken) MarshalJSON() ([]byte, error) { return t.v.marshal() }

// UnmarshalJSON implements [encoding/json.Unmarshaler].
func (t *ProgressToken) UnmarshalJSON(b []byte) error { return decode(b, t, false) }

// MarshalJSONTo implements json.MarshalerTo of go-json-experiment/json.
func (t ProgressToken) MarshalJSONTo(enc *jsontext.Encoder) error { return t.v.marshalTo(enc) }

// UnmarshalJSONFrom implements json.UnmarshalerFrom of go-json-experiment/json.
func (t *ProgressToken) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	return unmarshalFrom(dec, t)
}

func (id *RequestId) decode(d *decoder) (err error) {
	id.v, err = d.scalar()
	return err
}

func (id *RequestId) encode(e *encoder) { e.scalar(id.v) }

func (t *ProgressToken) decode(d *decoder) (err error) {
	t.v, err = d.scalar()
	return err
}

func (t *ProgressToken) encode(e *encoder) { e.scalar(t.v) }

// scalar is the value of an id or a token. Two scalars are the same JSON value
// exactly when they are ==.
type scalar struct {
	str  string // kindString: the string; kindBig: canonical digits
	num  int64  // kindInt
	kind scalarKind
}

type scalarKind uint8

const (
	kindAbsent scalarKind = iota
	kindString
	kindInt
	kindBig // an integer outside int64
)

var (
	errScalar   = errors.New("want a string or an integer")
	errFraction = errors.New("want a string or an integer, found a fraction")
	errExponent = errors.New("integer with an exponent beyond 10^18")
	errAbsent   = errors.New("mcptypes: absent id or token has no JSON form")
)

func (s scalar) text() (string, bool) {
	if s.kind != kindString {
		return "", false
	}
	return s.str, true
}

func (s scalar) print() string {
	if s.kind == kindAbsent {
		return ""
	}
	return string(s.append(nil))
}

func (s scalar) append(b []byte) []byte {
	switch s.kind {
	case kindString:
		b, _ = jsontext.AppendQuote(b, s.str) // bad UTF-8 becomes U+FFFD
		return b
	case kindInt:
		return strconv.AppendInt(b, s.num, 10)
	case kindBig:
		return append(b, s.str...)
	}
	return append(b, "null"...)
}

func (s scalar) marshal() ([]byte, error) {
	if s.kind == kindAbsent {
		return nil, errAbsent
	}
	return s.append(nil), nil
}

func (s scalar) marshalTo(enc *jsontext.Encoder) error {
	if s.kind == kindAbsent {
		return errAbsent
	}
	return enc.WriteValue(s.append(enc.AvailableBuffer()))
}

func parseScalar(raw []byte) (scalar, error) {
	raw = bytes.Trim(raw, " \t\r\n")
	if len(raw) == 0 {
		return scalar{}, errScalar
	}
	if raw[0] != '"' {
		return parseInteger(raw)
	}
	s, err := jsontext.AppendUnquote(nil, raw)
	if err != nil {
		return scalar{}, err
	}
	return scalar{str: string(s), kind: kindString}, nil
}

// parseInteger reads a JSON number whose value is an integer, in whatever
// notation. A value beyond int64 is kept as its digits, or when more than
// maxZeros zeros end it, as digits and an exponent.
func parseInteger(raw []byte) (scalar, error) {
	const maxZeros = 400
	if len(raw) < 18 && raw[0] >= '1' && raw[0] <= '9' { // the common case
		n := int64(0)
		for i, c := range raw {
			if c < '0' || c > '9' {
				break
			}
			n = n*10 + int64(c-'0')
			if i == len(raw)-1 {
				return scalar{num: n, kind: kindInt}, nil
			}
		}
	}
	num, ok := splitNumber(raw)
	if !ok {
		return scalar{}, errScalar
	}
	digits := strings.TrimLeft(num.whole+num.fraction, "0")
	if digits == "" {
		return scalar{kind: kindInt}, nil
	}
	significant := strings.TrimRight(digits, "0")
	exp, ok := num.exponent()
	if !ok {
		if num.expSign == '-' {
			return scalar{}, errFraction
		}
		return scalar{}, errExponent
	}
	zeros := exp - int64(len(num.fraction)) + int64(len(digits)-len(significant))
	sign := ""
	if num.negative {
		sign = "-"
	}
	switch {
	case zeros < 0:
		return scalar{}, errFraction
	case zeros > maxZeros:
		return scalar{str: sign + significant + "e" + strconv.FormatInt(zeros, 10), kind: kindBig}, nil
	}
	text := sign + significant + strings.Repeat("0", int(zeros))
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return scalar{num: n, kind: kindInt}, nil
	}
	return scalar{str: text, kind: kindBig}, nil
}

// number is a JSON number taken apart.
type number struct {
	negative        bool
	whole, fraction string
	expSign         byte // '-', or '+' also when none is written
	expDigits       string
}

// exponent returns the written exponent; ok is false beyond 10^18.
func (n number) exponent() (exp int64, ok bool) {
	digits := strings.TrimLeft(n.expDigits, "0")
	if digits == "" {
		return 0, true
	}
	if len(digits) > 18 {
		return math.MaxInt64, false
	}
	exp, err := strconv.ParseInt(digits, 10, 64)
	if n.expSign == '-' {
		exp = -exp
	}
	return exp, err == nil
}

// splitNumber takes raw apart by the grammar of RFC 8259, section 6.
func splitNumber(raw []byte) (n number, ok bool) {
	s := string(raw)
	s, n.negative = strings.CutPrefix(s, "-")
	n.whole, s = cutDigits(s)
	if n.whole == "" || len(n.whole) > 1 && n.whole[0] == '0' {
		return n, false
	}
	if rest, found := strings.CutPrefix(s, "."); found {
		if n.fraction, s = cutDigits(rest); n.fraction == "" {
			return n, false
		}
	}
	n.expSign = '+'
	if s != "" && (s[0] == 'e' || s[0] == 'E') {
		s = s[1:]
		if s != "" && (s[0] == '+' || s[0] == '-') {
			n.expSign = s[0]
			s = s[1:]
		}
		if n.expDigits, s = cutDigits(s); n.expDigits == "" {
			return n, false
		}
	}
	return n, s == ""
}

func cutDigits(s string) (digits, rest string) {
	i := 0
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	return s[:i], s[i:]
}
