package mcptypes

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// The readers of values, called by generated code.

func (d *decoder) string() (string, error) {
	if d.PeekKind() != '"' {
		return "", d.wrong("a string")
	}
	raw, err := d.ReadValue()
	if err != nil {
		return "", err
	}
	return unquote(raw), nil
}

// unquote returns the text of a JSON string that has been read.
func unquote(raw jsontext.Value) string {
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1])
	}
	b, _ := jsontext.AppendUnquote(make([]byte, 0, len(raw)-2), raw)
	return string(b)
}

func readString[T ~string](d *decoder) (T, error) {
	s, err := d.string()
	return T(s), err
}

// constant reads the only string that a member may be.
func (d *decoder) constant(want string) error {
	s, err := d.scratch(strconv.Quote(want))
	if err != nil {
		return err
	}
	if string(s) != want {
		return d.fail("want %q, found %q", want, s)
	}
	return nil
}

// scratch reads a string that is good until the next read.
func (d *decoder) scratch(want string) ([]byte, error) {
	if d.PeekKind() != '"' {
		return nil, d.wrong(want)
	}
	return d.name()
}

// readEnum reads one of the strings that values lists.
func readEnum[T ~string](d *decoder, values []T) (T, error) {
	if d.PeekKind() != '"' {
		return "", d.wrong("a string")
	}
	s, err := d.name()
	if err != nil {
		return "", err
	}
	for _, v := range values {
		if string(s) == string(v) {
			return v, nil
		}
	}
	return "", d.fail("want one of %s, found %q", listEnum(values), s)
}

func (d *decoder) bool() (bool, error) {
	if k := d.PeekKind(); k != 't' && k != 'f' {
		return false, d.wrong("a boolean")
	}
	token, err := d.ReadToken()
	if err != nil {
		return false, err
	}
	return token.Bool(), nil
}

func (d *decoder) scalar() (scalar, error) {
	if k := d.PeekKind(); k != '"' && k != '0' {
		return scalar{}, d.wrong("a string or an integer")
	}
	raw, err := d.ReadValue()
	if err != nil {
		return scalar{}, err
	}
	s, err := parseScalar(raw)
	if err != nil {
		return scalar{}, d.fail("%s", err)
	}
	return s, nil
}

func (d *decoder) int() (int64, error) {
	if d.PeekKind() != '0' {
		return 0, d.wrong("an integer")
	}
	raw, err := d.ReadValue()
	if err != nil {
		return 0, err
	}
	s, err := parseInteger(raw)
	switch {
	case err != nil:
		return 0, d.fail("want an integer, found %.40s", raw)
	case s.kind != kindInt:
		return 0, d.fail("integer beyond 64 bits")
	}
	return s.num, nil
}

