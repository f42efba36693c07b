package policy

import "slices"

// Begins reports whether one of the rules is the beginning of argv. An empty rule covers nothing. It is for
// rules that allow; for those that deny or ask see [Mentions].
func Begins(rules [][]string, argv []string) bool {
	return slices.ContainsFunc(rules, func(rule []string) bool {
		return len(rule) > 0 && len(rule) <= len(argv) && slices.Equal(rule, argv[:len(rule)])
	})
}
