package codec

import (
	"errors"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Scalar is the value of an id or a token. Two scalars are == exactly if they are the same
// JSON value. The zero value is absent.
type Scalar struct {
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
	errFraction = errors.New("want a string or an integer, found a fraction")
	errExponent = errors.New("want an integer with an exponent up to 10^18")
)

// Str returns the string, if it is one.
func (s Scalar) Str() (string, bool) {
	if s.kind != kindString {
		return "", false
	}
	return s.str, true
}

// String returns the JSON form, or "" for the absent value.
func (s Scalar) String() string {
	if s.kind == kindAbsent {
		return ""
	}
	return string(s.AppendJSON(nil))
}

// AppendJSON appends the JSON form, or null for the absent value.
func (s Scalar) AppendJSON(b []byte) []byte {
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

// IntScalar returns the integer n.
func IntScalar(n int64) Scalar { return Scalar{num: n, kind: kindInt} }

// StringScalar returns the string s.
func StringScalar(s string) Scalar { return Scalar{str: s, kind: kindString} }

// IsZero reports whether the value is absent.
func (s Scalar) IsZero() bool { return s.kind == kindAbsent }

// Int returns the integer, if it is one that fits in an int64.
func (s Scalar) Int() (int64, bool) { return s.num, s.kind == kindInt }

// ParseScalar reads one JSON value: a string or an integer.
func ParseScalar(text []byte) (s Scalar, err error) {
	if n, ok := shortInt(text); ok {
		return IntScalar(n), nil
	}
	if wrong := Read(text, true, Into(&s, ReadScalar)); wrong != nil {
		return s, errors.New(wrong.Msg)
	}
	return s, nil
}

// shortInt reads what nearly every id is: 1 to 18 digits, which an int64 holds. It leaves all else to the decoder.
func shortInt(text []byte) (n int64, ok bool) {
	if len(text) == 0 || len(text) > 18 || len(text) > 1 && text[0] == '0' {
		return 0, false
	}
	for _, c := range text {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = 10*n + int64(c-'0')
	}
	return n, true
}

// parseInteger reads a JSON number whose value is an integer, in any notation. A value
// beyond int64 is kept as its digits, or as digits and an exponent if it ends with more
// than maxZeros zeros.
func parseInteger(raw []byte) (Scalar, error) {
	const maxZeros = 400
	if n, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
		return Scalar{num: n, kind: kindInt}, nil
	}
	mantissa, exponent, found := cut(string(raw), 'e')
	if !found {
		mantissa, exponent, _ = cut(mantissa, 'E')
	}
	mantissa, negative := strings.CutPrefix(mantissa, "-")
	whole, fraction, _ := cut(mantissa, '.')
	digits := whole + fraction
	for digits != "" && digits[0] == '0' {
		digits = digits[1:]
	}
	zeros := -int64(len(fraction))
	for ; digits != "" && digits[len(digits)-1] == '0'; zeros++ {
		digits = digits[:len(digits)-1]
	}
	if digits == "" {
		return Scalar{kind: kindInt}, nil
	}
	if exponent != "" {
		const limit = 1e18
		n, _ := strconv.ParseInt(exponent, 10, 64) // the nearest one if it is larger
		switch zeros += max(-limit, min(n, limit)); {
		case n <= -limit:
			return Scalar{}, errFraction
		case n >= limit:
			return Scalar{}, errExponent
		}
	}
	if negative {
		digits = "-" + digits
	}
	switch {
	case zeros < 0:
		return Scalar{}, errFraction
	case zeros > maxZeros:
		return Scalar{str: digits + "e" + strconv.FormatInt(zeros, 10), kind: kindBig}, nil
	}
	text := []byte(digits)
	for range zeros {
		text = append(text, '0')
	}
	if n, err := strconv.ParseInt(string(text), 10, 64); err == nil {
		return Scalar{num: n, kind: kindInt}, nil
	}
	return Scalar{str: string(text), kind: kindBig}, nil
}
