package codec

import (
	"bytes"
	"cmp"
	"io"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// The scanner reads text that is in memory, and can go back in it, as unions need. It admits
// exactly what a jsontext.Decoder with its default options admits: no duplicate members, no
// invalid UTF-8, and 10,000 levels. It gives the reasons in the same words, at the same places.

// maxDepth is the number of objects and arrays that may be within each other.
const maxDepth = 10000

// unexpected returns an error about the character at pos, or about the end of the text there.
func (d *Decoder) unexpected(pos int, where string) error {
	if pos >= len(d.text) {
		return &Fault{Msg: io.ErrUnexpectedEOF.Error(), Err: io.ErrUnexpectedEOF}
	}
	r, size := utf8.DecodeRune(d.text[pos:])
	if r == utf8.RuneError && size == 1 {
		return fail(`invalid character '\x%x' %s`, d.text[pos], where)
	}
	return fail("invalid character %q %s", r, where)
}

// state is what a decoder has to restore to read a value again.
type state struct {
	pos   int
	depth int
	names []span // of the members of the objects that are being read

	strict  bool
	variant string // a name in the object that differs only by case from one that is guarded
}

// span is a member's name in the text, without its quotes.
type span struct {
	start, end int
	escaped    bool
}

// kind skips white space and returns the first byte of what follows, 0 at the end.
func (d *Decoder) kind() byte {
	if d.pos < len(d.text) && d.text[d.pos] > ' ' {
		return d.text[d.pos]
	}
	return d.afterSpace()
}

func (d *Decoder) afterSpace() byte {
	for ; d.pos < len(d.text); d.pos++ {
		switch c := d.text[d.pos]; c {
		case ' ', '\t', '\r', '\n':
		default:
			return c
		}
	}
	return 0
}

// isNumber reports whether a number begins with c.
func isNumber(c byte) bool { return c == '-' || '0' <= c && c <= '9' }

// object is an object that is being read.
type object struct {
	mark int                 // its first name
	more map[string]struct{} // its names, once there are many
	any  bool                // it has members
}

// open begins to read an object or an array, whose text begins with a bracket.
func (d *Decoder) open() error {
	if d.depth++; d.depth > maxDepth {
		return fail("exceeded max depth")
	}
	d.pos++
	return nil
}

// next reads the next member's name, and returns nil at the end of the object.
func (d *Decoder) next(o *object) (name []byte, err error) {
	c := d.kind()
	if c == '}' {
		d.pos++
		d.depth--
		return nil, nil
	}
	if o.any {
		if c != ',' {
			return nil, d.unexpected(d.pos, "after object value (expecting ',' or '}')")
		}
		d.pos++
		c = d.kind()
	}
	o.any = true
	if c != '"' {
		return nil, d.unexpected(d.pos, `at start of string (expecting '"')`)
	}
	s := span{start: d.pos + 1}
	if s.escaped, err = d.skipString(); err != nil {
		return nil, err
	}
	s.end = d.pos - 1
	name = d.nameAt(s)
	if !d.remember(o, s, name) {
		return nil, within(&Fault{Msg: "duplicate member", Err: jsontext.ErrDuplicateName}, string(name))
	}
	if d.kind() != ':' {
		return nil, within(d.unexpected(d.pos, "after object name (expecting ':')"), string(name))
	}
	d.pos++
	return name, nil
}

// remember adds a name to those of the object, and reports whether it is new.
func (d *Decoder) remember(o *object, s span, name []byte) bool {
	const many = 32 // a map is faster from there on
	if has(d, o, name) {
		return false
	}
	if d.names = append(d.names, s); len(d.names)-o.mark <= many {
		return true
	}
	if o.more == nil {
		o.more = make(map[string]struct{})
		for _, other := range d.names[o.mark:] {
			o.more[string(d.nameAt(other))] = struct{}{}
		}
	}
	o.more[string(name)] = struct{}{}
	return true
}

// has reports whether the object has had a member with that name.
func has[T string | []byte](d *Decoder, o *object, name T) bool {
	if o.more != nil {
		_, ok := o.more[string(name)]
		return ok
	}
	before := d.names[o.mark:]
	for i := range before {
		if other := &before[i]; len(name) == other.end-other.start || other.escaped {
			if string(d.nameAt(*other)) == string(name) {
				return true
			}
		}
	}
	return false
}

func (d *Decoder) nameAt(s span) []byte {
	if !s.escaped {
		return d.text[s.start:s.end]
	}
	return []byte(unquote(d.text[s.start:s.end]))
}

// element reports whether the array has a further element, after n others.
func (d *Decoder) element(n int) (bool, error) {
	switch c := d.kind(); {
	case c == ']':
		d.pos++
		d.depth--
		return false, nil
	case n == 0:
		return true, nil
	case c != ',':
		return false, d.unexpected(d.pos, "after array element (expecting ',' or ']')")
	}
	d.pos++
	return true, nil // a bracket after the comma is not a value
}

// SkipValue reads a value without keeping it.
func (d *Decoder) SkipValue() error {
	switch c := d.kind(); {
	case c == '{':
		return d.EachMember((*Decoder).SkipValue)
	case c == '[':
		return d.Each((*Decoder).SkipValue)
	case c == '"':
		_, err := d.skipString()
		return err
	case c == 't':
		return d.literal("true")
	case c == 'f':
		return d.literal("false")
	case c == 'n':
		return d.literal("null")
	case isNumber(c):
		return d.skipNumber()
	}
	return d.unexpected(d.pos, "at start of value")
}

// raw reads a value and returns its text.
func (d *Decoder) raw() ([]byte, error) {
	d.kind()
	start := d.pos
	err := d.SkipValue()
	return d.text[start:d.pos:d.pos], err
}

func (d *Decoder) literal(word string) error {
	for i := range len(word) {
		if at := d.pos + i; at >= len(d.text) || d.text[at] != word[i] {
			return d.unexpected(at, "in literal "+word+" (expecting '"+word[i:i+1]+"')")
		}
	}
	d.pos += len(word)
	return nil
}

// skipNumber reads a number by the grammar of RFC 8259, section 6.
func (d *Decoder) skipNumber() error {
	b, n := d.text, d.pos
	if b[n] == '-' {
		n++
	}
	end := digits(b, n)
	if end > n && b[n] == '0' {
		end = n + 1
	}
	if end > n && end < len(b) && b[end] == '.' {
		n = end + 1
		end = digits(b, n)
	}
	if end > n && end < len(b) && (b[end] == 'e' || b[end] == 'E') {
		n = end + 1
		if n < len(b) && (b[n] == '+' || b[n] == '-') {
			n++
		}
		end = digits(b, n)
	}
	if end == n {
		return d.unexpected(n, "in number (expecting digit)")
	}
	d.pos = end
	return nil
}

// digits returns the end of the digits from n.
func digits(b []byte, n int) int {
	for n < len(b) && '0' <= b[n] && b[n] <= '9' {
		n++
	}
	return n
}

// skipString reads a string, whose text begins with a quote, and reports whether it has escapes.
func (d *Decoder) skipString() (escaped bool, err error) {
	b, n := d.text, d.pos+1
	for {
		n += plainPrefix(b[n:])
		if n >= len(b) {
			return false, d.unexpected(n, "")
		}
		switch c := b[n]; {
		case c == '"':
			d.pos = n + 1
			return escaped, nil
		case c == '\\':
			size := escapeLength(b[n:])
			if size == 0 {
				return false, fail("invalid escape sequence %q in string", b[n:min(n+6, len(b))])
			}
			n += size
			escaped = true
		case c < ' ':
			return false, d.unexpected(n, "in string (expecting non-control character)")
		default:
			r, size := utf8.DecodeRune(b[n:])
			if r == utf8.RuneError && size == 1 {
				return false, fail("invalid UTF-8")
			}
			n += size
		}
	}
}

// escapeLength returns the length of the escape that b begins with, 0 if it is not one. Two
// surrogates are one escape; a surrogate alone is none.
func escapeLength(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		r, ok := unit(b)
		switch {
		case !ok:
			return 0
		case !utf16.IsSurrogate(r):
			return 6
		}
		if low, ok := unit(b[6:]); ok && utf16.DecodeRune(r, low) != utf8.RuneError {
			return 12
		}
	}
	return 0
}

