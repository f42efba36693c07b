package codec

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// The scanner reads text that is in memory, and can go back in it, as unions need. It admits
// exactly what a jsontext.Decoder with its default options admits: no duplicate members, no
// invalid UTF-8, and 10,000 levels. It only tells that text is wrong; syntaxError asks jsontext for
// the reason.

// errSyntax is the error of text that is not JSON.
var errSyntax = errors.New("not valid JSON")

// maxDepth is the number of objects and arrays that may be within each other.
const maxDepth = 10000

// syntaxError returns jsontext's error about text that the scanner refused.
func syntaxError(text []byte) error {
	dec := jsontext.NewDecoder(bytes.NewBuffer(text))
	if _, err := dec.ReadValue(); err != nil {
		return err
	}
	if rest := bytes.TrimLeft(dec.UnreadBuffer(), " \t\r\n"); len(rest) > 0 {
		return errAfter(rest)
	}
	return errSyntax
}

// errAfter is the error of text that has more than a value.
func errAfter(rest []byte) error {
	return &DecodeError{Msg: fmt.Sprintf("found %q after the value", rest[0])}
}

// state is what a decoder has to restore to read a value again.
type state struct {
	pos   int
	depth int
	names []span // of the members of the objects that are being read

	strict  bool
	seen    uint64 // the required members of the object that is being read
	variant string // a name in it that differs only by case from one that is guarded

	beside beside // set while ReadBeside reads an object
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

// open begins to read an object, whose text begins with a brace.
func (d *Decoder) open() (object, error) {
	d.pos++
	if d.depth++; d.depth > maxDepth {
		return object{}, errSyntax
	}
	return object{mark: len(d.names)}, nil
}

// next reads the next member's name, and returns nil at the end of the object.
func (d *Decoder) next(o *object) (name []byte, err error) {
	c := d.kind()
	if c == '}' {
		d.pos++
		d.depth--
		d.names = d.names[:o.mark]
		return nil, nil
	}
	if o.any {
		if c != ',' {
			return nil, errSyntax
		}
		d.pos++
		c = d.kind()
	}
	o.any = true
	if c != '"' {
		return nil, errSyntax
	}
	s := span{start: d.pos + 1}
	if s.escaped, err = d.skipString(); err != nil {
		return nil, err
	}
	s.end = d.pos - 1
	name = d.nameAt(s)
	if err := d.remember(o, s, name); err != nil {
		return nil, err
	}
	if d.kind() != ':' {
		return nil, errSyntax
	}
	d.pos++
	return name, nil
}

// remember adds a name to those of the object, which must not have it.
func (d *Decoder) remember(o *object, s span, name []byte) error {
	const many = 32 // a map is faster from there on
	if o.more == nil {
		before := d.names[o.mark:]
		for i := range before {
			if other := &before[i]; len(name) == other.end-other.start || other.escaped {
				if string(d.nameAt(*other)) == string(name) {
					return errSyntax
				}
			}
		}
		if d.names = append(d.names, s); len(before) < many {
			return nil
		}
		o.more = make(map[string]struct{})
		for _, other := range before {
			o.more[string(d.nameAt(other))] = struct{}{}
		}
	}
	if _, ok := o.more[string(name)]; ok {
		return errSyntax
	}
	o.more[string(name)] = struct{}{}
	return nil
}

func (d *Decoder) nameAt(s span) []byte {
	if !s.escaped {
		return d.text[s.start:s.end]
	}
	return []byte(unquote(d.text[s.start:s.end]))
}

// openList begins to read an array, whose text begins with a bracket.
func (d *Decoder) openList() error {
	d.pos++
	if d.depth++; d.depth > maxDepth {
		return errSyntax
	}
	return nil
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
		return false, errSyntax
	}
	d.pos++
	return true, nil // a bracket after the comma is not a value
}

// SkipValue reads a value without keeping it.
func (d *Decoder) SkipValue() error {
	switch c := d.kind(); c {
	case '{':
		o, err := d.open()
		if err != nil {
			return err
		}
		for {
			if name, err := d.next(&o); name == nil || err != nil {
				return err
			}
			if err := d.SkipValue(); err != nil {
				return err
			}
		}
	case '[':
		if err := d.openList(); err != nil {
			return err
		}
		for n := 0; ; n++ {
			if more, err := d.element(n); !more || err != nil {
				return err
			}
			if err := d.SkipValue(); err != nil {
				return err
			}
		}
	case '"':
		_, err := d.skipString()
		return err
	case 't':
		return d.literal("true")
	case 'f':
		return d.literal("false")
	case 'n':
		return d.literal("null")
	}
	return d.skipNumber()
}

// raw reads a value and returns its text.
func (d *Decoder) raw() ([]byte, error) {
	d.kind()
	start := d.pos
	err := d.SkipValue()
	return d.text[start:d.pos:d.pos], err
}

func (d *Decoder) literal(word string) error {
	if end := d.pos + len(word); end <= len(d.text) && string(d.text[d.pos:end]) == word {
		d.pos = end
		return nil
	}
	return errSyntax
}

// skipNumber reads a number by the grammar of RFC 8259, section 6.
func (d *Decoder) skipNumber() error {
	b, n := d.text, d.pos
	if n < len(b) && b[n] == '-' {
		n++
	}
	whole := digits(b, n)
	if whole == n || whole > n+1 && b[n] == '0' {
		return errSyntax
	}
	n = whole
	if n < len(b) && b[n] == '.' {
		end := digits(b, n+1)
		if end == n+1 {
			return errSyntax
		}
		n = end
	}
	if n < len(b) && (b[n] == 'e' || b[n] == 'E') {
		n++
		if n < len(b) && (b[n] == '+' || b[n] == '-') {
			n++
		}
		end := digits(b, n)
		if end == n {
			return errSyntax
		}
		n = end
	}
	d.pos = n
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
			return false, errSyntax
		}
		switch c := b[n]; {
		case c == '"':
			d.pos = n + 1
			return escaped, nil
		case c == '\\':
			size := escapeLength(b[n:])
			if size == 0 {
				return false, errSyntax
			}
			n += size
			escaped = true
		case c < ' ':
			return false, errSyntax
		default:
			r, size := utf8.DecodeRune(b[n:])
			if r == utf8.RuneError && size == 1 {
				return false, errSyntax
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
		switch c := raw[1]; c {
		case 'b':
			s.WriteByte('\b')
		case 'f':
			s.WriteByte('\f')
		case 'n':
			s.WriteByte('\n')
		case 'r':
			s.WriteByte('\r')
		case 't':
			s.WriteByte('\t')
		case 'u':
			size = 6
			r, _ := unit(raw)
			if utf16.IsSurrogate(r) {
				low, _ := unit(raw[6:])
				r, size = utf16.DecodeRune(r, low), 12
			}
			s.WriteRune(r)
		default:
			s.WriteByte(c)
		}
		raw = raw[size:]
	}
	s.Write(raw)
	return s.String()
}

// kindName names the kind of value that begins with c.
func kindName(c byte) string {
	switch c {
	case 'n':
		return "null"
	case 't', 'f':
		return "a boolean"
	case '"':
		return "a string"
	case '[':
		return "an array"
	case '{':
		return "an object"
	}
	return "a number"
}

// isValid reports whether text is one JSON value.
func isValid(text []byte) bool {
	d := newDecoder(text)
	defer d.release()
	return d.SkipValue() == nil && d.kind() == 0 && d.pos == len(text)
}
