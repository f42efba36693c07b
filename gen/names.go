package main

import (
	"fmt"
	"go/token"
	"strconv"
	"strings"
	"unicode"
)

// goName turns a name of the schema into an exported Go name. It drops characters that a Go
// name cannot contain, and makes the first letter and each letter after a dropped
// character upper case: "tools/call" becomes ToolsCall, "date-time" DateTime. A name that is
// not exported then begins with X.
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
	if name == "" {
		return "", fmt.Errorf("%q cannot become a Go name", s)
	}
	if !token.IsExported(name) {
		name = "X" + name
	}
	return name, nil
}

// nameOr returns the Go name of s, or otherwise if it has none.
func nameOr(s, otherwise string) string {
	if name, err := goName(s); err == nil {
		return name
	}
	return otherwise
}

// free returns name, or name with the first number from 2 that makes it free.
func free(name string, taken func(string) bool) string {
	numbered := name
	for n := 2; taken(numbered); n++ {
		numbered = name + strconv.Itoa(n)
	}
	return numbered
}

// lower returns a Go name with its first letter in lower case.
func lower(s string) string { return strings.ToLower(s[:1]) + s[1:] }
