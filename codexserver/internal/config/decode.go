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

// fieldsOf returns the keys that a table has fields for, the tag json, with their types. Those of structs that it
// embeds are among them. Callers must not change the map.
func fieldsOf(table reflect.Type) map[string]reflect.Type {
	if table == reflect.TypeFor[document]() {
		return documentFields()
	}
	return fieldsIn(table)
}

func fieldsIn(table reflect.Type) map[string]reflect.Type {
	all := map[string]reflect.Type{}
	for f := range table.Fields() {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); f.Anonymous {
			maps.Copy(all, fieldsIn(f.Type))
		} else if name != "" && name != "-" {
			all[name] = f.Type
		}
	}
	return all
}

// typeAt returns the type of a value in a table, or nil.
func typeAt(table reflect.Type, name string) (t reflect.Type) {
	switch table.Kind() {
	case reflect.Struct:
		t = fieldsOf(table)[name]
	case reflect.Map:
		t = table.Elem()
	}
	if t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// decode sets the fields of dst, a pointer to a struct, from a merged layer. A field with the tag words takes only
// these, which commas separate. The error names the key, but not a value that may be a secret.
//
// By way of JSON it would take a twentieth of the memory of an idle server, most of it for decoders of large structs.
func decode(from layer, dst any) error { return decodeTable(nil, from, reflect.ValueOf(dst).Elem()) }

// decodeTable decodes the table at path.
func decodeTable(path []string, from layer, dst reflect.Value) error {
	for i := range dst.NumField() {
		f, to := dst.Type().Field(i), dst.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		v, is := from[name]
		if !is || name == "" || name == "-" {
			continue
		}
		path := append(path, name)
		if err := decodeValue(path, v, to); err != nil {
			return err
		}
		words, is := f.Tag.Lookup("words")
		if word := reflect.Indirect(to); is && word.IsValid() && !slices.Contains(strings.Split(words, ","), word.String()) {
			return keyErrorf(path, "%q is not one of %s", word.String(), text.Or(strings.Split(strings.TrimPrefix(words, ","), ",")))
		}
	}
	return nil
}

// decodeValue decodes the value at path.
func decodeValue(path []string, v any, dst reflect.Value) error {
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
	from, done := reflect.ValueOf(v), false
	switch kind := dst.Kind(); {
	case kind == reflect.Pointer:
		if dst.IsNil() {
			dst.Set(reflect.New(dst.Type().Elem()))
		}
		return decodeValue(path, v, dst.Elem())
	case kind == reflect.Interface:
		dst.Set(from)
		return nil
	case kind == reflect.Struct && isTable(v):
		return decodeTable(path, v.(layer), dst)
	case kind == reflect.Map && from.Kind() == reflect.Map && from.Type().Key().Kind() == reflect.String:
		return decodeEntries(path, from, dst)
	case kind == reflect.Slice && from.Kind() == reflect.Slice:
		dst.Set(reflect.MakeSlice(dst.Type(), from.Len(), from.Len()))
		for i := range from.Len() {
			if err := decodeValue(append(path, strconv.Itoa(i)), from.Index(i).Interface(), dst.Index(i)); err != nil {
				return err
			}
		}
		return nil
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
		var n int64
		if n, done = integer(from); done {
			dst.SetInt(n)
		}
	case dst.CanFloat():
		var n float64
		if n, done = number(from); done {
			dst.SetFloat(n)
		}
	}
	if done {
		return nil
	}
	return keyErrorf(path, "want %s, have %s", typeWord(dst.Kind()), valueWord(from))
}

// decodeEntries decodes a table whose keys are no fields.
func decodeEntries(path []string, from, dst reflect.Value) error {
	if dst.IsNil() {
		dst.Set(reflect.MakeMapWithSize(dst.Type(), from.Len()))
	}
	keys := from.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	for _, key := range keys {
		entry := reflect.New(dst.Type().Elem()).Elem()
		if err := decodeValue(append(path, key.String()), from.MapIndex(key).Interface(), entry); err != nil {
			return err
		}
		dst.SetMapIndex(key.Convert(dst.Type().Key()), entry)
	}
	return nil
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
	if !v.CanInt() && !v.CanUint() && !v.CanFloat() {
		return 0, false
	}
	n = v.Convert(reflect.TypeFor[float64]()).Float()
	return n, !math.IsInf(n, 0) && !math.IsNaN(n)
}

// keyErrorf returns an error that begins with the dotted key.
func keyErrorf(path []string, format string, args ...any) error {
	return fmt.Errorf("%s: %w", JoinKey(path...), fmt.Errorf(format, args...))
}

// valueWord returns the name that TOML has for a value, where each number is one.
func valueWord(v reflect.Value) string {
	if _, is := number(v); is {
		return typeWord(reflect.Float64)
	} else if v.CanFloat() {
		return "no finite number"
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
	}
	return "a table"
}