func (d *decoder) number() (float64, error) {
	if d.PeekKind() != '0' {
		return 0, d.wrong("a number")
	}
	raw, err := d.ReadValue()
	if err != nil {
		return 0, err
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil {
		return 0, d.fail("number beyond 64 bits")
	}
	return f, nil
}

// between reads a number that has bounds.
func (d *decoder) between(low, high float64) (float64, error) {
	f, err := d.number()
	if err != nil {
		return 0, err
	}
	if f < low || f > high {
		return 0, d.fail("want a number from %v to %v, found %v", low, high, f)
	}
	return f, nil
}

// any reads a value as it stands.
func (d *decoder) any() (json.RawMessage, error) {
	raw, err := d.ReadValue()
	if err != nil {
		return nil, err
	}
	return append(json.RawMessage(nil), raw...), nil
}

// object reads an object as it stands.
func (d *decoder) object() (json.RawMessage, error) {
	raw, err := d.objectValue()
	if err != nil {
		return nil, err
	}
	return append(json.RawMessage(nil), raw...), nil
}

// members reads an object member by member.
func (d *decoder) members() (map[string]json.RawMessage, error) {
	return readMap(d, (*decoder).any)
}

// readShape reads an object as it stands, after check has walked it.
func readShape(d *decoder, check func(*decoder) error) (json.RawMessage, error) {
	raw, err := d.object()
	if err != nil {
		return nil, err
	}
	_, err = again(d, raw, func(sub *decoder) (struct{}, error) { return struct{}{}, check(sub) })
	return raw, err
}

// readPtr reads an object into a new T.
func readPtr[T any, P interface {
	*T
	decodable
}](d *decoder) (P, error) {
	v := P(new(T))
	if err := v.decode(d); err != nil {
		return nil, err
	}
	return v, nil
}

// optional reads a value that may be absent by null.
func optional[T any](d *decoder, read readFunc[T]) (*T, error) {
	if null, err := d.absent(); null || err != nil {
		return nil, err
	}
	v, err := read(d)
	if err != nil {
		return nil, err
	}
	return &v, nil
}

// optionalPtr is optional for objects.
func optionalPtr[T any, P interface {
	*T
	decodable
}](d *decoder) (P, error) {
	if null, err := d.absent(); null || err != nil {
		return nil, err
	}
	return readPtr[T, P](d)
}

// orNil is optional for types whose zero value is absence.
func orNil[T any](d *decoder, read readFunc[T]) (v T, err error) {
	if null, err := d.absent(); null || err != nil {
		return v, err
	}
	return read(d)
}

// readList reads an array; an empty one is not nil.
func readList[T any](d *decoder, read readFunc[T]) ([]T, error) {
	if d.PeekKind() != '[' {
		return nil, d.wrong("an array")
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, err
	}
	list := []T{}
	for d.more() {
		v, err := read(d)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, d.end()
}

// readObjects is readList for objects, which are read in their place.
func readObjects[T any, P interface {
	*T
	decodable
}](d *decoder) ([]T, error) {
	if d.PeekKind() != '[' {
		return nil, d.wrong("an array")
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, err
	}
	list := []T{}
	for d.more() {
		var none T
		list = append(list, none)
		if err := P(&list[len(list)-1]).decode(d); err != nil {
			return nil, err
		}
	}
	return list, d.end()
}

// readMap reads an object whose members are alike; an empty one is not nil.
func readMap[T any](d *decoder, read readFunc[T]) (map[string]T, error) {
	if err := d.begin(); err != nil {
		return nil, err
	}
	m := make(map[string]T)
	for d.more() {
		name, err := d.name()
		if err != nil {
			return nil, err
		}
		key := string(name)
		v, err := read(d)
		if err != nil {
			return nil, err
		}
		m[key] = v
	}
	return m, d.end()
}

// readObject reads an object by value, as an element of a map.
func readObject[T any, P interface {
	*T
	decodable
}](d *decoder) (v T, err error) {
	err = P(&v).decode(d)
	return v, err
}

// each walks an array without keeping it.
func (d *decoder) each(walk func(*decoder) error) error {
	if d.PeekKind() != '[' {
		return d.wrong("an array")
	}
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	for d.more() {
		if err := walk(d); err != nil {
			return err
		}
	}
	return d.end()
}

// eachMember walks an object without keeping it.
func (d *decoder) eachMember(walk func(*decoder) error) error {
	if err := d.begin(); err != nil {
		return err
	}
	for d.more() {
		if _, err := d.name(); err != nil {
			return err
		}
		if err := walk(d); err != nil {
			return err
		}
	}
	return d.end()
}

func listEnum[T ~string](values []T) string {
	quoted := make([]string, len(values))
	for i, v := range values {
		quoted[i] = strconv.Quote(string(v))
	}
	return strings.Join(quoted, ", ")
}

// plain walks a string without keeping it.
func (d *decoder) plain() error {
	_, err := d.scratch("a string")
	return err
}

// skipObject walks an object without keeping it.
func (d *decoder) skipObject() error {
	_, err := d.objectValue()
	return err
}
