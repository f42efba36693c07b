package config

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/codexmcp/codexmcp/internal/text"
	"github.com/go-json-experiment/json"
)

// decode sets the fields of dst, a pointer to a struct, from a merged layer. The tag json of a field has its key. The
// error names the key, but not the value, which may be a secret.
//
// By way of JSON it would take a twentieth of the memory of an idle server, most of it for decoders of large structs.
func decode(from layer, dst any) error {
	return decoder{}.table(nil, from, reflect.ValueOf(dst).Elem())
}

// decodeKnown is [decode], and fails for a key that no field has.
func decodeKnown(from layer, dst any) error {
	return decoder{known: true}.table(nil, from, reflect.ValueOf(dst).Elem())
}

// decoder decodes tables.
type decoder struct {
	known bool // no other keys
}

// table decodes the table at path.
func (d decoder) table(path []string, from layer, dst reflect.Value) error {
	if err := d.fields(path, from, dst); err != nil || !d.known {
		return err
	}
	keys := members(dst.Type())
	for _, key := range slices.Sorted(maps.Keys(from)) {
		if slices.Contains(keys, key) {
			continue
		}
		if meant := text.Nearest(key, slices.Values(keys)); meant != "" {
			return keyErrorf(append(path, key), "unknown key; do you mean %s?", meant)
		}
		return keyErrorf(append(path, key), "unknown key")
	}
	return nil
}

// fields sets the fields of a struct, and of those that it embeds.
func (d decoder) fields(path []string, from layer, dst reflect.Value) error {
	for i := range dst.NumField() {
		var err error
		field := dst.Type().Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if v, is := from[name]; is && name != "" && name != "-" {
			err = d.value(append(path, name), v, dst.Field(i))
		} else if name == "" && field.Anonymous {
			err = d.fields(path, from, dst.Field(i))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// value decodes the value at path.
func (d decoder) value(path []string, v any, dst reflect.Value) error {
	if v == nil {
		dst.SetZero()
		return nil
	}
	to := dst.Addr().Interface()
	if duration, is := to.(*time.Duration); is {
		to = (*Duration)(duration)
	}
	if own, is := to.(json.Unmarshaler); is {
		data, err := json.Marshal(v, json.Deterministic(true))
		if err == nil {
			err = own.UnmarshalJSON(data)
		}
		if err != nil {
			return keyErrorf(path, "%w", err)
		}
		return nil
	}
	from := reflect.ValueOf(v)
	switch kind := dst.Kind(); {
	case kind == reflect.Pointer:
		if dst.IsNil() {
			dst.Set(reflect.New(dst.Type().Elem()))
		}
		return d.value(path, v, dst.Elem())
	case kind == reflect.Interface:
		dst.Set(from)
		return nil
	case kind == reflect.Struct && isTable(v):
		return d.table(path, v.(layer), dst)
	case kind == reflect.Map && from.Kind() == reflect.Map && from.Type().Key().Kind() == reflect.String:
		return d.entries(path, from, dst)
	case kind == reflect.Slice && from.Kind() == reflect.Slice:
		return d.elements(path, from, dst)
	case kind == reflect.String && from.Kind() == reflect.String:
		if !utf8.ValidString(from.String()) {
			return keyErrorf(path, "invalid UTF-8")
		}
		dst.SetString(from.String())
		return nil
	case kind == reflect.Bool && from.Kind() == reflect.Bool:
		dst.SetBool(from.Bool())
		return nil
	case dst.CanInt():
		if n, is := integer(from); is && !dst.OverflowInt(n) {
			dst.SetInt(n)
			return nil
		}
	case dst.CanFloat():
		if n, is := number(from); is {
			dst.SetFloat(n)
			return nil
		}
	}
	return keyErrorf(path, "want %s, have %s", typeWord(dst.Kind()), valueWord(from))
}

// integer returns a number of Go, JSON or TOML without a fraction.
func integer(v reflect.Value) (n int64, is bool) {
	switch {
	case v.CanInt():
		return v.Int(), true
	case v.CanUint():
		return int64(v.Uint()), v.Uint() <= math.MaxInt64
	case v.CanFloat():
		return int64(v.Float()), v.Float() == math.Trunc(v.Float()) && math.Abs(v.Float()) < 1<<63
	}
	return 0, false
}

// number returns a finite number.
func number(v reflect.Value) (n float64, is bool) {
	switch {
	case v.CanInt():
		return float64(v.Int()), true
	case v.CanUint():
		return float64(v.Uint()), true
	case v.CanFloat():
		return v.Float(), !math.IsInf(v.Float(), 0) && !math.IsNaN(v.Float())
	}
	return 0, false
}

// entries decodes a table whose keys are no fields.
func (d decoder) entries(path []string, from, dst reflect.Value) error {
	if dst.IsNil() {
		dst.Set(reflect.MakeMapWithSize(dst.Type(), from.Len()))
	}
	keys := from.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	for _, key := range keys {
		entry := reflect.New(dst.Type().Elem()).Elem()
		if err := d.value(append(path, key.String()), from.MapIndex(key).Interface(), entry); err != nil {
			return err
		}
		dst.SetMapIndex(key.Convert(dst.Type().Key()), entry)
	}
	return nil
}

// elements decodes an array.
func (d decoder) elements(path []string, from, dst reflect.Value) error {
	all := reflect.MakeSlice(dst.Type(), from.Len(), from.Len())
	for i := range from.Len() {
		if err := d.value(append(path, strconv.Itoa(i)), from.Index(i).Interface(), all.Index(i)); err != nil {
			return err
		}
	}
	dst.Set(all)
	return nil
}

// keyErrorf returns an error that begins with the dotted key.
func keyErrorf(path []string, format string, args ...any) error {
	return fmt.Errorf("%s: %w", JoinKey(path...), fmt.Errorf(format, args...))
}

// valueWord returns the name that TOML has for a value, where each number is one.
func valueWord(v reflect.Value) string {
	if v.CanFloat() && (math.IsInf(v.Float(), 0) || math.IsNaN(v.Float())) {
		return "no finite number"
	}
	if v.CanInt() || v.CanUint() || v.CanFloat() {
		return "a number"
	}
	return typeWord(v.Kind())
}

// typeWord returns the name that TOML has for the values of a Go kind.
func typeWord(k reflect.Kind) string {
	switch k {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "a boolean"
	case reflect.Int, reflect.Int64:
		return "an integer"
	case reflect.Float64:
		return "a number"
	case reflect.Slice:
		return "an array"
	default:
		return "a table"
	}
}