// unit returns the UTF-16 code unit of the escape that b begins with.
func unit[T string | []byte](b T) (r rune, ok bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	for i := 2; i < 6; i++ {
		c := rune(b[i])
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | c
	}
	return r, true
}

// Unquote returns the text of a JSON string that has been read.
func Unquote(raw []byte) string { return unquote(raw[1 : len(raw)-1]) }

// unquote returns the text of a JSON string that has been read, without its quotes. It allocates
// once.
func unquote(raw []byte) string {
	next := bytes.IndexByte(raw, '\\')
	if next < 0 {
		return string(raw)
	}
	var s strings.Builder
	s.Grow(len(raw) - 1) // an escape is longer than what it stands for
	for ; next >= 0; next = bytes.IndexByte(raw, '\\') {
		s.Write(raw[:next])
		raw = raw[next:]
		size := 2
		if c := raw[1]; c == 'u' {
			size = 6
			r, _ := unit(raw)
			if utf16.IsSurrogate(r) {
				low, _ := unit(raw[6:])
				r, size = utf16.DecodeRune(r, low), 12
			}
			s.WriteRune(r)
		} else {
			if i := strings.IndexByte(shortEscapes, c); i >= 0 {
				c = shortEscaped[i]
			}
			s.WriteByte(c)
		}
		raw = raw[size:]
	}
	s.Write(raw)
	return s.String()
}

var kindNames = [256]string{'n': "null", 't': "a boolean", 'f': "a boolean", '"': "a string", '[': "an array",
	'{': "an object"}

// kindName names the kind of value that begins with c.
func kindName(c byte) string { return cmp.Or(kindNames[c], "a number") }
