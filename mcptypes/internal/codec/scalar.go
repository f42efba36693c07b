package codec

import (
	"bytes"
	"errors"
	"math"
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
	errScalar   = errors.New("want a string or an integer")
	errFraction = errors.New("want a string or an integer, found a fraction")
	errExponent = errors.New("want an integer with an exponent up to 10^18")
	errAbsent   = errors.New("mcptypes: absent id or token has no JSON form")
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

// MarshalJSON returns the JSON form. The absent value is an error.
func (s Scalar) MarshalJSON() ([]byte, error) {
	if s.kind == kindAbsent {
		return nil, errAbsent
	}
	return s.AppendJSON(nil), nil
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
func ParseScalar(raw []byte) (Scalar, error) {
	raw = bytes.Trim(raw, " \t\r\n")
	if len(raw) == 0 {
		return Scalar{}, errScalar
	}
	if raw[0] != '"' {
		return parseInteger(raw)
	}
	s, err := jsontext.AppendUnquote(nil, raw)
	if err != nil {
		return Scalar{}, err
	}
	return Scalar{str: string(s), kind: kindString}, nil
}

// parseInteger reads a JSON number whose value is an integer, in any notation. A value
// beyond int64 is kept as its digits, or as digits and an exponent if it ends with more
// than maxZeros zeros.
func parseInteger(raw []byte) (Scalar, error) {
	const maxZeros = 400
	if len(raw) < 18 && raw[0] >= '1' && raw[0] <= '9' { // the common case
		n := int64(0)
		for i, c := range raw {
			if c < '0' || c > '9' {
				break
			}
			n = n*10 + int64(c-'0')
			if i == len(raw)-1 {
				return Scalar{num: n, kind: kindInt}, nil
			}
		}
	}
	num, ok := splitNumber(raw)
	if !ok {
		return Scalar{}, errScalar
	}
	significant, zeros, ok := num.decimal()
	if significant == "" {
		return Scalar{kind: kindInt}, nil
	}
	if !ok {
		if num.expSign == '-' {
			return Scalar{}, errFraction
		}
		return Scalar{}, errExponent
	}
	sign := ""
	if num.negative {
		sign = "-"
	}
	switch {
	case zeros < 0:
		return Scalar{}, errFraction
	case zeros > maxZeros:
		return Scalar{str: sign + significant + "e" + strconv.FormatInt(zeros, 10), kind: kindBig}, nil
	}
	text := sign + significant + strings.Repeat("0", int(zeros))
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return Scalar{num: n, kind: kindInt}, nil
	}
	return Scalar{str: text, kind: kindBig}, nil
}

// number has the parts of a JSON number.
type number struct {
	negative        bool
	whole, fraction string
	expSign         byte // '-', or '+', which is the default
	expDigits       string
}

// decimal returns the digits of a number without zeros before and after them, and the power of ten to multiply
// them by. Zero has no digits. ok is false for an exponent beyond 10^18.
func (n number) decimal() (significant string, power int64, ok bool) {
	digits := strings.TrimLeft(n.whole+n.fraction, "0")
	significant = strings.TrimRight(digits, "0")
	if significant == "" {
		return "", 0, true
	}
	exp, ok := n.exponent()
	return significant, exp - int64(len(n.fraction)) + int64(len(digits)-len(significant)), ok
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

// splitNumber splits raw by the grammar of RFC 8259, section 6.
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
