package main

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/codexmcp/codexmcp/internal/outputschema"
)

// placeError is a refusal with the JSON pointer to its place.
type placeError struct {
	pointer string
	err     error
}

func (e *placeError) Error() string { return e.pointer + ": " + e.err.Error() }

func (e *placeError) Unwrap() error { return e.err }

// dialect rewrites schemas of older drafts into the words of draft 2020-12.
type dialect struct {
	draft   int      // 4, 6, 7, 2019 or 2020
	ignored []string // the JSON pointers to what was dropped, because it says nothing about what is valid
}

var draftNumber = regexp.MustCompile(`json-schema\.org/draft[-/](?:0?(\d)|(20\d\d)-\d\d)/`)

// dialectOf returns the dialect of a schema: 2020-12 unless it names another one.
func dialectOf(root any) *dialect {
	object, _ := root.(map[string]any)
	name, _ := object["$schema"].(string)
	if m := draftNumber.FindStringSubmatch(name); m != nil {
		n, _ := strconv.Atoi(m[1] + m[2])
		return &dialect{draft: n}
	}
	return &dialect{draft: 2020}
}

// meaningful are the keywords without a rule that say what is valid. They stay, and are refused.
var meaningful = []string{"$dynamicRef", "$recursiveRef", "extends", "disallow", "divisibleBy"}

// schema returns a schema in the words of draft 2020-12, without the keywords that no draft knows.
func (d *dialect) schema(node any, path string) any {
	object, ok := node.(map[string]any)
	if !ok {
		return node
	}
	out := make(map[string]any)
	_, isRef := object["$ref"].(string)
	for _, key := range slices.Sorted(maps.Keys(object)) {
		value, here := object[key], path+"/"+escape(key)
		list, isList := value.([]any)
		members, isMap := value.(map[string]any)
		switch {
		case isRef && d.draft <= 7 && key != "$ref" && !slices.Contains(keywordProse, key): // older drafts ignore it
			if !isNote(key) && key != "definitions" {
				d.ignored = append(d.ignored, here)
			}
			continue
		case key == "dependencies" && isMap:
			d.dependencies(out, members, here)
			continue
		case key == "additionalItems" && d.draft < 2020:
			if _, isTuple := object["items"].([]any); isTuple {
				out["items"] = d.schema(value, here)
			}
			continue
		case key == "items" && isList && d.draft < 2020:
			out["prefixItems"] = d.list(list, here)
			continue
		case (key == "exclusiveMinimum" || key == "exclusiveMaximum") && d.draft == 4:
			if limit := lower(strings.TrimPrefix(key, "exclusive")); value == true && object[limit] != nil {
				out[key] = object[limit]
			}
			continue
		case (key == "minimum" || key == "maximum") && d.draft == 4 && object["exclusive"+upper(key)] == true:
			continue
		case slices.Contains(keywordSchema, key), slices.Contains(schemaValued, key):
			out[key] = d.schema(value, here)
			continue
		case isList && (slices.Contains(keywordList, key) || key == "prefixItems"):
			out[key] = d.list(list, here)
			continue
		case isMap && (slices.Contains(keywordMap, key) || key == "patternProperties" || key == "dependentSchemas"):
			inner := make(map[string]any)
			for name, m := range members {
				inner[name] = d.schema(m, here+"/"+escape(name))
			}
			out[key] = inner
			continue
		case isKeyword(key), slices.Contains(meaningful, key):
			out[key] = value
		default:
			d.ignored = append(d.ignored, here)
		}
	}
	return out
}

// schemaValued are the assertions whose value is a schema.
var schemaValued = []string{"not", "if", "then", "else", "contains", "propertyNames", "unevaluatedProperties", "unevaluatedItems"}

// isKeyword reports whether the generator has a rule for a keyword.
func isKeyword(key string) bool {
	for _, list := range [][]string{keywordProse, keywordPlain, keywordSchema, keywordList, keywordMap, keywordCheck, keywordWhole} {
		if slices.Contains(list, key) {
			return true
		}
	}
	return isNote(key)
}

func (d *dialect) list(list []any, path string) []any {
	out := make([]any, len(list))
	for i, v := range list {
		out[i] = d.schema(v, path+"/"+strconv.Itoa(i))
	}
	return out
}

// dependencies writes the older keyword dependencies as its two successors.
func (d *dialect) dependencies(out, members map[string]any, path string) {
	required, schemas := make(map[string]any), make(map[string]any)
	for name, m := range members {
		switch m := m.(type) {
		case []any:
			required[name] = m
		case string: // of draft 3
			required[name] = []any{m}
		default:
			schemas[name] = d.schema(m, path+"/"+escape(name))
		}
	}
	if len(required) > 0 {
		out["dependentRequired"] = required
	}
	if len(schemas) > 0 {
		out["dependentSchemas"] = schemas
	}
}

// checkable returns an error if the strict decoder cannot check values with a constraint of the schema
// at a pointer.
func checkable(constraint, pointer string) error {
	_, err := outputschema.Compile([]byte(constraint))
	var wrong *outputschema.FaultError
	switch {
	case errors.As(err, &wrong):
		return refuse(pointer+wrong.Path, "no rule for it: %s", wrong.Why)
	case err != nil:
		return refuse(pointer, "no rule for it: %w", err)
	}
	return nil
}

// refuse returns an error with the JSON pointer to its place.
func refuse(pointer, format string, args ...any) error {
	return &placeError{pointer, fmt.Errorf(format, args...)}
}

// existing shortens the pointer of a refusal until the document that was given has the place: the
// schema that is refused may be one that gen made of several.
func (h *hoister) existing(err error) error {
	var p *placeError
	if errors.As(err, &p) {
		for p.pointer != "#" && h.lookUp(p.pointer) == nil {
			p.pointer = p.pointer[:strings.LastIndex(p.pointer, "/")]
		}
	}
	return err
}
