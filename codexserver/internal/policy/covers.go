package policy

import (
	"path"
	"slices"
	"strings"
)

// Begins reports whether one of the rules is the beginning of argv. An empty rule covers nothing.
func Begins(rules [][]string, argv []string) bool {
	return slices.ContainsFunc(rules, func(rule []string) bool {
		return len(rule) > 0 && len(rule) <= len(argv) && slices.Equal(rule, argv[:len(rule)])
	})
}

// Asks reports whether one of the rules wants a person to be asked about a command, or about one
// that it mentions (see [Mentioned]). A rule that names a program without a folder also covers
// that program in any folder, because to ask too often allows nothing.
func Asks(rules [][]string, argv []string) bool {
	if len(rules) == 0 {
		return false
	}
	mentioned, all := Mentioned(argv)
	return !all || slices.ContainsFunc(mentioned, func(c []string) bool {
		if Begins(rules, c) {
			return true
		}
		if len(c) == 0 || !strings.Contains(c[0], "/") {
			return false
		}
		return Begins(rules, append([]string{path.Base(c[0])}, c[1:]...))
	})
}
