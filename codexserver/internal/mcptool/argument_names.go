package mcptool

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// checkNames refuses unknown arguments of codex. Otherwise a caller that writes
// approval_policy would run under another policy than it expects. A null is ignored.
func checkNames(raw json.RawMessage) error {
	var given map[string]json.RawMessage
	if err := decodeArguments(raw, &given); err != nil {
		return err
	}
	names := argumentNames()
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if slices.Contains(names, name) || string(given[name]) == "null" {
			continue
		}
		if len(name) > maxArgumentName {
			name = strings.ToValidUTF8(name[:maxArgumentName], "")
		}
		advice := "the arguments are " + strings.Join(names, ", ")
		if near := nearest(name, names); near != "" {
			advice = "did you mean " + near + "?"
		}
		return fmt.Errorf("unknown argument /%s: %s (keys of config.toml go into config)", pointerEscaper.Replace(name), advice)
	}
	return nil
}

// checkSpelling refuses misspelt arguments of a turn. codex-reply ignores other unknown
// arguments.
func checkSpelling(raw json.RawMessage) error {
	var given map[string]json.RawMessage
	if err := decodeArguments(raw, &given); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		for _, own := range turnNames {
			if name != own && letters(name) == letters(own) && string(given[name]) != "null" {
				return fmt.Errorf("unknown argument /%s: did you mean %s?", pointerEscaper.Replace(name), own)
			}
		}
	}
	return nil
}

// checkMembers refuses arguments without a member of A. A null is ignored.
func checkMembers[A any](raw json.RawMessage) error {
	var given map[string]json.RawMessage
	if err := decodeArguments(raw, &given); err != nil {
		return err
	}
	names := namesOf(reflect.TypeFor[A]())
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !slices.Contains(names, name) && string(given[name]) != "null" {
			return fmt.Errorf("unknown argument /%s: the arguments are %s", pointerEscaper.Replace(Cut(name, maxArgumentName)), strings.Join(names, ", "))
		}
	}
	return nil
}

// maxArgumentName is how many bytes of an unknown name an error repeats.
const maxArgumentName = 100

// pointerEscaper writes a name as a token of a JSON pointer (RFC 6901).
var pointerEscaper = strings.NewReplacer("~", "~0", "/", "~1")

// argumentNames returns the names of the tool's arguments, sorted.
func argumentNames() []string { return namesOf(reflect.TypeFor[codexArguments]()) }

// namesOf returns the names of the members of a tool's arguments, sorted.
func namesOf(arguments reflect.Type) []string {
	var names []string
	for _, f := range reflect.VisibleFields(arguments) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// nearest returns the name that was likely meant, or "". It prefers a name that differs
// only in case and separators, then one that begins with the other (sandbox_mode and
// sandbox), then one that ends with the other (reasoning_effort and effort), then the one
// with the fewest edits, at most a third of its length.
func nearest(name string, names []string) string {
	given := letters(name)
	best, least := "", len(name)+1
	for _, n := range names {
		want := letters(n)
		d := distance(given, want)
		switch {
		case d == 0:
			return n
		case len(given) >= 3 && (strings.HasPrefix(given, want) || strings.HasPrefix(want, given)):
			d = 1
		case len(given) >= 5 && len(want) >= 5 && (strings.HasSuffix(given, want) || strings.HasSuffix(want, given)):
			d = 2
		case d > len(want)/3:
			continue
		}
		if d < least {
			best, least = n, d
		}
	}
	return best
}

// letters drops case and separators.
func letters(s string) string {
	return strings.NewReplacer("-", "", "_", "", ".", "", " ", "").Replace(strings.ToLower(s))
}

// distance is the number of bytes to insert, delete or replace (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
