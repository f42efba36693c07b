package config

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/codexmcp/codexmcp/internal/text"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
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

// decode sets dst, a pointer, from a merged layer, or from its value at a path. A field with the tag words takes only
// these, which commas separate. The error names the key, but not a value that may be a secret.
//
// All of it by way of JSON would take a twentieth of the memory of an idle server, most of it for decoders of large structs.
func decode(from layer, dst any, path ...string) error {
	return decodeValue(path, At(from, path...), reflect.ValueOf(dst).Elem())
}

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
		if word := reflect.Indirect(to); is && word.IsValid() &&
			!slices.Contains(strings.Split(words, ","), word.String()) {
			return keyErrorf(path, "%q is not one of %s", word.String(),
				text.Or(strings.Split(strings.TrimPrefix(words, ","), ",")))
		}
	}
	return nil
}

// plain are the kinds whose values need no conversion.
var plain = []reflect.Kind{reflect.Bool, reflect.Int, reflect.String}

// decodeValue decodes the value at path. What a struct has no fields for goes by way of JSON.
func decodeValue(path []string, v any, dst reflect.Value) error {
	to := dst.Addr().Interface()
	if duration, is := to.(*time.Duration); is {
		to = (*Duration)(duration)
	}
	_, own := to.(json.Unmarshaler)
	if from := reflect.ValueOf(v); !own && from.Kind() == dst.Kind() && slices.Contains(plain, from.Kind()) &&
		utf8.ValidString(from.String()) {
		dst.Set(from.Convert(dst.Type())) // as JSON does it: most keys have such a default
		return nil
	}
	if table, is := v.(layer); is && !own {
		switch t := dst.Type(); {
		case t.Kind() == reflect.Struct:
			return decodeTable(path, table, dst)
		case t.Kind() == reflect.Map && t.Elem().Kind() == reflect.Struct:
			dst.Set(reflect.MakeMapWithSize(t, len(table)))
			for _, name := range slices.Sorted(maps.Keys(table)) {
				entry := reflect.New(t.Elem()).Elem()
				if err := decodeValue(append(path, name), table[name], entry); err != nil {
					return err
				}
				dst.SetMapIndex(reflect.ValueOf(name), entry)
			}
			return nil
		}
	}
	data, err := json.Marshal(v, json.Deterministic(true))
	if err == nil {
		err = json.Unmarshal(data, to)
	}
	if at, is := errors.AsType[*json.SemanticError](err); is {
		path = slices.AppendSeq(slices.Clip(path), at.JSONPointer.Tokens())
		if err = at.Err; err == nil || errors.Is(err, strconv.ErrSyntax) || errors.Is(err, strconv.ErrRange) {
			err = fmt.Errorf("want %s, have %s", typeWords[at.GoType.Kind()], kindWords[at.JSONKind])
		}
	} else if at, is := errors.AsType[*jsontext.SyntacticError](err); is {
		err = at.Err
	}
	if err != nil {
		return keyErrorf(path, "%w", err)
	}
	return nil
}

// keyErrorf returns an error that begins with the dotted key.
func keyErrorf(path []string, format string, args ...any) error {
	return fmt.Errorf("%s: %w", JoinKey(path...), fmt.Errorf(format, args...))
}

// kindWords are the names that TOML has for the kinds of JSON.
var kindWords = map[jsontext.Kind]string{'"': "a string", 't': "a boolean", 'f': "a boolean", '0': "a number",
	'[': "an array", '{': "a table"}

// typeWords are those for the Go kinds of fields.
var typeWords = map[reflect.Kind]string{
	reflect.String: "a string", reflect.Bool: "a boolean", reflect.Int: "an integer", reflect.Int64: "an integer",
	reflect.Float64: "a number",
	reflect.Slice:   "an array", reflect.Map: "a table", reflect.Struct: "a table",
}
