package main

import (
	"fmt"
	"go/token"
	"slices"
	"strings"
	"unicode"
)

// goName turns a name of the schema into an exported Go name. It drops characters that a Go
// name cannot contain, and makes the first letter and each letter after a dropped
// character upper case: "tools/call" becomes ToolsCall, "date-time" DateTime, "taskId" TaskID.
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
	name := withInitialisms(b.String())
	if !token.IsExported(name) {
		return "", fmt.Errorf("%q cannot become a Go name", s)
	}
	return name, nil
}

// initialisms are words that Go writes in one case. A unit such as ms is none of them.
var initialisms = strings.Fields("ACL API ASCII CPU CSS DNS EOF GUID HTML HTTP HTTPS ID IP JSON LHS MCP QPS RAM RHS " +
	"RPC SHA SLA " +
	"SMTP SQL SSH TCP TLS TTL UDP UI UID URI URL UTF8 UUID VM XML XMPP XSRF XSS")

// withInitialisms returns a name in mixed case with its initialisms in upper case, also in the
// plural: TaskIds becomes TaskIDs.
func withInitialisms(name string) string {
	var b strings.Builder
	runes := []rune(name)
	start := 0
	for i := 1; i <= len(runes); i++ {
		if i < len(runes) && !(unicode.IsUpper(runes[i]) &&
			(!unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1]))) {
			continue // within a word
		}
		word := string(runes[start:i])
		one, plural := strings.CutSuffix(word, "s")
		switch {
		case slices.Contains(initialisms, strings.ToUpper(word)):
			word = strings.ToUpper(word)
		case plural && slices.Contains(initialisms, strings.ToUpper(one)):
			word = strings.ToUpper(one) + "s"
		}
		b.WriteString(word)
		start = i
	}
	return b.String()
}

// lower returns a Go name with its first letter in lower case.
func lower(s string) string { return strings.ToLower(s[:1]) + s[1:] }
