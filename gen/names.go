package main

import (
	"fmt"
	"strings"
	"unicode"
)

// goName turns a name of the schema into an exported Go name: the schema's own letters,
// the first raised, and the first after anything that a Go name cannot contain
// ("tools/call" is ToolsCall, "date-time" is DateTime).
func goName(s string) (string, error) {
	var b strings.Builder
	raise := true
	for _, r := range s {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			raise = true
			continue
		}
		if raise {
			r = unicode.ToUpper(r)
		}
		raise = false
		b.WriteRune(r)
	}
	name := b.String()
	if name == "" || unicode.IsDigit(rune(name[0])) {
		return "", fmt.Errorf("%q cannot become a Go name", s)
	}
	return name, nil
}

// lower returns a Go name with its first letter lowered.
func lower(s string) string { return strings.ToLower(s[:1]) + s[1:] }
