package tools

import "slices"

// allLocked returns the locked arguments and others with the same effect. config could
// switch on the web search, and together with sandbox make folders writable.
func allLocked(names []string) []string {
	all := slices.Clone(names)
	if slices.Contains(names, "config") {
		all = append(all, "web-search")
		if slices.Contains(names, "sandbox") {
			all = append(all, "writable-roots")
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// lockedOf returns those names that are also arguments of codex-reply.
func lockedOf(names []string) []string {
	var own []string
	for _, name := range names {
		if slices.Contains(turnNames, name) {
			own = append(own, name)
		}
	}
	return own
}
