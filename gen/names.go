package main

import (
	"fmt"
	"strings"
	"unicode"
)

// goName turns a name of the schema into an exported Go name. It drops characters that a Go
// name cannot contain, and makes the first letter and each letter after a dropped
// character upper case: "tools/call" becomes ToolsCall, "date-time" DateTime.
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

// lower returns a Go name with its first letter in lower case.
func lower(s string) string { return strings.ToLower(s[:1]) + s[1:] }
